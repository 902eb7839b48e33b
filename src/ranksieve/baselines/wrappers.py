"""Selectors that rank with each set of features that they try, or with each part of the queries."""

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
from ranksieve.baselines.boosting import LambdaMART, counted_weights, lightgbm_for
from ranksieve.baselines.filters import greedy
from ranksieve.baselines.kernels import dcg_along
from ranksieve.baselines.losses import BASELINE_LOSSES
from ranksieve.baselines.selector import (
    NOTHING_TO_CHOOSE,
    FeatureSelector,
    Selection,
    check_size,
    fit_on,
    fresh_base,
    largest,
    of_base,
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
from ranksieve.penalties.similarity import settle_definiteness
from ranksieve.rankers.base import Attributes
from ranksieve.rankers.measures import similarity_measure
from ranksieve.rankers.parameters import (
    Count,
    CountAtOnce,
    Interval,
    NotNegative,
    Positive,
    Seed,
    Share,
    one_of,
)
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
    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> Subset:
        """The set of these columns, of which there is at least one."""

    def grow(self, subset: Subset, j: int) -> Subset:
        """With feature j, which comes last."""
        return self.minimum((*subset.columns, j), np.append(subset.w, 0.0))

    def shrink(self, subset: Subset, j: int) -> Subset:
        """Without feature j."""
        kept = [column != j for column in subset.columns]
        columns = tuple(column for column in subset.columns if column != j)
        return self.minimum(columns, subset.w[kept]) if columns else self.empty

    def most_gain(self, subset: Subset) -> FloatArray:
        """For each feature, a number that S cannot fall by more than when it joins."""
        return np.full(len(self.similarity), np.inf)

    def least_rise(self, subset: Subset) -> FloatArray:
        """For each feature of the subset, a number that S cannot rise by less than when it leaves."""
        return np.full(len(subset.columns), -np.inf)


@dataclass(frozen=True, eq=False)
class JointMinimum(Criterion):
    """The minimum over all weights, for a convex loss L and a positive semidefinite A."""

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

    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> Subset:
        X = np.column_stack([self.objective.features.column(j) for j in columns])
        A = self.similarity[np.ix_(columns, columns)]
        point, value = minimise(LocalObjective(X, self.objective.loss), self.C, A, start)
        return Subset(columns, point.w, value, point)


@dataclass(frozen=True, eq=False)
class AlongBase(Criterion):
    """S(F) = min_{t ≥ 0} C·L(tw) + ½ t² wᵀA_F w, w the weights that ``base`` learns on F.

    A ranker's weights have no scale of their own, hence the t. With fewer features it may do better, so
    nothing bounds what a feature can change.
    """

    base: Any
    data: Dataset
    query_weight: FloatArray | None

    def minimum(self, columns: tuple[int, ...], start: FloatArray) -> Subset:
        order: IntArray = np.sort(columns)
        base = fit_on(fresh_base(self.base), self.data, order, self.query_weight)
        w = base.coef_[np.searchsorted(order, columns)]
        scores = sum(weight * self.objective.features.column(j) for weight, j in zip(w, columns, strict=True))
        line = LocalObjective(np.reshape(scores, (-1, 1)), self.objective.loss)
        size = w @ self.similarity[np.ix_(columns, columns)] @ w
        point, value = minimise(line, self.C, np.array([[size]]), np.zeros(1))
        scale = point.w[0]
        return Subset(columns, scale * w, value if scale > 0 else self.empty.value, point)


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


TIE_SHARE = 1e-10  # values of S that differ by less than this share are equal


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
    Forward: the feature that lowers S most comes in, if S falls by more than ``tol``; else the search ends.
    Backward, after each forward step: as long as the feature whose loss hurts least raises S by less than
    ``tol``, it goes out. The search also ends with ``max_features``, or after as many forward steps as there
    are features. Of equals the earlier column comes in and the later goes out.

    Parameters
    ----------
    base : linear ranker, optional
        The ranker around which features are chosen, and which is fitted on them in the end; default
        ``RankSVM()``.
    max_features : int
        Most features.
    tol : float
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

    decided_last: ClassVar[frozenset[str]] = frozenset()

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
        similarity = settle_definiteness(similarity, "project")
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
) -> tuple[Subset, list[Move]]:
    """The chosen set, and every accepted step (in or out, feature, S after it)."""
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


def _best_addition(criterion: Criterion, current: Subset, usable: IntArray) -> Subset | None:
    """The set with one feature more and the least S; features that cannot win any more are not tried."""
    bound, tie = criterion.most_gain(current), TIE_SHARE * current.value
    others = usable[~np.isin(usable, current.columns)]
    tried, least = list[Subset](), np.inf
    for j in others[np.argsort(-bound[others], kind="stable")]:
        if current.value - least > bound[j] + tie:
            break
        tried.append(criterion.grow(current, int(j)))
        least = min(least, tried[-1].value)
    best = (subset for subset in tried if subset.value <= least + tie)
    return min(best, key=lambda subset: subset.columns[-1], default=None)


def _best_removal(criterion: Criterion, current: Subset, tol: float) -> tuple[int, Subset | None]:
    """The feature without which S is least, and the set without it; None if S then rises by tol or more."""
    bound, tie = criterion.least_rise(current), TIE_SHARE * current.value
    tried, limit = list[tuple[int, Subset]](), current.value + tol
    for i in np.argsort(bound, kind="stable"):
        if current.value + bound[i] > limit + tie:
            break
        tried.append((current.columns[i], criterion.shrink(current, current.columns[i])))
        limit = min(limit, tried[-1][1].value)
    best = (pair for pair in tried if pair[1].value <= limit + tie and pair[1].value - current.value < tol)
    return max(best, key=lambda pair: pair[0], default=(-1, None))


TIE = 1e-9  # values that differ by less are equal
MAX_CYCLES = 10  # of coordinate ascent over the weights of a set
STEPS = np.outer(2.0 ** np.arange(-5, 3), [1.0, -1.0]).ravel()  # of one weight, the smaller ones first
NO_GUIDE = (
    "NDCG@{cutoff} is 0 for every ranking in the {profile} profile, so it cannot guide the search; lower it "
    "(lists with fewer documents count 0)"
)


@dataclass(eq=False, repr=False)
class BFSWrapper(FeatureSelector):
    """Disjoint sets of features, each found by best-first search, and ``base`` on one new feature per set.

    The value of a set is the NDCG on the training queries that coordinate ascent reaches with a weight for
    each of its features. The search begins without features. It takes the set with the largest value among
    those that were found but not yet taken, improves its weights, and finds the sets with one feature more or
    less; a set is first valued with the best weight of the feature that came in, the others as they were.
    It ends when ``patience`` sets in a row are no better than the best one before by more than ``tol``. The
    features of the best set are put aside, and the next search goes on with the others.

    The scores of each set, with weights of absolute sum 1, are a new feature. ``base`` weighs the new
    features, and because both are linear, its weights become weights of the features themselves.

    Parameters
    ----------
    n_subsets : int
        Most sets; there are fewer if no features are left.
    base : linear ranker, optional
        The ranker of the new features; default ``RankSVM()``.
    cutoff : int
        Ranks that count in NDCG, in the conventions that the data come with.
    patience : int
        Sets in a row that may be no better.
    tol : float
        What counts as better.

    Attributes
    ----------
    subsets_ : tuple of arrays
        Columns of each set, ascending.
    values_ : array
        The NDCG of each set.
    combination_ : array (features × sets)
        The weights of the features in the new ones, which are X @ combination_.
    base_ : ranker
        The base, fitted on the new features.
    gap_ : float
        NaN: what is proven of the base concerns the weights of the new features alone.
    selected_, coef_
        As in every selector: columns, set by set; weights in full width, combination_ @ base_.coef_.

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
        weight = counted_weights(data, query_weight)
        ascent = Ascent(data, usable, self.cutoff, weight)
        best_sets, free = list[Weighted](), np.arange(len(usable))
        while len(free) and len(best_sets) < self.n_subsets:
            best_sets.append(best_first(NOTHING, ascent.explorer(free), self.patience, self.tol))
            free = np.setdiff1d(free, best_sets[-1].columns)
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
        return {**of_base(fitted, np.asarray(combination @ fitted.coef_)), "gap_": np.nan}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return None


@dataclass(frozen=True, eq=False)
class Weighted:
    """A set of features, ascending, with a weight for each and the value that these weights reach."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float


NOTHING = Weighted((), np.empty(0), -np.inf)
Explore = Callable[[Weighted], tuple[Weighted, Iterable[Weighted]]]
"""A set with improved weights, and its neighbours."""


def best_first(start: Weighted, explore: Explore, patience: int, tol: float) -> Weighted:
    """The best set that the search takes; of equal values the one that was found first is taken first."""
    waiting, known, best, waited = [start], {start.columns}, start, 0
    while waiting and waited < patience:
        taken = waiting.pop(int(np.argmax([each.value for each in waiting])))
        taken, neighbours = explore(taken)
        better = taken.value > best.value + tol
        best, waited = (taken, 0) if better else (best, waited + bool(best.columns))
        new = [each for each in neighbours if each.columns not in known]
        waiting += new
        known.update(each.columns for each in new)
    return best


class Ascent:
    """NDCG on the training queries as a function of weights, one of which changes at a time."""

    def __init__(self, data: Dataset, columns: IntArray, cutoff: int, query_weight: FloatArray) -> None:
        evaluator, spec = Evaluator(data), MetricSpec("ndcg", cutoff)
        judged, self._profile = evaluator.judged, evaluator.profile
        ideal = dcg(judged.ideal, cutoff, self._profile)
        counts = (ideal > 0) & ~spec.too_short(judged, self._profile)
        self._worth = np.zeros(data.n_queries)
        np.divide(query_weight, ideal * query_weight.sum(), out=self._worth, where=counts)
        if not self._worth.any():
            reason = NO_GUIDE.format(cutoff=cutoff, profile=self._profile.name)
            raise ParameterError("cutoff", cutoff, reason)
        self._gains = judged.gains(self._profile)
        self._discounts = np.asarray(self._profile.discount(np.arange(1, cutoff + 1)), dtype=np.float64)
        self._queries, self._weight = data.queries, query_weight
        self._X = np.ascontiguousarray(dense_block(data.X, data.queries.order, columns).T)
        self._spread = np.array([self._spread_of(column) for column in self._X])

    def explorer(self, free: IntArray) -> Explore:
        """Explores sets of the free columns."""

        def explore(known: Weighted) -> tuple[Weighted, Iterable[Weighted]]:
            improved = self.improved(known)
            return improved, [*self._grown(improved, free), *self._shrunk(improved)]

        return explore

    def improved(self, known: Weighted) -> Weighted:
        """By the best step of one weight after another, until a cycle over all of them changes nothing."""
        columns, w, value = known.columns, known.w.copy(), known.value
        own = self._X[list(columns)]
        for _ in range(MAX_CYCLES if len(columns) > 1 else 0):
            before = value
            for place, j in enumerate(columns):
                others = np.where(np.arange(len(w)) == place, 0.0, w) @ own
                weights = w[place] + self._unit(others, j) * STEPS
                (values,) = self._along(others, np.array([j]), weights[None])
                values[weights == 0.0] = -np.inf
                best = first_largest(values)
                if values[best] > value + TIE:
                    w[place], value = weights[best], values[best]
            if value == before:
                break
        return Weighted(columns, w, value)

    def _grown(self, known: Weighted, free: IntArray) -> Iterable[Weighted]:
        """With one feature more, in the order of columns."""
        others = np.setdiff1d(free, known.columns)
        if not len(others):
            return
        scores = known.w @ self._X[list(known.columns)]
        steps = np.array([self._unit(scores, j) * STEPS for j in others])
        if not known.columns:
            steps = np.tile([1.0, -1.0], (len(others), 1))
        for j, step, values in zip(others.tolist(), steps, self._along(scores, others, steps), strict=True):
            best = first_largest(values)
            order = np.argsort([*known.columns, j])
            columns = tuple(np.array([*known.columns, j])[order].tolist())
            yield Weighted(columns, np.append(known.w, step[best])[order], float(values[best]))

    def _shrunk(self, known: Weighted) -> Iterable[Weighted]:
        """With one feature less, in the order of columns."""
        columns = np.array(known.columns, dtype=np.int64)
        if len(columns) < 2:
            return
        values = self._along(known.w @ self._X[columns], columns, -known.w[:, None])
        for place, (value,) in enumerate(values):
            left = known.columns[:place] + known.columns[place + 1 :]
            yield Weighted(left, np.delete(known.w, place), float(value))

    def _unit(self, scores: FloatArray, j: int) -> float:
        """The power of 2 nearest to the weight with which feature j spreads as far as the scores."""
        spread = self._spread_of(scores)
        return float(2.0 ** np.round(np.log2(spread / self._spread[j]))) if spread > 0 else 1.0

    def _spread_of(self, scores: FloatArray) -> float:
        """Their standard deviation within queries, up to a factor."""
        starts, sizes = self._queries.offsets[:-1], self._queries.sizes
        centred = scores - np.repeat(np.add.reduceat(scores, starts) / sizes, sizes)
        return float(np.sqrt(self._weight @ np.add.reduceat(centred**2, starts)))

    def _along(self, scores: FloatArray, columns: IntArray, steps: FloatArray) -> FloatArray:
        """The value of scores + step · column for each column and each of its steps (columns × steps)."""
        values = np.empty(steps.shape)

        def work(first: int, last: int) -> None:
            for i in range(first, last):
                dcg_along(
                    scores, self._X[columns[i]], steps[i], self._gains, self._queries.offsets,
                    self._discounts, self._worth, values[i],
                )  # fmt: skip

        map_blocks(work, np.arange(len(columns) + 1))
        return values


def first_largest(values: FloatArray) -> int:
    """The first of those that are as large as the largest."""
    return int(np.argmax(values >= values.max() - TIE))


REGRESSION = {"objective": "regression"}  # on the numbers of the labels' levels


@dataclass(eq=False, repr=False)
class BRTree(FeatureSelector):
    """Features by their importance in boosted regression trees, then ``base`` on them.

    The importance of a feature is what the splits on it lower the squared error of the labels by, as a share
    of what all splits do. ``search`` says how it is used:

    - "random": random subsets of the features each lose their least important ones, some at a time and with
      new trees each time, until ``max_features`` are left. The trees learn from two thirds of the queries;
      the subset whose trees have the best metric on the others is chosen.
    - "greedy": as in :class:`GAS`, the largest importance less 2c times the similarity to what is chosen. At
      c = 0 these are the most important features.

    Parameters
    ----------
    max_features : int
        Number of features.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    search : "random" or "greedy"
        How features are chosen.
    n_subsets : int
        Random subsets.
    share : float
        How large a subset is at first: ``max_features`` and this share of the other features.
    drop : float
        Share of its features that a subset loses at a time; at least one.
    metric : str
        What random subsets are compared by, in the conventions that the data come with.
    c : float
        Weight of similarity against importance in the greedy search.
    similarity : "kendall", another name of SIMILARITIES, or array
        How alike features are, for the greedy search.
    n_rounds, n_leaves, learning_rate
        Trees, most leaves of each, and shrinkage, as in :class:`LambdaMART`.
    n_jobs : int, optional
        Threads of LightGBM, as in :class:`LambdaMART`; the many small fits gain little from more
        than one.
    random_state : int
        Seed of the subsets and of the queries that compare them.

    Attributes
    ----------
    importance_ : array
        Shares of the features in the last trees of the chosen subset; in the greedy search, in trees of all.
    values_ : array
        The metric of each random subset; empty after a greedy search.
    selected_, base_, coef_
        As in every selector: columns in order of choice (random: by importance), the fitted base, its weights
        in full width.

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
        lightgbm_for("BRTree")
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
        importance = shares(self._trees(data, usable, query_weight), usable, data.n_features)
        selected, _ = greedy(importance, similarity, self.c, usable, self.max_features)
        return selected, importance, np.empty(0)

    def _random(
        self, data: Dataset, usable: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        rng = np.random.default_rng(self.random_state)
        learning, judging = split_queries(data, rng)
        learned_from, judged_on = data.select_queries(learning), data.select_queries(judging)
        weight = None if query_weight is None else query_weight[learning]
        of_judges = None if query_weight is None else query_weight[judging]
        evaluator, spec = Evaluator(judged_on), parse(self.metric)
        size = self.max_features + int(np.ceil(self.share * (len(usable) - self.max_features)))
        subsets, values = [], []
        for _ in range(self.n_subsets):
            first = np.sort(rng.choice(usable, size, replace=False))
            columns, trees = self._eliminate(learned_from, first, weight)
            (per_query,) = evaluator.per_query(trees.predict(judged_on.select_features(columns)), [spec])
            subsets.append((columns, trees))
            values.append(np.average(per_query, weights=of_judges))
        columns, trees = subsets[int(np.argmax(values))]
        importance = shares(trees, columns, data.n_features)
        return largest(importance, columns, self.max_features), importance, np.array(values)

    def _eliminate(
        self, data: Dataset, columns: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, LambdaMART]:
        """The columns that are left in the end, and trees on them."""
        trees = self._trees(data, columns, query_weight)
        while len(columns) > self.max_features:
            kept = max(self.max_features, min(len(columns) - 1, int((1.0 - self.drop) * len(columns))))
            columns = np.sort(largest(shares(trees, columns, data.n_features), columns, kept))
            trees = self._trees(data, columns, query_weight)
        return columns, trees

    def _trees(self, data: Dataset, columns: IntArray, query_weight: FloatArray | None) -> LambdaMART:
        return LambdaMART(
            self.n_rounds,
            n_leaves=self.n_leaves,
            learning_rate=self.learning_rate,
            options=REGRESSION,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(data.select_features(columns), query_weight=query_weight)


def split_queries(data: Dataset, rng: np.random.Generator) -> tuple[BoolArray, BoolArray]:
    """Queries to learn from, and a third of those with pairs to judge by; one query must do for both."""
    judging = np.zeros(data.n_queries, dtype=bool)
    with_pairs = rng.permutation(np.flatnonzero(data.pairs_per_query))
    judging[with_pairs[: max(1, len(with_pairs) // 3)]] = True
    return (~judging if len(with_pairs) > 1 else np.ones_like(judging)), judging


def shares(trees: LambdaMART, columns: IntArray, n_features: int) -> FloatArray:
    """The importance of each feature in trees on some columns, in full width."""
    gains = trees.booster_.feature_importance("gain")
    importance = np.zeros(n_features)
    importance[columns] = gains / max(float(gains.sum()), np.finfo(np.float64).tiny)
    return importance


@dataclass(eq=False, repr=False)
class StabilitySelection(FeatureSelector):
    """Features that the certified ℓ1 path selects in at least ``threshold`` of random subsamples of queries.

    Π_j(α) is the share of subsamples whose min_w f(w) + α‖w‖₁ has w_j ≠ 0, f the mean squared hinge over
    pairs, on one grid of α for all subsamples. Feature j is stable if max_α Π_j(α) ≥ π, the threshold. With
    q the mean number of features that a subsample selects anywhere on the grid and d candidates, the
    expected number V of falsely selected features is at most q²/((2π − 1)d), if the selection is no worse
    than chance and treats all false features alike (Theorem 1 of the paper, for halves: share = 0.5).

    Parameters
    ----------
    n_subsamples : int
        Subsamples.
    share : float
        Share of the queries in each, drawn without replacement among those that have pairs.
    threshold : float
        π, above 0.5 and at most 1.
    max_features : int, optional
        Bounds q: each subsample's path ends at its last point before more than this many features have ever
        been selected, and keeps that point's features for the smaller α.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    n_alphas, min_ratio, alphas
        The grid: from the smallest α at which the whole data select nothing, down to ``min_ratio`` times it,
        evenly in log α; or the grid itself. The smaller the last α, the larger q and the weaker the bound.
    tol : float
        Largest duality gap of each point, as a share of the objective.
    n_jobs : int, optional
        Processes, as in joblib. The result does not depend on it.
    random_state : int
        Seed of the subsamples.

    Attributes
    ----------
    frequencies_ : array (n_alphas × d)
        Π.
    alphas_ : array
        The grid, falling.
    stability_ : array
        max_α Π_j(α) of each feature.
    q_ : float
        Mean number of features that a subsample selects.
    error_bound_ : float
        q²/((2π − 1)d), d the features that vary within a query.
    selected_, base_, coef_
        As in every selector: stable columns, the most stable first; the fitted base, its weights in full
        width.

    References
    ----------
    N. Meinshausen, P. Bühlmann: Stability selection, Journal of the Royal Statistical Society B 72(4), 2010.
    """

    decided_last: ClassVar[frozenset[str]] = frozenset({"base", "threshold"})

    stability_: FloatArray = field(init=False)
    q_: float = field(init=False)

    n_subsamples: CountAtOnce = 50
    share: Share = 0.5
    threshold: Annotated[float, Interval(Real, 0.5, 1, closed="right")] = 0.7
    _: KW_ONLY
    max_features: Count | None = None
    base: Any = None
    n_alphas: CountAtOnce = 30
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

    def _select_again(self, usable: IntArray) -> Attributes:
        selected, bound = self._stable(self.stability_, self.q_, usable)
        return {"selected_": selected, "error_bound_": bound}

    def _stable(self, stability: FloatArray, q: float, usable: IntArray) -> tuple[IntArray, float]:
        """Columns that are stable enough, the most stable first, and the bound of false ones among them."""
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
            raise DataError(None, None, NOTHING_TO_CHOOSE.format(n=data.n_features))
        return np.asarray(largest * np.logspace(0.0, np.log10(self.min_ratio), self.n_alphas))

    def _subsamples(self, data: Dataset) -> list[IntArray]:
        """Numbers of queries, ascending."""
        candidates = np.flatnonzero(data.pair_weights > 0)
        size = max(1, int(self.share * len(candidates)))
        if size == len(candidates):
            warn_caller(
                "there is only one query that has pairs, so every subsample is the same and the frequencies "
                "say nothing; give more queries"
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
    """Which features (alphas × features) the path on some queries selects, cut off at ``max_features``."""
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
    last = int(np.sum(within))  # the union only grows, so these are the first points
    kept = np.zeros((len(alphas), data.n_features), dtype=bool)
    kept[:last] = selected[:last]
    kept[last:] = selected[last - 1] if last else False
    return kept
