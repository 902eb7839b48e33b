"""FSMRank: squared hinge, importance-weighted ℓ1 and a penalty on similar features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.checks import check_at_least, check_choice, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.measures import feature_importance, similarity_measure
from ranksieve.objective import Objective, Point
from ranksieve.path import make_objective
from ranksieve.penalties.similarity import (
    FORMS,
    PSD_POLICIES,
    Form,
    SimilarityQuadratic,
    feasible_scales,
    importance_slopes,
    is_positive_semidefinite,
    settle_definiteness,
)
from ranksieve.solvers.proximal import Step, StopRule, proximal_gradient, small_change
from ranksieve.solvers.result import Callback, Result
from ranksieve.theory import fsmrank_lipschitz

FIRST_SHARE = 2.0**-10  # of the Lipschitz bound, where the line search begins
BOTTOMLESS = -1e8  # the loss at w = 0 is 1, so an objective below this is on its way to −∞

UNBOUNDED = (
    "the objective falls without bound, because the similarity matrix is not positive semidefinite; "
    'use psd="project" or a smaller similarity_weight'
)

ALL_EXCLUDED = (
    "every feature has importance 0 by {measure}, so there is nothing to learn from; use another importance, "
    'such as "pearson" (a constant feature has importance 0, and so has every feature by "ndcg" if no query '
    "has ten documents)"
)


class FSMRank(DirectRanker):
    """min_w f(w) + (λ1/2) |w|ᵀA|w| + λ2 Σ_j |w_j|/s_j, f the mean squared hinge over pairs.

    s_j is the importance of feature j, A_ij the similarity of features i and j: weak features pay more, and
    two similar features pay for large weights together. Solved as the paper's eq. (2), over u, v ≥ 0 with
    w = u − v and |w| read as u + v, by accelerated projected gradient. The line search for the Lipschitz
    constant begins at (4 + 2λ1)d/2¹⁰ and doubles.

    Parameters
    ----------
    alpha : float
        λ2, the ℓ1 weight on the mean loss.
    similarity_weight : float
        λ1. At 0 the similarity plays no part and is not computed.
    importance : "pearson", "ndcg", "map", "ones" or array
        |correlation with the label|, single-feature NDCG@10 or MAP (letor profile, better direction), or 1;
        or one number ≥ 0 a feature. A feature of importance 0, such as a constant one, is excluded.
    similarity : "pearson", "squared_pearson", "kendall", "identity" or array
        |correlation|, its square, |Kendall's τ-b| averaged over queries, none; or a symmetric matrix.
    form : "split" or "signed"
        The paper's eq. (2), or its eq. (1) with wᵀAw in place of |w|ᵀA|w|.
    psd : "project", "warn", "error" or "ignore"
        What to do with a similarity matrix that is not positive semidefinite: replace it by the nearest one
        that is, or keep it with a warning, raise, or keep it silently. Kept, the problem need not be convex
        (nor, with form="signed", bounded) and ``gap_`` is NaN. Absolute correlations are commonly slightly
        indefinite (smallest eigenvalue about −0.1 % of the largest on LETOR data), hence the default;
        "ignore" is the paper to the letter.
    max_iter : int
        Most iterations.
    tol : float
        Stop when the objective changes by at most this share of itself.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    importance_ : array
        s.
    similarity_ : array or None
        A as used; None if ``similarity_weight`` is 0.
    gap_ : float
        ``objective_`` minus a proven lower bound of the minimum; NaN if A is not positive semidefinite. The
        paper's ``tol`` of 1e-4 stops early: expect a gap far above it, and lower ``tol`` to close it.

    Notes
    -----
    The gap. Let q(t) = (λ1/2) tᵀAt with A positive semidefinite, t0 the current t = u + v, and h = λ1·A·t0.
    By convexity q(t) ≥ θ⟨h, t⟩ − θ²q(t0) for any θ (the tangent at θt0). By Fenchel's inequality
    f(w) ≥ c⟨g, w⟩ + D_f(c), g the gradient of f at the current w, D_f(c) = 2c·(1/p)Σξ − c²·(1/p)Σξ², ξ the
    current hinge values. So the objective is at least

    D_f(c) − θ²q(t0) + Σ_j u_j (c·g_j + θh_j + λ2/s_j) + v_j (−c·g_j + θh_j + λ2/s_j),

    whose minimum over u, v ≥ 0 is D_f(c) − θ²q(t0) if no bracket is negative. The largest c ≤ 1 that keeps
    them so is taken for θ = 1 (if there is one) and for θ = c (there always is one), and the better bound of
    the two. At the optimum the brackets at c = θ = 1 are the optimality conditions, so the gap is 0. Eq. (1)
    is the same with −θh_j in v's bracket.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: Feature Selection Algorithm for Learning to Rank, IEEE
    Transactions on Neural Networks and Learning Systems 24(6), 2013. Its eqs. (1) and (2) are not equivalent:
    A on the doubled features makes the quadratic (u + v)ᵀA(u + v), so |w|ᵀA|w|, not wᵀAw; the algorithm
    solves (2). It takes absolute correlations to be positive semidefinite, which they need not be. Constant
    features, which have no correlation, are excluded.
    """

    importance_: FloatArray
    similarity_: FloatArray | None

    def __init__(
        self,
        alpha: float = 1e-3,
        similarity_weight: float = 1e-3,
        *,
        importance: Any = "pearson",
        similarity: Any = "pearson",
        form: str = "split",
        psd: str = "project",
        max_iter: int = 400,
        tol: float = 1e-4,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.similarity_weight = similarity_weight
        self.importance = importance
        self.similarity = similarity
        self.form = form
        self.psd = psd
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
        self._check_parameters()
        problem = self._problem(data, query_weight)
        usable = np.isfinite(problem.form.slope)
        return problem.solve(
            np.zeros(data.n_features) if start is None else np.where(usable, start, 0.0),
            fsmrank_lipschitz(data.n_features, self.similarity_weight) * FIRST_SHARE,
            self.tol,
            self.max_iter,
            callback,
        )

    def _check_parameters(self) -> None:
        check_not_negative("alpha", self.alpha)
        check_not_negative("similarity_weight", self.similarity_weight)
        check_choice("form", self.form, FORMS)
        check_choice("psd", self.psd, PSD_POLICIES)
        check_at_least("max_iter", self.max_iter, 1)
        check_positive("tol", self.tol)

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, query_weight)
        self.importance_ = feature_importance(self.importance, data, query_weight)
        if not np.any(self.importance_ > 0):
            measure = self.importance if isinstance(self.importance, str) else "the given array"
            raise ValueError(ALL_EXCLUDED.format(measure=measure))
        similarity = similarity_measure(self.similarity, data.n_features)
        self.similarity_ = None
        if self.similarity_weight > 0:
            self.similarity_ = settle_definiteness(similarity(data, query_weight), self.psd)
        return Problem(
            objective,
            FORMS[self.form](importance_slopes(self.alpha, self.importance_)),
            SimilarityQuadratic(self.similarity_weight, self.similarity_),
            self.similarity_ is None or is_positive_semidefinite(self.similarity_),
        )


@dataclass(frozen=True)
class State:
    """The smooth part f + q at one x: the loss there, the gradient of q in t, and both values."""

    x: FloatArray
    loss: Point
    pull: FloatArray
    quadratic: float

    @property
    def value(self) -> float:
        return self.loss.value + self.quadratic


@dataclass(frozen=True, eq=False)
class Problem:
    """f(w(x)) + q(t(x)) + the form's ℓ1 term."""

    objective: Objective
    form: Form
    similarity: SimilarityQuadratic
    convex: bool

    @property
    def n_features(self) -> int:
        return len(self.form.variables(self.form.slope))

    def evaluate(self, x: FloatArray) -> State:
        t = self.form.sizes(x)
        pull = self.similarity.gradient(t)
        return State(x, self.objective.evaluate(self.form.weights(x)), pull, 0.5 * float(t @ pull))

    def gradient(self, state: State) -> FloatArray:
        return self.form.gradient(self.objective.gradient(state.loss), state.pull)

    def total(self, state: State) -> float:
        """The objective."""
        return state.value + self.form.value(state.x)

    def gap(self, state: State) -> float:
        """The objective minus the best of two dual values; NaN without convexity."""
        if not self.convex:
            return np.nan
        scales = feasible_scales(self.form, self.objective.gradient(state.loss), state.pull)
        bounds = (self.objective.dual(state.loss, c) - theta**2 * state.quadratic for c, theta in scales)
        return max(0.0, self.total(state) - max(bounds))  # rounding may leave −1e-16 at the optimum

    def solve(
        self, w: FloatArray, lipschitz: float, tol: float, max_iter: int, callback: Callback | None
    ) -> Result:
        """Accelerated projected gradient until the objective changes by at most ``tol`` of itself."""
        nonzeros: list[int] = []

        def watch(n_iter: int, x: FloatArray, objective: float, gap: float) -> None:
            nonzeros.append(int(np.count_nonzero(self.form.weights(x))))
            if callback is not None:
                callback(n_iter, self.form.weights(x), objective, gap)

        result = proximal_gradient(
            self,
            self.form,
            self.form.variables(w),
            lipschitz=lipschitz,
            stop=self._stop(tol),
            max_iter=max_iter,
            accelerated=True,
            callback=watch,
        )
        result.trace.n_nonzero[:] = nonzeros
        best = self._tidied(result.w)
        return Result(
            self.form.weights(best.x),
            self.total(best),
            self.gap(best),
            result.n_iter,
            result.converged,
            result.trace,
        )

    def _stop(self, tol: float) -> StopRule:
        small = small_change(tol)

        def rule(step: Step) -> tuple[float, bool]:
            if step.objective < BOTTOMLESS:
                raise ValueError(UNBOUNDED)
            return self.gap(step.point), small(step)[1]

        return rule

    def _tidied(self, x: FloatArray) -> State:
        """x, or if it is no worse the u, v of the same weights that are not both positive."""
        given, tidy = self.evaluate(x), self.evaluate(self.form.variables(self.form.weights(x)))
        return tidy if self.total(tidy) <= self.total(given) else given
