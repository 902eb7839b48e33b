"""FBPCRank: forward-backward selection by the value S(F) of a set of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.messages import lookup
from ranksieve.baselines.losses import BASELINE_LOSSES
from ranksieve.baselines.selector import FeatureSelector, fit_on, fresh_base
from ranksieve.data.dataset import Dataset
from ranksieve.losses import LOSSES
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.penalties import Quadratic
from ranksieve.penalties.similarity import settle_definiteness
from ranksieve.rankers.measures import similarity_measure
from ranksieve.rankers.parameters import Count, NotNegative, Positive
from ranksieve.solvers import DenseNewton, Problem

CONVERGED = 1e-12  # share of S that a Newton step may still gain
MAX_STEPS = 100
FLAT = 1e-10  # what is below this share of the largest may be 0


@dataclass(frozen=True, eq=False)
class Subset:
    """A set of features with its S, the weights there and what is known of the loss there."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float
    point: Point


@dataclass(frozen=True, eq=False)
class Criterion(ABC):
    """S(F) = min over some w of C·L(w) + ½ wᵀA_F w, for forward and backward steps."""

    objective: Objective
    C: float
    similarity: FloatArray

    @property
    def empty(self) -> Subset:
        """No feature."""
        zero = self.objective.at_zero
        return Subset((), np.empty(0), self.C * zero.value, zero)

    @abstractmethod
    def grow(self, subset: Subset, j: int) -> Subset:
        """With feature j, which comes last."""

    @abstractmethod
    def shrink(self, subset: Subset, j: int) -> Subset:
        """Without feature j."""

    @abstractmethod
    def most_gain(self, subset: Subset) -> FloatArray:
        """For each feature, a number that S cannot fall by more than when it joins."""

    @abstractmethod
    def least_rise(self, subset: Subset) -> FloatArray:
        """For each feature of the subset, a number that S cannot rise by less than when it leaves."""


@dataclass(frozen=True, eq=False)
class JointMinimum(Criterion):
    """The minimum over all weights, for a convex loss L and a positive semidefinite A."""

    def grow(self, subset: Subset, j: int) -> Subset:
        return self._minimum((*subset.columns, j), np.append(subset.w, 0.0))

    def shrink(self, subset: Subset, j: int) -> Subset:
        kept = [column != j for column in subset.columns]
        return self._minimum(without(subset, j), subset.w[kept])

    def most_gain(self, subset: Subset) -> FloatArray:
        """r_j²/(2σ_j), r = C∇L + A_{·F}w and σ_j = A_jj − A_jF A_FF⁻¹ A_Fj.

        L lies above its tangent at the minimum over F. With the tangent in place of L the minimum over F ∪ j
        is a quadratic one, and lies r_j²/(2σ_j) below S(F). Where σ_j may be 0 this is no bound: infinity.
        """
        F, diagonal = list(subset.columns), np.diag(self.similarity)
        across, inverse = self.similarity[F], _inverse(self.similarity[np.ix_(F, F)])
        bound = np.full(len(diagonal), np.inf)
        if inverse is not None:
            residual = self.C * self.objective.gradient(subset.point) + subset.w @ across
            unexplained = diagonal - np.einsum("ij,ij->j", across, inverse @ across)
            usable = unexplained > FLAT * np.max(diagonal)
            np.divide(residual**2, 2.0 * unexplained, out=bound, where=usable)
        return bound

    def least_rise(self, subset: Subset) -> FloatArray:
        """w_j²/(2 (A_FF⁻¹)_jj), the least value of ½ (v − w)ᵀA_FF(v − w) over v with v_j = 0.

        That is what the quadratic term alone adds to S(F) away from its minimum w.
        """
        inverse = _inverse(self.similarity[np.ix_(subset.columns, subset.columns)])
        return np.zeros_like(subset.w) if inverse is None else subset.w**2 / (2.0 * np.diag(inverse))

    def _minimum(self, columns: tuple[int, ...], start: FloatArray) -> Subset:
        if not columns:
            return self.empty
        X = np.column_stack([self.objective.features.column(j) for j in columns])
        A = self.similarity[np.ix_(columns, columns)]
        point, value = minimise(Objective(X, self.objective.loss), self.C, A, start)
        return Subset(columns, point.w, value, point)


@dataclass(frozen=True, eq=False)
class AlongBase(Criterion):
    """S(F) = min_{t ≥ 0} C·L(tw) + ½ t² wᵀA_F w, w the weights that ``base`` learns on F.

    A ranker's weights have no scale of their own, hence the t.
    """

    base: Any
    data: Dataset
    query_weight: FloatArray | None

    def grow(self, subset: Subset, j: int) -> Subset:
        return self._fit((*subset.columns, j))

    def shrink(self, subset: Subset, j: int) -> Subset:
        return self._fit(without(subset, j))

    def most_gain(self, subset: Subset) -> FloatArray:
        return np.full(len(self.similarity), np.inf)

    def least_rise(self, subset: Subset) -> FloatArray:
        return np.full(len(subset.columns), -np.inf)  # a ranker may do better with fewer features

    def _fit(self, columns: tuple[int, ...]) -> Subset:
        if not columns:
            return self.empty
        order: IntArray = np.sort(columns)
        base = fit_on(fresh_base(self.base), self.data, order, self.query_weight)
        w = base.coef_[np.searchsorted(order, columns)]
        scores = sum(weight * self.objective.features.column(j) for weight, j in zip(w, columns, strict=True))
        line = Objective(np.reshape(scores, (-1, 1)), self.objective.loss)
        size = w @ self.similarity[np.ix_(columns, columns)] @ w
        point, value = minimise(line, self.C, np.array([[size]]), np.zeros(1))
        scale = point.w[0]
        return Subset(columns, scale * w, value if scale > 0 else self.empty.value, point)


def without(subset: Subset, j: int) -> tuple[int, ...]:
    """Its columns but j."""
    return tuple(column for column in subset.columns if column != j)


def minimise(part: Objective, C: float, A: FloatArray, start: FloatArray) -> tuple[Point, float]:
    """min_w C·L(w) + ½ wᵀAw: the point and the value."""
    result = DenseNewton(CONVERGED, MAX_STEPS).solve(Problem(part, Quadratic(A / C)), start)
    return result.point, C * result.objective


def _inverse(A: FloatArray) -> FloatArray | None:
    """A⁻¹, or None if A may be singular."""
    values = np.linalg.eigvalsh(A)
    if np.any(values <= FLAT * np.max(values, initial=0.0)):
        return None
    return np.asarray(np.linalg.inv(A), dtype=np.float64)


TIE = 1e-10  # values of S that differ by less than this share are equal


@dataclass(frozen=True)
class SelectionStep:
    """One accepted step: the feature that came in or went out, and S after it."""

    action: Literal["in", "out"]
    feature: int
    name: str
    objective: float


@dataclass(eq=False, repr=False)
class FBPCRank(FeatureSelector):
    """Forward–backward selection by S(F) = min_w C·L(w) + ½ wᵀA_F w, then ``base`` on the chosen features.

    A is the absolute Pearson correlation of features, so similar features pay for large weights together.
    Forward: the feature that lowers S most comes in, if S falls by more than ``eps``; else the search ends.
    Backward, after each forward step: as long as the feature whose loss hurts least raises S by less than
    ``eps``, it goes out. The search also ends with K features, or after as many forward steps as there are
    features. Of equals the earlier column comes in and the later goes out.

    Parameters
    ----------
    base : linear ranker, optional
        The ranker around which features are chosen, and which is fitted on them in the end; default
        ``RankSVM()``.
    K : int
        Most features.
    eps : float
        What a feature must be worth.
    C : float
        Weight of the loss.
    loss : "squared_hinge", "cost_sensitive_listmle" or "listnet"
        L, as a mean over pairs or queries.
    weights : "joint" or "base", optional
        The w over which S is the minimum: all weights on F, exactly, by Newton's method; or the multiples
        t·w, t ≥ 0, of the weights that ``base`` learns on F, which works around any linear ranker but fits it
        on every set that is tried. None: "base" if one is given, else "joint".
    similarity : name of SIMILARITIES or array
        A. If it is not positive semidefinite, which absolute correlations need not be, the nearest matrix
        that is takes its place.

    Attributes
    ----------
    steps_ : tuple of SelectionStep
        Features in and out, with S after each step.
    value_ : float
        S of the chosen features.
    similarity_ : array
        A as used.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    Notes
    -----
    Both searches try features in the order of a bound on what they can change and stop where none can do
    better than the best found: the result is that of trying all.

    References
    ----------
    The algorithm is Algorithm 2 of the sparse cost-sensitive ListMLE paper, which prints both inequalities
    the other way round (it would take in features that do not help), does not say which feature to try, and
    takes absolute correlations to be positive semidefinite.
    """

    weighs_documents = True
    chooses_by_base: ClassVar[bool] = True

    steps_: tuple[SelectionStep, ...] = field(init=False)
    value_: float = field(init=False)
    similarity_: FloatArray = field(init=False)

    base: Any = None
    K: Count = 10
    eps: NotNegative = 0.005
    C: Positive = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    weights: str | None = None
    similarity: Any = "pearson"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        similarity = similarity_measure(self.similarity, data.n_features)(data, query_weight)
        self.similarity_ = settle_definiteness(similarity, "project")
        criterion = self._criterion(data, query_weight)
        best, steps = forward_backward(criterion, usable, self.K, self.eps)
        self.value_ = best.value
        self.steps_ = tuple(
            SelectionStep(action, j, data.feature_names[j], value) for action, j, value in steps
        )
        return np.array(best.columns, dtype=np.int64)

    def _criterion(self, data: Dataset, query_weight: FloatArray | None) -> Criterion:
        loss = lookup({**LOSSES, **BASELINE_LOSSES}, self.loss, "loss")()
        objective = make_objective(data, loss, query_weight)
        criteria: dict[str, Criterion] = {
            "joint": JointMinimum(objective, self.C, self.similarity_),
            "base": AlongBase(objective, self.C, self.similarity_, self.base, data, query_weight),
        }
        default = "joint" if self.base is None else "base"
        return lookup(criteria, self.weights or default, "weights")

    def _advice(self) -> str:
        return f"no feature lowers S by more than `eps={self.eps:g}`; lower it or raise `C={self.C:g}`"


Move = tuple[Literal["in", "out"], int, float]


def forward_backward(criterion: Criterion, usable: IntArray, K: int, eps: float) -> tuple[Subset, list[Move]]:
    """The chosen set, and every accepted step (in or out, feature, S after it)."""
    current, moves = criterion.empty, list[Move]()
    for _ in range(len(usable)):
        grown = _best_addition(criterion, current, usable)
        if grown is None or not current.value - grown.value > eps:
            break
        current = grown
        moves.append(("in", current.columns[-1], current.value))
        current = _drop_useless(criterion, current, eps, moves)
        if len(current.columns) >= K:
            break
    return current, moves


def _best_addition(criterion: Criterion, current: Subset, usable: IntArray) -> Subset | None:
    """The set with one feature more and the least S; features that cannot win any more are not tried."""
    bound, tie = criterion.most_gain(current), TIE * current.value
    others = usable[~np.isin(usable, current.columns)]
    tried, least = list[Subset](), np.inf
    for j in others[np.argsort(-bound[others], kind="stable")]:
        if current.value - least > bound[j] + tie:
            break
        tried.append(criterion.grow(current, int(j)))
        least = min(least, tried[-1].value)
    best = (subset for subset in tried if subset.value <= least + tie)
    return min(best, key=lambda subset: subset.columns[-1], default=None)


def _drop_useless(criterion: Criterion, current: Subset, eps: float, moves: list[Move]) -> Subset:
    while current.columns:
        feature, smaller = _best_removal(criterion, current, eps)
        if smaller is None:
            break
        current = smaller
        moves.append(("out", feature, current.value))
    return current


def _best_removal(criterion: Criterion, current: Subset, eps: float) -> tuple[int, Subset | None]:
    """The feature without which S is least, and the set without it; None if S then rises by eps or more."""
    bound, tie = criterion.least_rise(current), TIE * current.value
    tried, limit = list[tuple[int, Subset]](), current.value + eps
    for i in np.argsort(bound, kind="stable"):
        if current.value + bound[i] > limit + tie:
            break
        tried.append((current.columns[i], criterion.shrink(current, current.columns[i])))
        limit = min(limit, tried[-1][1].value)
    best = (pair for pair in tried if pair[1].value <= limit + tie and pair[1].value - current.value < eps)
    return max(best, key=lambda pair: pair[0], default=(-1, None))
