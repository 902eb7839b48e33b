"""FSMRank: squared hinge, importance-weighted ℓ1 and a penalty on similar features."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses import Loss, SquaredHinge
from ranksieve.objective import Point, make_objective
from ranksieve.penalties.similarity import (
    FORMS,
    PSD_POLICIES,
    SimilarityQuadratic,
    apply_psd_policy,
    feasible_scales,
    importance_slopes,
    is_positive_semidefinite,
)
from ranksieve.rankers.base import Attributes, Ranker
from ranksieve.rankers.measures import feature_importance, similarity_measure
from ranksieve.rankers.parameters import Count, NotNegative, Positive, one_of
from ranksieve.solvers import Fista, Problem, Result, Solver

INITIAL_LIPSCHITZ_SHARE = 2.0**-10  # of the Lipschitz bound: initial value of the line search
MIN_OBJECTIVE = -1e8  # the loss at w = 0 is 1, so an objective below this diverges to −∞

UNBOUNDED = (
    "the objective is unbounded below, because the similarity matrix is not positive semidefinite; "
    "use `psd='project'` or a smaller `similarity_weight`"
)

ALL_EXCLUDED = (
    "every feature has importance 0; use another importance, such as `importance='pearson'` (a constant "
    "feature has importance 0, and with 'ndcg' every feature has if no query has ten documents)"
)


@dataclass(eq=False, repr=False)
class FSMRank(Ranker):
    """min_w f(w) + (λ1/2) |w|ᵀA|w| + λ2 Σ_j |w_j|/s_j, f the mean squared hinge over pairs.

    s_j is the importance of feature j, A_ij the similarity of features i and j: weak features are penalised
    more, and so are large weights on two similar features. Solved as the paper's eq. (2), over u, v ≥ 0 with
    w = u − v and u + v in place of |w|, by accelerated projected gradient. The line search for the Lipschitz
    constant starts at (4 + 2λ1)d/2¹⁰ and doubles it.

    Parameters
    ----------
    alpha : float
        λ2, the ℓ1 weight on the mean loss.
    similarity_weight : float
        λ1. At 0 the similarity is not computed.
    importance : "pearson", "ndcg", "map", "ones" or array
        |correlation with the label|, NDCG@10 or MAP of the feature alone (letor profile, better direction),
        or 1; or an array with one number ≥ 0 per feature. A feature with importance 0, such as a constant
        one, is excluded.
    similarity : "pearson", "squared_pearson", "kendall", "identity" or array
        |correlation|, its square, |Kendall's τ-b| averaged over queries, the identity; or a symmetric matrix.
    form : "split" or "signed"
        The paper's eq. (2), or its eq. (1) with wᵀAw in place of |w|ᵀA|w|.
    psd : "project", "warn", "error" or "ignore"
        What to do with a similarity matrix that is not positive semidefinite: replace it by the nearest one
        that is, keep it with a warning, raise an error, or keep it silently. If it is kept, the problem may
        not be convex (nor bounded, with form="signed"), and ``gap_`` is NaN. Absolute correlations are often
        slightly indefinite (smallest eigenvalue about −0.1 % of the largest on LETOR data), hence the
        default; "ignore" is exactly the paper.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when the relative change of the objective is at most this.
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
        paper's ``tol`` of 1e-4 stops early, with a much larger gap; a smaller ``tol`` closes it.

    Notes
    -----
    The gap. Let q(t) = (λ1/2) tᵀAt with A positive semidefinite, t0 the current t = u + v, and h = λ1·A·t0.
    By convexity q(t) ≥ θ⟨h, t⟩ − θ²q(t0) for any θ (the tangent at θt0). By Fenchel's inequality
    f(w) ≥ c⟨g, w⟩ + D_f(c), g the gradient of f at the current w, D_f(c) = 2c·(1/p)Σξ − c²·(1/p)Σξ², ξ the
    current hinge values. So the objective is at least

    D_f(c) − θ²q(t0) + Σ_j u_j (c·g_j + θh_j + λ2/s_j) + v_j (−c·g_j + θh_j + λ2/s_j),

    whose minimum over u, v ≥ 0 is D_f(c) − θ²q(t0) if no bracket is negative. The bound is the better of two:
    with θ = 1 and with θ = c, each with the largest c ≤ 1 for which no bracket is negative (for θ = 1 there
    may be none). At the optimum, nonnegative brackets at c = θ = 1 are the optimality conditions, so the gap
    is 0. For eq. (1), v's bracket has −θh_j instead.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: Feature Selection Algorithm for Learning to Rank, IEEE
    Transactions on Neural Networks and Learning Systems 24(6), 2013. Its eqs. (1) and (2) are not equivalent:
    A on the doubled features gives (u + v)ᵀA(u + v), hence |w|ᵀA|w|, not wᵀAw; the algorithm solves (2). The
    paper assumes that absolute correlations are positive semidefinite, which they need not be. Constant
    features, whose correlation is undefined, are excluded.
    """

    alpha: NotNegative = 1e-3
    similarity_weight: NotNegative = 1e-3
    _: KW_ONLY
    importance: Any = "pearson"
    similarity: Any = "pearson"
    form: Annotated[str, one_of(FORMS)] = "split"
    psd: Annotated[str, one_of(PSD_POLICIES)] = "project"
    max_iter: Count = 400
    tol: Positive = 1e-4
    warm_start: bool = False

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")  # not distributed: the measures need the rows

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> SimilarityProblem:
        objective = make_objective(data, self._loss(), query_weight)
        importance = feature_importance(self.importance, data, query_weight)
        if not np.any(importance > 0):
            raise ParameterError("importance", self.importance, ALL_EXCLUDED)
        similarity = similarity_measure(self.similarity, data.n_features, self.similarity_weight > 0)
        matrix = None
        if self.similarity_weight > 0:
            matrix = apply_psd_policy(similarity(data, query_weight), self.psd)
        form = FORMS[self.form](importance_slopes(self.alpha, importance))
        quadratic = SimilarityQuadratic(self.similarity_weight, matrix)
        return SimilarityProblem(objective, form, np.isfinite(form.slope), quadratic, importance)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        lipschitz = INITIAL_LIPSCHITZ_SHARE * fsmrank_lipschitz(problem.n_features, self.similarity_weight)
        return Fista(self.tol, self.max_iter, restart=False, stop="change", lipschitz=lipschitz)

    def _solution(self, problem: Any, result: Result) -> Attributes:
        measures = {"importance_": problem.importance, "similarity_": problem.similarity.matrix}
        return {**super()._solution(problem, result), **measures}


NO_SIMILARITY = SimilarityQuadratic(0.0, None)


@dataclass(frozen=True)
class SimilarityPoint:
    """The smooth part f + q at a point x: the loss, the gradient of q in t, and the value of q."""

    x: FloatArray
    loss: Point
    similarity_gradient: FloatArray
    quadratic: float

    @property
    def w(self) -> FloatArray:
        return self.loss.w

    @property
    def value(self) -> float:
        return self.loss.value + self.quadratic


@dataclass(frozen=True, eq=False)
class SimilarityProblem(Problem):
    """f(w(x)) + q(t(x)) + penalty(x), the penalty being the ℓ1 term, in the variables x of the form."""

    similarity: SimilarityQuadratic = NO_SIMILARITY
    importance: FloatArray | None = None

    @cached_property
    def convex(self) -> bool:
        return self.similarity.matrix is None or is_positive_semidefinite(self.similarity.matrix)

    def start(self, start: Any) -> Any:
        return self.evaluate(self.penalty.variables(super().start(start).w))

    def evaluate(self, x: FloatArray) -> SimilarityPoint:
        t = self.penalty.sizes(x)
        gradient = self.similarity.gradient(t)
        point = SimilarityPoint(
            x, self.objective.evaluate(self.penalty.weights(x)), gradient, 0.5 * float(t @ gradient)
        )
        if point.value < MIN_OBJECTIVE:
            raise DataError(None, None, UNBOUNDED)
        return point

    def variables(self, point: Any) -> FloatArray:
        return np.asarray(point.x)

    def gradient(self, point: Any) -> FloatArray:
        return np.asarray(
            self.penalty.gradient(self.objective.gradient(point.loss), point.similarity_gradient)
        )

    def value(self, point: Any) -> float:
        return float(point.value + self.penalty.value(point.x))

    def gap(self, point: Any, g: FloatArray | None = None) -> float:
        """The objective minus the better of two lower bounds; NaN if the problem is not convex."""
        if not self.convex:
            return np.nan
        gradient = self.objective.gradient(point.loss)
        scales = feasible_scales(self.penalty, gradient, point.similarity_gradient)
        bounds = (self.objective.dual(point.loss, c) - theta**2 * point.quadratic for c, theta in scales)
        gap = np.maximum(0.0, self.value(point) - max(bounds))
        return float(gap + self.objective.value_error(point.loss))

    def finish(self, point: Any) -> Any:
        """Replace u, v by those of the same weights with min(u_j, v_j) = 0, unless this is worse."""
        reduced = self.evaluate(self.penalty.variables(point.w))
        return reduced if self.value(reduced) <= self.value(point) else point


def fsmrank_lipschitz(n_features: int, similarity_weight: float) -> float:
    """Theorem 1: L0 = (4 + 2λ1)·d bounds the Lipschitz constant of the gradient of f + q in (u, v).

    For eq. (1), in w alone, L0/2 is a bound.
    """
    return (4.0 + 2.0 * similarity_weight) * n_features
