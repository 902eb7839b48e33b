"""RankSVM in the primal, and its sparse forms with ℓ1, log, MCP, ℓp and SCAD penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import PENALTIES, Penalty, Ridge, offering
from ranksieve.rankers.base import SolvedRanker
from ranksieve.rankers.parameters import Count, Device, Interval, NotNegative, Positive, Share, one_of
from ranksieve.solvers import Fista, Problem, ProxNewton, Reweighted, Solver, TruncatedNewton


@dataclass(eq=False, repr=False)
class RankSVM(SolvedRanker):
    """min_w ½‖w‖² + C Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)².

    Newton steps by conjugate gradients on implicit Hessian products: O(n log n) a product, and no pair is
    ever built. All features that can tell two documents of a query apart get a weight; those that are
    constant within every query get exactly 0.

    Parameters
    ----------
    C : float
        Weight of the sum over pairs. Divided by C·p the problem is the mean squared hinge over p pairs plus
        a ridge of 1/(C·p), so data with more pairs need a smaller C for the same shrinkage. On the LETOR
        sets, with 4·10⁴ to 4·10⁵ pairs, values of C·p from 10 to 100 do best on validation data.
    average : bool
        Let C weigh the mean over pairs instead (C/p in the formula): one grid for data of any size.
    tol : float
        Largest duality gap, as a share of the objective.
    max_iter : int
        Most Newton steps.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C·p. With
    weights per query, p is the sum of the pairs' weights.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs, Information Retrieval 13(3), 2010.
    LETOR calls it RankSVM-Primal.
    """

    works_in_parts = True

    C: Positive = 1e-4
    _: KW_ONLY
    average: bool = False
    tol: Positive = 1e-6
    max_iter: Count = 100
    warm_start: bool = False
    device: Device = "cpu"

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = self._objective(data, query_weight)
        pairs = 1.0 if self.average else objective.loss.normaliser
        return Problem(objective, Ridge(1.0 / (self.C * pairs)), objective.varies)

    def _objective(self, data: Dataset, query_weight: FloatArray | None) -> Objective:
        return make_objective(data, "squared_hinge", query_weight)

    def _solver(self, problem: Problem) -> Solver:
        return TruncatedNewton(self.tol, self.max_iter)


L1_SOLVERS: dict[str, Callable[[float, int], Solver]] = {"path": ProxNewton, "fista": Fista}
ROUND_STEPS = 50  # of Newton's: with more features than documents a round may have no end, and need not


def _newton_round(tol: float, max_iter: int) -> Solver:
    return ProxNewton(tol, min(max_iter, ROUND_STEPS))


ROUND_SOLVERS: dict[str, Callable[[float, int], Solver]] = {
    "path": _newton_round,
    # A round may hold features with next to no penalty, whose gap FISTA closes last: the mapping ends it.
    "fista": partial(Fista, mapping_tol=1e-6),
}


@dataclass(eq=False, repr=False)
class SparseRankSVM(SolvedRanker):
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
        g: |w| itself, or one of four concave functions, which charge large weights less.
    alpha : float
        α, the weight of the penalty on the mean loss; the paper's C is 1/(α·p).
    weights : sequence of float, optional
        v: one ℓ1 weight per feature (with ``"l1"`` only).
    solver : "path" or "fista"
        Proximal Newton with working sets, or the paper's accelerated forward–backward splitting: the same
        points, found in less or more time.
    epsilon, gamma, p, smoothing, a : float
        Shapes of the concave penalties.
    tol : float
        Largest duality gap of each ℓ1 problem, as a share of its objective; a concave penalty's rounds stop
        when the objective falls by less than this share.
    max_iter : int
        Most iterations of a solver; a round of proximal Newton ends after 50 at the latest.
    max_rounds : int
        Most rounds of reweighting.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Notes
    -----
    ``objective_`` is the true objective; for a concave penalty ``gap_`` certifies the last ℓ1 round, and
    ``trace_`` has one entry per round after that of the start, falling from the first round on.

    References
    ----------
    L. Laporte, R. Flamary, S. Canu, S. Déjean, J. Mothe: Nonconvex Regularizations for Feature Selection in
    Ranking With Sparse SVM, IEEE Transactions on Neural Networks and Learning Systems 25(6), 2014. Its
    Lipschitz constant Σ‖x_i − x_j‖² is far too large (backtracking here); ℓp's infinite slope at 0 is
    smoothed; MCP's knee γα depends on the scale of the loss, here the mean over pairs.
    """

    works_in_parts = True

    penalty: Annotated[str, one_of(("l1", *offering("concave")))] = "l1"
    alpha: NotNegative = 1e-2
    _: KW_ONLY
    weights: Any = None
    solver: Annotated[str, one_of(("path", "fista"))] = "path"
    epsilon: Positive = 0.1
    gamma: Positive = 2.0
    p: Share = 0.5
    smoothing: Positive = 0.001
    a: Annotated[float, Interval(Real, 2, np.inf, closed="neither")] = 3.7
    tol: Positive = 1e-6
    max_iter: Count = 10_000
    max_rounds: Count = 50
    warm_start: bool = False
    device: Device = "cpu"

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        if self.weights is not None and self.penalty != "l1":
            raise ParameterError("weights", self.weights, f"`penalty={self.penalty!r}` finds its own weights")
        return Problem(make_objective(data, "squared_hinge", query_weight), self._penalty())

    def _solver(self, problem: Problem) -> Solver:
        if self.penalty == "l1":
            return L1_SOLVERS[self.solver](self.tol, self.max_iter)
        return Reweighted(self.tol, self.max_rounds, ROUND_SOLVERS[self.solver](self.tol, self.max_iter))

    def _penalty(self) -> Penalty:
        """The penalty, with those of our parameters that shape it."""
        kind: Any = PENALTIES[self.penalty]
        shape = {field.name: getattr(self, field.name) for field in fields(kind) if hasattr(self, field.name)}
        return kind(**shape)  # type: ignore[no-any-return]

    def _certificate(self) -> dict[str, Any]:
        if self._learned_with["penalty"] == "l1":
            return super()._certificate()
        return {"objective": self.objective_, "gap_of_last_round": self.gap_}  # no proof of a global optimum
