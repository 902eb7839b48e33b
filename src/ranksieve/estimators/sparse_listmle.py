"""Sparse cost-sensitive ListMLE: a listwise loss aimed at NDCG@k plus ℓ1, by proximal gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.checks import check_at_least, check_choice, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.losses.cost_sensitive_listmle import CostSensitiveListMLE
from ranksieve.objective import Objective
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.certificate import duality_gap
from ranksieve.solvers.prox_newton import prox_newton
from ranksieve.solvers.proximal import Step, StopRule, proximal_gradient
from ranksieve.solvers.result import Callback, Result
from ranksieve.theory import squared_radii

FIRST_SHARE = 2.0**-8  # of the Lipschitz bound: where the search for L starts


class SparseListMLE(DirectRanker):
    """min_w (1/q) Σ_queries (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/β_j) e^{s_t − s_j}) + α‖w‖₁.

    s = Xw; α_jt and β_j say how much DCG@k suffers when document j slips below document t, or below all that
    are worse (:class:`ranksieve.losses.CostSensitiveListMLE`). ``alpha=0`` is CS-ListMLE, the dense ranker.

    The paper's iteration is w ← prox(w − ∇f(w)/L). L starts at L0/2⁸, L0 the bound of Theorem 1, and doubles
    whenever f(w) lies above its quadratic model. It stops when the proximal gradient mapping, L times the
    step, has fallen to ``tol`` times its norm at w = 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight λ on the mean loss, ≥ 0. The paper chooses it among 1e-7, 1e-6, …, 1e-1 on validation data;
        the loss at w = 0 is Σ_j β_j / DCG@k, often far above 1, so larger values are worth trying.
    k : int
        The loss aims at NDCG@k. The paper uses 1, 3, 5, 8 and 10.
    solver : "proximal", "accelerated" or "newton"
        The paper's iteration; the same with Nesterov's momentum, restarted when the objective rises; or
        proximal Newton, which reaches the optimum in few steps and needs ``alpha`` > 0.
    max_iter : int
        Most iterations. The paper's iteration often ends here, and then stops short of the optimum: ``gap_``
        tells how far.
    tol : float
        Share of the first gradient mapping at which to stop; for "newton" the largest ``gap_`` as a share of
        the objective.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − c(f(w) − ⟨g, w⟩) with g = ∇f(w), c = min(1, α/‖g‖_∞): F(w) is at most this far above the
        minimum, because f is convex and not negative. NaN for ``alpha=0``, where nothing is proven.
    trace_ : Trace
        One entry an iteration; the gap is NaN before the last, except with "newton".

    References
    ----------
    F. Zhou et al.: Cost-Sensitive ListMLE Ranking Approach Based on Sparse Representation. The dense loss:
    M. Lu, M. Xie, Y. Wang, J. Liu, Y. Huang: Cost-Sensitive Listwise Ranking Approach, PAKDD 2010.
    Sums over t = j+1, … take documents as sorted by label. Theorem 1 lacks the 1/ln 2 of log2 and holds for
    feature ranges, not for largest values. A stopping rule on ‖∇f(w)‖ cannot hold at an ℓ1 optimum, where
    ∇f does not vanish; hence the mapping. L0/γᵖ, p the number of iterations, is no start for L; hence 2⁸.
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        k: int = 10,
        *,
        solver: str = "proximal",
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.k = k
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        self._check()
        loss = CostSensitiveListMLE(self.k).bind(data.y, data.queries, query_weight)
        return SOLVERS[self.solver](
            Objective(data.X, loss),
            L1(self.alpha),
            start,
            bound=lambda: loss.lipschitz_bound(squared_radii(data)),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )

    def _check(self) -> None:
        check_not_negative("alpha", self.alpha)
        check_choice("solver", self.solver, SOLVERS)
        check_positive("tol", self.tol)
        check_at_least("max_iter", self.max_iter, 1)
        if self.solver == "newton" and self.alpha == 0:
            raise ValueError(
                "solver='newton' stops on a duality gap, which needs alpha > 0; "
                "with alpha=0 use solver='proximal' or 'accelerated'"
            )

    def _certificate(self) -> dict[str, float]:
        return {name: value for name, value in super()._certificate().items() if np.isfinite(value)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


Solve: TypeAlias = Callable[..., Result]


def _proximal(
    objective: Objective,
    penalty: L1,
    start: FloatArray | None,
    *,
    bound: Callable[[], float],
    tol: float,
    accelerated: bool = False,
    **options: Any,
) -> Result:
    result = proximal_gradient(
        objective,
        penalty,
        start,
        lipschitz=FIRST_SHARE * bound() or 1.0,  # 0 if no feature varies: any L will do
        stop=_small_beside_zero(objective, penalty, tol),
        accelerated=accelerated,
        restart=True,
        **options,
    )
    gap = _gap(objective, penalty, result.w)
    result.trace.gap[-1] = gap
    return replace(result, gap=gap)


def _newton(
    objective: Objective,
    penalty: L1,
    start: FloatArray | None,
    *,
    bound: Callable[[], float],
    **options: Any,
) -> Result:
    return prox_newton(objective, penalty, None if start is None else objective.evaluate(start), **options)


SOLVERS: dict[str, Solve] = {
    "proximal": _proximal,
    "accelerated": partial(_proximal, accelerated=True),
    "newton": _newton,
}


def _small_beside_zero(objective: Objective, penalty: L1, tol: float) -> StopRule:
    """Stop when the gradient mapping is at most ``tol`` times that at w = 0, for any L ‖prox(−∇f(0))‖."""
    first = float(np.linalg.norm(penalty.prox(-objective.gradient(objective.at_zero), 1.0)))

    def rule(step: Step) -> tuple[float, bool]:
        return np.nan, step.mapping <= tol * first

    return rule


def _gap(objective: Objective, penalty: L1, w: FloatArray) -> float:
    if penalty.alpha == 0.0:
        return np.nan
    point = objective.evaluate(w)
    return duality_gap(objective, penalty, point, objective.gradient(point))[1]
