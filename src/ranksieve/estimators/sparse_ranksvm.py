"""Sparse RankSVM: the mean squared hinge with ℓ1 or a concave penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.checks import check_at_least, check_choice, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.objective import Objective
from ranksieve.path import make_objective
from ranksieve.penalties import CONCAVE_PENALTIES, L1, ConcavePenalty
from ranksieve.solvers.fista import fista
from ranksieve.solvers.prox_newton import prox_newton
from ranksieve.solvers.result import Callback, Result
from ranksieve.solvers.reweighted import reweighted

Solve: TypeAlias = Callable[..., Result]


def _newton(objective: Objective, penalty: L1, start: FloatArray | None, **options: Any) -> Result:
    return prox_newton(objective, penalty, None if start is None else objective.evaluate(start), **options)


def _fista_round(objective: Objective, penalty: L1, start: FloatArray | None, **options: Any) -> Result:
    """A round may hold features with next to no penalty, whose gap FISTA closes last: the mapping ends it."""
    return fista(objective, penalty, start, mapping_tol=1e-6, **options)


SOLVERS: dict[str, Solve] = {"path": _newton, "fista": fista}
ROUND_SOLVERS: dict[str, Solve] = {"path": _newton, "fista": _fista_round}
PENALTY_CHOICES = ("l1", *CONCAVE_PENALTIES)


class SparseRankSVM(DirectRanker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j g(|w_j|).

    g(t) = t is ℓ1: convex, solved to a duality gap. The others are concave and sparser, solved by reweighted
    ℓ1 with warm starts, each round a certified ℓ1 problem with weights g′(|w_j|):

    - ``"log"``: g′(t) = 1/(ε + t)
    - ``"mcp"``: g′(t) = max(1 − t/(γα), 0)
    - ``"lp"``: g′(t) = p(t + smoothing)^{p−1}
    - ``"scad"``: g′(t) = 1 up to α, falling to 0 at aα

    Parameters
    ----------
    penalty : "l1", "log", "mcp", "lp" or "scad"
    alpha : float
        α, the weight of the penalty on the mean loss; the paper's C is 1/(α·p).
    weights : sequence of float, optional
        v: one ℓ1 weight a feature (with ``"l1"`` only).
    solver : "path" or "fista"
        Proximal Newton with working sets, or the paper's accelerated forward–backward splitting: the same
        points, found in less or more time.
    epsilon, gamma, p, smoothing, a : float
        Shapes of the concave penalties.
    tol : float
        Largest duality gap of each ℓ1 problem, as a share of its objective; a concave penalty's rounds stop
        when the objective falls by less than this share.
    max_iter : int
        Most iterations of a solver.
    max_rounds : int
        Most rounds of reweighting.
    warm_start : bool
        Start from the previous fit's weights.

    Notes
    -----
    ``objective_`` is the true objective; for a concave penalty ``gap_`` certifies the last ℓ1 round, and
    ``trace_`` has one entry a round, falling throughout.

    References
    ----------
    L. Laporte, R. Flamary, S. Canu, S. Déjean, J. Mothe: Nonconvex Regularizations for Feature Selection in
    Ranking With Sparse SVM, IEEE Transactions on Neural Networks and Learning Systems 25(6), 2014. Its
    Lipschitz constant Σ‖x_i − x_j‖² is far too large (backtracking here); ℓp's infinite slope at 0 is
    smoothed; MCP's knee γα depends on the scale of the loss, here the mean over pairs.
    """

    def __init__(
        self,
        penalty: str = "l1",
        alpha: float = 1e-2,
        *,
        weights: Any = None,
        solver: str = "path",
        epsilon: float = 0.1,
        gamma: float = 2.0,
        p: float = 0.5,
        smoothing: float = 0.001,
        a: float = 3.7,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        max_rounds: int = 50,
        warm_start: bool = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.weights = weights
        self.solver = solver
        self.epsilon = epsilon
        self.gamma = gamma
        self.p = p
        self.smoothing = smoothing
        self.a = a
        self.tol = tol
        self.max_iter = max_iter
        self.max_rounds = max_rounds
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        self._check()
        objective, solve = make_objective(data, query_weight), SOLVERS[self.solver]
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        if self.penalty == "l1":
            weights = None if self.weights is None else np.asarray(self.weights, dtype=np.float64)
            return solve(objective, L1(self.alpha, weights), start, callback=callback, **options)
        return reweighted(
            objective,
            self._concave(),
            lambda l1, w: ROUND_SOLVERS[self.solver](objective, l1, w, **options),
            start,
            tol=self.tol,
            max_iter=self.max_rounds,
            callback=callback,
        )

    def _certificate(self) -> dict[str, float]:
        if self._learned_with["penalty"] == "l1":
            return super()._certificate()
        return {"objective": self.objective_, "gap_of_last_round": self.gap_}  # no proof of a global optimum

    def _concave(self) -> ConcavePenalty:
        """The penalty, with those of our parameters that shape it."""
        kind: Any = CONCAVE_PENALTIES[self.penalty]
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})  # type: ignore[no-any-return]

    def _check(self) -> None:
        check_choice("penalty", self.penalty, PENALTY_CHOICES)
        check_choice("solver", self.solver, SOLVERS)
        check_not_negative("alpha", self.alpha)
        check_positive("tol", self.tol)
        check_at_least("max_iter", self.max_iter, 1)
        check_at_least("max_rounds", self.max_rounds, 1)
        if self.weights is not None and self.penalty != "l1":
            raise ValueError(f"weights belong to the l1 penalty; {self.penalty} finds its own")
