"""Selectors that fit rankers on candidate sets of features, or on subsamples of the queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from joblib import Parallel, delayed

from ranksieve._parallel import map_blocks, use_threads
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.baselines.boosting import LambdaMART, import_lightgbm, query_weight_with_pairs
from ranksieve.baselines.filters import greedy
from ranksieve.baselines.kernels import dcg_along
from ranksieve.baselines.losses import BASELINE_LOSSES
from ranksieve.baselines.selector import (
    NO_VARYING_FEATURE,
    FeatureSelector,
    Selection,
    base_attributes,
    check_size,
    fit_on,
    largest,
    make_base,
)
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, ParameterError, lookup, warn_caller
from ranksieve.losses import LOSSES
from ranksieve.losses.base import NO_PAIRS
from ranksieve.metrics import Evaluator, MetricSpec, parse
from ranksieve.metrics.table import dcg
from ranksieve.objective import LocalObjective, Objective, Point, make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1, Quadratic
from ranksieve.penalties.similarity import apply_psd_policy
from ranksieve.rankers.base import Attributes
from ranksieve.rankers.measures import similarity_measure
from ranksieve.rankers.parameters import (
    BoundedCount,
    Count,
    Interval,
    NotNegative,
    Positive,
    Seed,
    Share,
    one_of,
)
from ranksieve.solvers import DenseNewton, Problem

NEWTON_TOL = 1e-12  # relative to S
MAX_NEWTON_STEPS = 100
SINGULAR_SHARE = 1e-10  # values below this share of the largest one may be 0


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """A set of features with its minimum S (``value``), and the weights and point at the minimum."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float
    point: Point


@dataclass(frozen=True, eq=False)
class Criterion(ABC):
    """S(F) = min of C·L(w) + ½ wᵀA_F w over a set of w, for forward and backward steps."""

    objective: Objective
    C: float
    similarity: FloatArray

    @property
    def empty(self) -> CandidateSet:
        """The empty set."""
        zero = self.objective.at_zero
        return CandidateSet((), np.empty(0), self.C * zero.value, zero)

    @abstractmethod
    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> CandidateSet:
        """Compute S of these columns, at least one."""

    def grow(self, subset: CandidateSet, j: int) -> CandidateSet:
        """Return the set with feature j appended."""
        return self.minimum((*subset.columns, j), np.append(subset.w, 0.0))

    def shrink(self, subset: CandidateSet, j: int) -> CandidateSet:
        """Return the set without feature j."""
        keep = [column != j for column in subset.columns]
        columns = tuple(column for column in subset.columns if column != j)
        return self.minimum(columns, subset.w[keep]) if columns else self.empty

    def max_decrease(self, subset: CandidateSet) -> FloatArray:
        """Return an upper bound on the decrease of S if each feature is added."""
        return np.full(len(self.similarity), np.inf)

    def min_increase(self, subset: CandidateSet) -> FloatArray:
        """Return a lower bound on the increase of S if each feature of the subset is removed."""
        return np.full(len(subset.columns), -np.inf)


@dataclass(frozen=True, eq=False)
class JointMinimum(Criterion):
    """The minimum over all weights, for a convex loss L and a positive semidefinite A."""

    def max_decrease(self, subset: CandidateSet) -> FloatArray:
        """Return r_j²/(2σ_j), r = C∇L + A_{·F}w and σ_j = A_jj − A_jF A_FF⁻¹ A_Fj.

        L lies above its tangent at the minimum over F. If the tangent replaces L, the minimum over F ∪ j is
        that of a quadratic function, r_j²/(2σ_j) below S(F). If σ_j may be 0 there is no bound: infinity.
        """
        F, diagonal = list(subset.columns), np.diag(self.similarity)
        across, inverse = self.similarity[F], _inverse(self.similarity[np.ix_(F, F)])
        bound = np.full(len(diagonal), np.inf)
        if inverse is not None:
            residual = self.C * self.objective.gradient(subset.point) + subset.w @ across
            unexplained = diagonal - np.einsum("ij,ij->j", across, inverse @ across)
            usable = unexplained > SINGULAR_SHARE * np.max(diagonal)
            np.divide(residual**2, 2.0 * unexplained, out=bound, where=usable)
        return bound

    def min_increase(self, subset: CandidateSet) -> FloatArray:
        """Return w_j²/(2 (A_FF⁻¹)_jj), the minimum of ½ (v − w)ᵀA_FF(v − w) over v with v_j = 0.

        This is the increase of S(F) away from its minimum w that is due to the quadratic term alone.
        """
        inverse = _inverse(self.similarity[np.ix_(subset.columns, subset.columns)])
        return np.zeros_like(subset.w) if inverse is None else subset.w**2 / (2.0 * np.diag(inverse))

    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> CandidateSet:
        X = np.column_stack([self.objective.features.column(j) for j in columns])
        A = self.similarity[np.ix_(columns, columns)]
        point, value = minimise(LocalObjective(X, self.objective.loss), self.C, A, start)
        return CandidateSet(columns, point.w, value, point)


@dataclass(frozen=True, eq=False)
class AlongBase(Criterion):
    """S(F) = min_{t ≥ 0} C·L(tw) + ½ t² wᵀA_F w, w the weights that ``base`` learns on F.

    The scale t is needed because the scale of a ranker's weights is arbitrary. The ranker may be better with
    fewer features, so there are no bounds on the change of S.
    """

    base: Any
    data: Dataset
    query_weight: FloatArray | None

    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> CandidateSet:
        order: IntArray = np.sort(columns)
        base = fit_on(make_base(self.base), self.data, order, self.query_weight)
        w = base.coef_[np.searchsorted(order, columns)]
        scores = sum(weight * self.objective.features.column(j) for weight, j in zip(w, columns, strict=True))
        line = LocalObjective(np.reshape(scores, (-1, 1)), self.objective.loss)
        size = w @ self.similarity[np.ix_(columns, columns)] @ w
        point, value = minimise(line, self.C, np.array([[size]]), np.zeros(1))
        scale = point.w[0]
        return CandidateSet(columns, scale * w, value if scale > 0 else self.empty.value, point)


def minimise(part: Objective, C: float, A: FloatArray, start: FloatArray) -> tuple[Point, float]:
    """Return the point and the value of min_w C·L(w) + ½ wᵀAw."""
    result = DenseNewton(NEWTON_TOL, MAX_NEWTON_STEPS).solve(Problem(part, Quadratic(A / C)), start)
    return result.point, C * result.objective


def _inverse(A: FloatArray) -> FloatArray | None:
    """Return A⁻¹, or None if A may be singular."""
    values = np.linalg.eigvalsh(A)
    if np.any(values <= SINGULAR_SHARE * np.max(values, initial=0.0)):
        return None
    return np.asarray(np.linalg.inv(A), dtype=np.float64)


TIE_SHARE = 1e-10  # values of S with a smaller relative difference are ties


@dataclass(frozen=True)
class SelectionStep:
    """One accepted step: the feature that was added or removed, and S after the step."""

    action: Literal["in", "out"]
    feature: int
    name: str
    objective: float


@dataclass(eq=False, repr=False)
class FBPCRank(FeatureSelector):
    """Forward–backward selection by S(F) = min_w C·L(w) + ½ wᵀA_F w, then ``base`` on the selected features.

    A is the matrix of absolute Pearson correlations of features, so that large weights of similar features
    are penalised. Forward step: add the feature that lowers S most if S decreases by more than ``tol``;
    otherwise the search ends. Backward steps after each forward step: remove the feature whose removal raises
    S least, as long as S increases by less than ``tol``. The search also ends at ``max_features``, or after
    as many forward steps as there are features. In ties the first column is added and the last one removed.

    Parameters
    ----------
    base : linear ranker, optional
        The ranker fitted on the selected features, and during the selection if ``weights`` is "base"; default
        ``RankSVM()``.
    max_features : int
        Maximum number of features.
    tol : float
        Minimum change of S for which a feature is added or kept.
    C : float
        Weight of the loss.
    loss : "squared_hinge", "cost_sensitive_listmle" or "listnet"
        L, as a mean over pairs or queries.
    weights : "joint" or "base", optional
        The w over which S is minimised. "joint": all weights on F, exactly, by Newton's method. "base": the
        multiples t·w, t ≥ 0, of the weights that ``base`` learns on F; this works with any linear ranker but
        fits it on every set tried. None: "base" if a base is given, else "joint".
    similarity : name of SIMILARITIES or array
        A. If it is not positive semidefinite, as absolute correlations may be, the nearest positive
        semidefinite matrix is used.

    Attributes
    ----------
    steps_ : tuple of SelectionStep
        Features added and removed, with S after each step.
    value_ : float
        S of the selected features.
    similarity_ : array
        A as used.
    selected_, base_, coef_
        As in every selector: columns in order of selection, the fitted base, one weight per column of X.

    Notes
    -----
    Each step tries features in the order of a bound on the change of S, and stops when no remaining feature
    can be better than the best so far; the result is the same as if all were tried.

    References
    ----------
    The algorithm is Algorithm 2 of the sparse cost-sensitive ListMLE paper, which prints both inequalities
    the wrong way round (it would add features that do not help), does not state which feature to try, and
    assumes that matrices of absolute correlations are positive semidefinite.
    """

    refit_parameters: ClassVar[frozenset[str]] = frozenset()

    base: Any = None
    max_features: Count = 10
    tol: NotNegative = 0.005
    C: Positive = 1.0
    _: KW_ONLY
    loss: str = "squared_hinge"
    weights: str | None = None
    similarity: Any = "pearson"

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        similarity = similarity_measure(self.similarity, data.n_features)(data, query_weight)
        similarity = apply_psd_policy(similarity, "project")
        criterion = self._criterion(data, query_weight, similarity)
        best, moves = forward_backward(criterion, usable, self.max_features, self.tol)
        steps = (SelectionStep(action, j, data.feature_names[j], value) for action, j, value in moves)
        attributes = {"similarity_": similarity, "value_": best.value, "steps_": tuple(steps)}
        return np.array(best.columns, dtype=np.int64), attributes

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _criterion(self, data: Dataset, query_weight: FloatArray | None, similarity: FloatArray) -> Criterion:
        loss = lookup({**LOSSES, **BASELINE_LOSSES}, self.loss, "loss")()
        objective = make_objective(data, loss, query_weight)
        criteria: dict[str, Criterion] = {
            "joint": JointMinimum(objective, self.C, similarity),
            "base": AlongBase(objective, self.C, similarity, self.base, data, query_weight),
        }
        default = "joint" if self.base is None else "base"
        return lookup(criteria, self.weights or default, "weights")

    def _advice(self, choice: Attributes) -> str:
        return f"no feature lowers S by more than `tol={self.tol:g}`; lower it or raise `C={self.C:g}`"


Move = tuple[Literal["in", "out"], int, float]


def forward_backward(
    criterion: Criterion, usable: IntArray, max_features: int, tol: float
) -> tuple[CandidateSet, list[Move]]:
    """Return the selected set and every accepted step (in or out, feature, S after it)."""
    current, moves = criterion.empty, list[Move]()
    for _ in range(len(usable)):
        grown = _best_addition(criterion, current, usable)
        if grown is None or not current.value - grown.value > tol:
            break
        current = grown
        moves.append(("in", current.columns[-1], current.value))
        feature, smaller = _best_removal(criterion, current, tol)
        while smaller is not None:
            current = smaller
            moves.append(("out", feature, current.value))
            feature, smaller = _best_removal(criterion, current, tol)
        if len(current.columns) >= max_features:
            break
    return current, moves


def _best_addition(criterion: Criterion, current: CandidateSet, usable: IntArray) -> CandidateSet | None:
    """Return the set with one more feature and the smallest S; skip features that cannot be the best."""
    bound, tie = criterion.max_decrease(current), TIE_SHARE * current.value
    others = usable[~np.isin(usable, current.columns)]
    tried, least = list[CandidateSet](), np.inf
    for j in others[np.argsort(-bound[others], kind="stable")]:
        if current.value - least > bound[j] + tie:
            break
        tried.append(criterion.grow(current, int(j)))
        least = min(least, tried[-1].value)
    best = (subset for subset in tried if subset.value <= least + tie)
    return min(best, key=lambda subset: subset.columns[-1], default=None)


def _best_removal(criterion: Criterion, current: CandidateSet, tol: float) -> tuple[int, CandidateSet | None]:
    """Return the feature whose removal gives the smallest S, and the set without it.

    The set is None if S would increase by ``tol`` or more.
    """
    bound, tie = criterion.min_increase(current), TIE_SHARE * current.value
    tried, limit = list[tuple[int, CandidateSet]](), current.value + tol
    for i in np.argsort(bound, kind="stable"):
        if current.value + bound[i] > limit + tie:
            break
        tried.append((current.columns[i], criterion.shrink(current, current.columns[i])))
        limit = min(limit, tried[-1][1].value)
    best = (pair for pair in tried if pair[1].value <= limit + tie and pair[1].value - current.value < tol)
    return max(best, key=lambda pair: pair[0], default=(-1, None))


NDCG_TIE = 1e-9  # values of NDCG that differ by less are ties
MAX_CYCLES = 10  # of coordinate ascent over the weights of a set
WEIGHT_STEPS = np.outer(2.0 ** np.arange(-5, 3), [1.0, -1.0]).ravel()  # smaller steps first
NDCG_ALWAYS_ZERO = (
    "NDCG@{cutoff} is 0 for every ranking in the {profile} profile, so it cannot guide the search; lower it "
    "(NDCG@k is 0 for lists with fewer than k documents)"
)


@dataclass(eq=False, repr=False)
class BFSWrapper(FeatureSelector):
    """Find disjoint sets of features by best-first search, then fit ``base`` on one combined feature per set.

    The value of a set is the NDCG on the training queries reached by coordinate ascent over the weights of
    its features. The search starts with the empty set. Each step expands the set with the largest value among
    those not yet expanded: it improves the weights of the set and generates the sets with one feature more or
    less. A new set is first evaluated with the best weight of the added feature and the other weights
    unchanged. The search ends when ``patience`` sets in a row do not improve on the best one by more than
    ``tol``. The features of the best set are then removed, and the next search uses the others.

    The scores of each set, with weights of absolute sum 1, are a combined feature. Because the scores and
    ``base`` are both linear, the weights of ``base`` give weights of the original features.

    Parameters
    ----------
    n_subsets : int
        Maximum number of sets; there are fewer if no features are left.
    base : linear ranker, optional
        The ranker fitted on the combined features; default ``RankSVM()``.
    cutoff : int
        Number of ranks that count in NDCG, with the metric conventions of the data.
    patience : int
        Number of sets in a row without improvement after which the search ends.
    tol : float
        Minimum improvement.

    Attributes
    ----------
    subsets_ : tuple of arrays
        Columns of each set, ascending.
    values_ : array
        NDCG of each set.
    combination_ : array (features × sets)
        Weights of the features in the combined features, which are X @ combination_.
    base_ : ranker
        The base, fitted on the combined features.
    gap_ : float
        NaN: the gap of the base is only about the weights of the combined features.
    selected_, coef_
        As in every selector: columns, set by set; one weight per column of X, combination_ @ base_.coef_.

    References
    ----------
    V. Dang, W. B. Croft: Feature Selection for Document Ranking using Best First Search and Coordinate
    Ascent, SIGIR workshop on feature generation and selection, 2010. R. Kohavi, G. H. John: Wrappers for
    feature subset selection, Artificial Intelligence 97, 1997.
    """

    n_subsets: Count = 3
    base: Any = None
    _: KW_ONLY
    cutoff: Count = 5
    patience: Count = 5
    tol: NotNegative = 1e-3

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        weight = query_weight_with_pairs(data, query_weight)
        ascent = CoordinateAscent(data, usable, self.cutoff, weight)
        best_sets, unused = list[WeightedSet](), np.arange(len(usable))
        while len(unused) and len(best_sets) < self.n_subsets:
            best_sets.append(best_first(START_SET, ascent.make_expand(unused), self.patience, self.tol))
            unused = np.setdiff1d(unused, best_sets[-1].columns)
        subsets = tuple(usable[list(each.columns)] for each in best_sets)
        combination = np.zeros((data.n_features, len(subsets)))
        for number, (columns, each) in enumerate(zip(subsets, best_sets, strict=True)):
            combination[columns, number] = each.w / np.abs(each.w).sum()
        values = np.array([each.value for each in best_sets])
        attributes = {"subsets_": subsets, "values_": values, "combination_": combination}
        return np.concatenate(subsets), attributes

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "grades")

    def _fit_base(
        self, base: Any, data: Dataset, query_weight: FloatArray | None, choice: Attributes
    ) -> Attributes:
        combination = choice["combination_"]
        names = [f"set {number + 1}" for number in range(combination.shape[1])]
        combined = data.replace_features(data.X @ combination, names)
        fitted = fit_on(base, combined, np.arange(len(names)), query_weight)
        return {**base_attributes(fitted, np.asarray(combination @ fitted.coef_)), "gap_": np.nan}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return None


@dataclass(frozen=True, eq=False)
class WeightedSet:
    """A set of features, ascending, with a weight for each and the value (NDCG) of these weights."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float


START_SET = WeightedSet((), np.empty(0), -np.inf)
Expand = Callable[[WeightedSet], tuple[WeightedSet, Iterable[WeightedSet]]]
"""Returns a set with improved weights, and its neighbours."""


def best_first(start: WeightedSet, expand: Expand, patience: int, tol: float) -> WeightedSet:
    """Return the best set expanded by the search; ties are expanded in the order of generation."""
    queue, generated, best, n_failed = [start], {start.columns}, start, 0
    while queue and n_failed < patience:
        current = queue.pop(int(np.argmax([each.value for each in queue])))
        current, neighbours = expand(current)
        better = current.value > best.value + tol
        best, n_failed = (current, 0) if better else (best, n_failed + bool(best.columns))
        new = [each for each in neighbours if each.columns not in generated]
        queue += new
        generated.update(each.columns for each in new)
    return best


class CoordinateAscent:
    """Coordinate ascent over weights for NDCG on the training queries."""

    def __init__(self, data: Dataset, columns: IntArray, cutoff: int, query_weight: FloatArray) -> None:
        evaluator, spec = Evaluator(data), MetricSpec("ndcg", cutoff)
        judged, self._profile = evaluator.judged, evaluator.profile
        ideal = dcg(judged.ideal, cutoff, self._profile)
        counts = (ideal > 0) & ~spec.too_short(judged, self._profile)
        self._query_factor = np.zeros(data.n_queries)  # weight / ideal DCG
        np.divide(query_weight, ideal * query_weight.sum(), out=self._query_factor, where=counts)
        if not self._query_factor.any():
            reason = NDCG_ALWAYS_ZERO.format(cutoff=cutoff, profile=self._profile.name)
            raise ParameterError("cutoff", cutoff, reason)
        self._gains = judged.gains(self._profile)
        self._discounts = np.asarray(self._profile.discount(np.arange(1, cutoff + 1)), dtype=np.float64)
        self._queries, self._weight = data.queries, query_weight
        self._X = np.ascontiguousarray(dense_block(data.X, data.queries.order, columns).T)
        self._spread = np.array([self._spread_of(column) for column in self._X])

    def make_expand(self, allowed: IntArray) -> Expand:
        """Return the function that expands sets of the allowed columns."""

        def expand(current: WeightedSet) -> tuple[WeightedSet, Iterable[WeightedSet]]:
            improved = self.improve(current)
            return improved, [*self._larger_sets(improved, allowed), *self._smaller_sets(improved)]

        return expand

    def improve(self, current: WeightedSet) -> WeightedSet:
        """Take the best step of one weight after another, until a cycle over all weights changes nothing."""
        columns, w, value = current.columns, current.w.copy(), current.value
        X = self._X[list(columns)]
        for _ in range(MAX_CYCLES if len(columns) > 1 else 0):
            previous = value
            for i, j in enumerate(columns):
                others = np.where(np.arange(len(w)) == i, 0.0, w) @ X
                weights = w[i] + self._unit(others, j) * WEIGHT_STEPS
                (values,) = self._along(others, np.array([j]), weights[None])
                values[weights == 0.0] = -np.inf
                best = first_largest(values)
                if values[best] > value + NDCG_TIE:
                    w[i], value = weights[best], values[best]
            if value == previous:
                break
        return WeightedSet(columns, w, value)

    def _larger_sets(self, current: WeightedSet, allowed: IntArray) -> Iterable[WeightedSet]:
        """Yield the sets with one more feature, in column order."""
        others = np.setdiff1d(allowed, current.columns)
        if not len(others):
            return
        scores = current.w @ self._X[list(current.columns)]
        steps = np.array([self._unit(scores, j) * WEIGHT_STEPS for j in others])
        if not current.columns:
            steps = np.tile([1.0, -1.0], (len(others), 1))
        for j, step, values in zip(others.tolist(), steps, self._along(scores, others, steps), strict=True):
            best = first_largest(values)
            order = np.argsort([*current.columns, j])
            columns = tuple(np.array([*current.columns, j])[order].tolist())
            yield WeightedSet(columns, np.append(current.w, step[best])[order], float(values[best]))

    def _smaller_sets(self, current: WeightedSet) -> Iterable[WeightedSet]:
        """Yield the sets with one feature less, in column order."""
        columns = np.array(current.columns, dtype=np.int64)
        if len(columns) < 2:
            return
        values = self._along(current.w @ self._X[columns], columns, -current.w[:, None])
        for i, (value,) in enumerate(values):
            rest = current.columns[:i] + current.columns[i + 1 :]
            yield WeightedSet(rest, np.delete(current.w, i), float(value))

    def _unit(self, scores: FloatArray, j: int) -> float:
        """Return the power of 2 nearest to the weight that gives feature j the spread of the scores."""
        spread = self._spread_of(scores)
        return float(2.0 ** np.round(np.log2(spread / self._spread[j]))) if spread > 0 else 1.0

    def _spread_of(self, scores: FloatArray) -> float:
        """Return the standard deviation of scores within queries, times a constant."""
        starts, sizes = self._queries.offsets[:-1], self._queries.sizes
        centred = scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
        return float(np.sqrt(self._weight @ np.add.reduceat(centred**2, starts)))

    def _along(self, scores: FloatArray, columns: IntArray, steps: FloatArray) -> FloatArray:
        """Return the value of scores + step · column for each column and step (columns × steps)."""
        values = np.empty(steps.shape)

        def work(first: int, last: int) -> None:
            for i in range(first, last):
                dcg_along(
                    scores, self._X[columns[i]], steps[i], self._gains, self._queries.offsets,
                    self._discounts, self._query_factor, values[i],
                )  # fmt: skip

        map_blocks(work, np.arange(len(columns) + 1))
        return values


def first_largest(values: FloatArray) -> int:
    """Return the first index whose value is the largest, up to NDCG_TIE."""
    return int(np.argmax(values >= values.max() - NDCG_TIE))


@dataclass(eq=False, repr=False)
class BRTree(FeatureSelector):
    """Select features by their importance in boosted regression trees, then fit ``base`` on them.

    The importance of a feature is the reduction of the squared error of the labels by its splits, relative to
    that by all splits. ``search`` determines how it is used:

    - "random": starting from random subsets, the least important features are removed step by step, with new
      trees after each step, until ``max_features`` are left. The trees are fitted on two thirds of the
      queries; the subset whose trees have the best metric on the other queries is selected.
    - "greedy": as in :class:`GAS`, select the feature with the largest importance minus 2c times its
      similarity to the selected ones. With c = 0 these are the most important features.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.
    search : "random" or "greedy"
        How features are selected.
    n_subsets : int
        Number of random subsets.
    share : float
        Initial size of a subset: ``max_features`` plus this share of the other features.
    drop : float
        Share of the features of a subset that are removed per step; at least one feature.
    metric : str
        Metric by which random subsets are compared, with the metric conventions of the data.
    c : float
        Weight of similarity relative to importance in the greedy search.
    similarity : "kendall", another name of SIMILARITIES, or array
        Similarity of features in the greedy search.
    n_rounds, n_leaves, learning_rate
        Number of trees, maximum number of leaves per tree, and shrinkage, as in :class:`LambdaMART`.
    n_jobs : int, optional
        Number of LightGBM threads, as in :class:`LambdaMART`; the many small fits gain little from more than
        one.
    random_state : int
        Seed of the subsets and of the queries on which they are compared.

    Attributes
    ----------
    importance_ : array
        Importance of the features in the last trees of the selected subset; in the greedy search, in trees on
        all features.
    values_ : array
        The metric of each random subset; empty after a greedy search.
    selected_, base_, coef_
        As in every selector: columns in order of selection (random: by importance), the fitted base, one
        weight per column of X.

    References
    ----------
    F. Pan, T. Converse, D. Ahn, F. Salvetti, G. Donato: Feature Selection for Ranking using Boosted Trees,
    CIKM 2009. J. H. Friedman: Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29(5), 2001.
    """

    max_features: Count = 10
    base: Any = None
    search: Annotated[str, one_of(("random", "greedy"))] = "random"
    _: KW_ONLY
    n_subsets: Count = 3
    share: Share = 0.75
    drop: Share = 0.5
    metric: str = "ndcg@5"
    c: NotNegative = 0.0
    similarity: Any = "kendall"
    n_rounds: Count = 20
    n_leaves: Annotated[int, Interval(Integral, 2, None, closed="left")] = 7
    learning_rate: Positive = 0.1
    n_jobs: int | None = 1
    random_state: Seed = 0

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        import_lightgbm("BRTree")
        check_size(self.max_features, usable, data)
        if not data.pairs_per_query.any():
            raise DataError(None, None, NO_PAIRS)
        search = self._greedy if self.search == "greedy" else self._random
        selected, importance, values = search(data, usable, query_weight)
        return selected, {"importance_": importance, "values_": values}

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "grades")

    def _greedy(
        self, data: Dataset, usable: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        measure = similarity_measure(self.similarity, data.n_features)
        similarity = measure(data, query_weight) if self.c > 0 else np.eye(data.n_features)
        importance = gain_importance(self._trees(data, usable, query_weight), usable, data.n_features)
        selected, _ = greedy(importance, similarity, self.c, usable, self.max_features)
        return selected, importance, np.empty(0)

    def _random(
        self, data: Dataset, usable: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        rng = np.random.default_rng(self.random_state)
        in_train, in_held_out = split_queries(data, rng)
        train, held_out = data.select_queries(in_train), data.select_queries(in_held_out)
        train_weight = None if query_weight is None else query_weight[in_train]
        held_out_weight = None if query_weight is None else query_weight[in_held_out]
        evaluator, spec = Evaluator(held_out), parse(self.metric)
        size = self.max_features + int(np.ceil(self.share * (len(usable) - self.max_features)))
        subsets, values = [], []
        for _ in range(self.n_subsets):
            first = np.sort(rng.choice(usable, size, replace=False))
            columns, trees = self._eliminate(train, first, train_weight)
            (per_query,) = evaluator.per_query(trees.predict(held_out.select_features(columns)), [spec])
            subsets.append((columns, trees))
            values.append(np.average(per_query, weights=held_out_weight))
        columns, trees = subsets[int(np.argmax(values))]
        importance = gain_importance(trees, columns, data.n_features)
        return largest(importance, columns, self.max_features), importance, np.array(values)

    def _eliminate(
        self, data: Dataset, columns: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, LambdaMART]:
        """Remove the least important columns step by step; return the remaining ones and trees on them."""
        trees = self._trees(data, columns, query_weight)
        while len(columns) > self.max_features:
            n_kept = max(self.max_features, min(len(columns) - 1, int((1.0 - self.drop) * len(columns))))
            importance = gain_importance(trees, columns, data.n_features)
            columns = np.sort(largest(importance, columns, n_kept))
            trees = self._trees(data, columns, query_weight)
        return columns, trees

    def _trees(self, data: Dataset, columns: IntArray, query_weight: FloatArray | None) -> LambdaMART:
        return LambdaMART(
            self.n_rounds,
            n_leaves=self.n_leaves,
            learning_rate=self.learning_rate,
            options={"objective": "regression"},  # on the indices of the label levels
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(data.select_features(columns), query_weight=query_weight)


def split_queries(data: Dataset, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """Return masks of the training queries and of the held-out queries, a third of those with pairs.

    If only one query has pairs, it is in both.
    """
    held_out = np.zeros(data.n_queries, dtype=bool)
    with_pairs = rng.permutation(np.flatnonzero(data.pairs_per_query))
    held_out[with_pairs[: max(1, len(with_pairs) // 3)]] = True
    return (~held_out if len(with_pairs) > 1 else np.ones_like(held_out)), held_out


def gain_importance(trees: LambdaMART, columns: IntArray, n_features: int) -> FloatArray:
    """Return the share of each feature in the gains of trees fitted on ``columns``."""
    gains = trees.booster_.feature_importance("gain")
    importance = np.zeros(n_features)
    importance[columns] = gains / max(float(gains.sum()), np.finfo(np.float64).tiny)
    return importance


@dataclass(eq=False, repr=False)
class StabilitySelection(FeatureSelector):
    """Select the features that the certified ℓ1 path selects in at least ``threshold`` of random subsamples.

    Π_j(α) is the share of subsamples of queries in which the minimiser of f(w) + α‖w‖₁ has w_j ≠ 0, f the
    mean squared hinge over pairs; all subsamples use the same grid of α. Feature j is stable if
    max_α Π_j(α) ≥ π, the threshold. With q the mean number of features that a subsample selects anywhere on
    the grid and d candidate features, the expected number V of falsely selected features is at most
    q²/((2π − 1)d), if the selection is not worse than random and false features are exchangeable (Theorem 1
    of the paper, for share = 0.5).

    Parameters
    ----------
    n_subsamples : int
        Number of subsamples.
    share : float
        Share of the queries in each subsample, drawn without replacement among those that have pairs.
    threshold : float
        π, above 0.5 and at most 1.
    max_features : int, optional
        Bounds q: the path of a subsample ends at the last point before it has selected more than this many
        features in total; the features of that point are used for the smaller α.
    base : linear ranker, optional
        Ranker of the second stage; default ``RankSVM()``.
    n_alphas, min_ratio, alphas
        The grid: from the smallest α at which no feature is selected on all data, down to ``min_ratio`` times
        it, evenly spaced in log α; or the grid itself (``alphas``). The smaller the last α, the larger q and
        the weaker the bound.
    tol : float
        Largest duality gap of each point, relative to the objective.
    n_jobs : int, optional
        Number of processes, as in joblib. The result does not depend on it.
    random_state : int
        Seed of the subsamples.

    Attributes
    ----------
    frequencies_ : array (n_alphas × d)
        Π.
    alphas_ : array
        The grid, descending.
    stability_ : array
        max_α Π_j(α) of each feature.
    q_ : float
        Mean number of features that a subsample selects.
    error_bound_ : float
        q²/((2π − 1)d), d the number of features that vary within a query.
    selected_, base_, coef_
        As in every selector: stable columns, the most stable first; the fitted base; one weight per column of
        X.

    References
    ----------
    N. Meinshausen, P. Bühlmann: Stability selection, Journal of the Royal Statistical Society B 72(4), 2010.
    """

    refit_parameters: ClassVar[frozenset[str]] = frozenset({"base", "threshold"})

    stability_: FloatArray = field(init=False)
    q_: float = field(init=False)

    n_subsamples: BoundedCount = 50
    share: Share = 0.5
    threshold: Annotated[float, Interval(Real, 0.5, 1, closed="right")] = 0.7
    _: KW_ONLY
    max_features: Count | None = None
    base: Any = None
    n_alphas: BoundedCount = 30
    min_ratio: Share = 0.1
    alphas: Any = None
    tol: Positive = 1e-4
    n_jobs: int | None = None
    random_state: Seed = 0

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        alphas = self._grid(data, query_weight)
        jobs = (
            delayed(selected_along)(data, queries, query_weight, alphas, self.tol, self.max_features)
            for queries in self._subsamples(data)
        )
        runs: list[BoolArray] = list(Parallel(n_jobs=self.n_jobs)(jobs))
        frequencies = np.mean(runs, axis=0)
        stability: FloatArray = frequencies.max(axis=0)
        q = float(np.mean([np.count_nonzero(run.any(axis=0)) for run in runs]))
        attributes = {"frequencies_": frequencies, "alphas_": alphas, "stability_": stability, "q_": q}
        selected, bound = self._stable(stability, q, usable)
        return selected, {**attributes, "error_bound_": bound}

    def _update_selection(self, usable: IntArray) -> Attributes:
        selected, bound = self._stable(self.stability_, self.q_, usable)
        return {"selected_": selected, "error_bound_": bound}

    def _stable(self, stability: FloatArray, q: float, usable: IntArray) -> tuple[IntArray, float]:
        """Return the stable columns, the most stable first, and the bound on the number of false ones."""
        stable = usable[stability[usable] >= self.threshold]
        bound = q**2 / ((2.0 * self.threshold - 1.0) * len(usable))
        return stable[np.argsort(-stability[stable], kind="stable")], bound

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _grid(self, data: Dataset, query_weight: FloatArray | None) -> FloatArray:
        if self.alphas is not None:
            return np.sort(np.asarray(self.alphas, dtype=np.float64))[::-1]
        objective = make_objective(data, query_weight=query_weight)
        largest = L1().alpha_max(objective.gradient(objective.at_zero))
        if not largest > 0:
            raise DataError(None, None, NO_VARYING_FEATURE.format(n=data.n_features))
        return np.asarray(largest * np.logspace(0.0, np.log10(self.min_ratio), self.n_alphas))

    def _subsamples(self, data: Dataset) -> list[IntArray]:
        """Return the query indices of each subsample, ascending."""
        candidates = np.flatnonzero(data.pair_weights > 0)
        size = max(1, int(self.share * len(candidates)))
        if size == len(candidates):
            warn_caller(
                "there is only one query that has pairs, so all subsamples are the same and the selection "
                "frequencies are meaningless; use more queries"
            )
        rng = np.random.default_rng(self.random_state)
        return [np.sort(rng.choice(candidates, size, replace=False)) for _ in range(self.n_subsamples)]

    def _advice(self, choice: Attributes) -> str:
        return (
            f"the largest selection frequency is {choice['stability_'].max():.2f}, below "
            f"`threshold={self.threshold:g}`; lower it or `min_ratio`, or raise `max_features`"
        )


def selected_along(
    data: Dataset,
    queries: IntArray,
    query_weight: FloatArray | None,
    alphas: FloatArray,
    tol: float,
    max_features: int | None,
) -> BoolArray:
    """Return the mask (alphas × features) of features selected by the path on some queries.

    The path is cut off at ``max_features``.
    """
    with use_threads(1):
        path = sparse_path(
            data.select_queries(queries),
            alphas=alphas,
            tol=tol,
            max_features=max_features,
            query_weight=None if query_weight is None else query_weight[queries],
        )
    selected = path.coefs != 0
    limit = data.n_features if max_features is None else max_features
    within = np.count_nonzero(np.logical_or.accumulate(selected), axis=1) <= limit
    n_points = int(np.sum(within))  # the union only grows, so these are the first points
    mask = np.zeros((len(alphas), data.n_features), dtype=bool)
    mask[:n_points] = selected[:n_points]
    mask[n_points:] = selected[n_points - 1] if n_points else False
    return mask
