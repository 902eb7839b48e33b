"""BFS-Wrapper and BRTree: selectors that rank with each set of features that they try."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Annotated, Any

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.baselines.boosting import LambdaMART, lightgbm_for
from ranksieve.baselines.filters import greedy
from ranksieve.baselines.kernels import dcg_along
from ranksieve.baselines.selector import FeatureSelector, check_size, fit_on, largest
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses.base import NO_PAIRS
from ranksieve.metrics import Evaluator, MetricSpec, parse
from ranksieve.metrics.table import dcg
from ranksieve.rankers.measures import similarity_measure
from ranksieve.rankers.parameters import Count, Interval, NotNegative, Positive, Seed, Share, one_of
from ranksieve.solvers import Problem

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
    It ends when ``patience`` sets in a row are no better than the best one before by more than ``eps``. The
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
    eps : float
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

    subsets_: tuple[IntArray, ...] = field(init=False)
    values_: FloatArray = field(init=False)
    combination_: FloatArray = field(init=False)

    n_subsets: Count = 3
    base: Any = None
    _: KW_ONLY
    cutoff: Count = 5
    patience: Count = 5
    eps: NotNegative = 1e-3

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        weight = checked_query_weight(query_weight, data.n_queries)
        if not data.pairs_per_query @ weight > 0:
            raise DataError(None, None, NO_PAIRS)
        ascent = Ascent(data, usable, self.cutoff, weight)
        found, free = list[Weighted](), np.arange(len(usable))
        while len(free) and len(found) < self.n_subsets:
            found.append(best_first(NOTHING, ascent.explorer(free), self.patience, self.eps))
            free = np.setdiff1d(free, found[-1].columns)
        self.subsets_ = tuple(usable[list(each.columns)] for each in found)
        self.values_ = np.array([each.value for each in found])
        self.combination_ = np.zeros((data.n_features, len(found)))
        for number, (columns, each) in enumerate(zip(self.subsets_, found, strict=True)):
            self.combination_[columns, number] = each.w / np.abs(each.w).sum()
        return np.concatenate(self.subsets_)

    def _fit_base(self, base: Any, data: Dataset, query_weight: FloatArray | None) -> tuple[Any, FloatArray]:
        names = [f"set {number + 1}" for number in range(len(self.subsets_))]
        combined = data.replace_features(data.X @ self.combination_, names)
        fitted = fit_on(base, combined, np.arange(len(names)), query_weight)
        return fitted, np.asarray(self.combination_ @ fitted.coef_)

    def _adopt(self, base: Any, coef: FloatArray) -> None:
        super()._adopt(base, coef)
        self.gap_ = np.nan

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(frozen=True, eq=False)
class Weighted:
    """A set of features, ascending, with a weight for each and the value that these weights reach."""

    columns: tuple[int, ...]
    w: FloatArray
    value: float


NOTHING = Weighted((), np.empty(0), -np.inf)
Explore = Callable[[Weighted], tuple[Weighted, Iterable[Weighted]]]
"""A set with improved weights, and its neighbours."""


def best_first(start: Weighted, explore: Explore, patience: int, eps: float) -> Weighted:
    """The best set that the search takes; of equal values the one that was found first is taken first."""
    waiting, known, best, waited = [start], {start.columns}, start, 0
    while waiting and waited < patience:
        taken = waiting.pop(int(np.argmax([each.value for each in waiting])))
        taken, neighbours = explore(taken)
        better = taken.value > best.value + eps
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
    """k features by their importance in boosted regression trees, then ``base`` on them.

    The importance of a feature is what the splits on it lower the squared error of the labels by, as a share
    of what all splits do. ``search`` says how it is used:

    - "random": random subsets of the features each lose their least important ones, some at a time and with
      new trees each time, until k are left. The trees learn from two thirds of the queries; the subset whose
      trees have the best metric on the others is chosen.
    - "greedy": as in :class:`GAS`, the largest importance less 2c times the similarity to what is chosen. At
      c = 0 these are the k most important features.

    Parameters
    ----------
    k : int
        Number of features.
    base : linear ranker, optional
        The second stage; default ``RankSVM()``.
    search : "random" or "greedy"
        How features are chosen.
    n_subsets : int
        Random subsets.
    share : float
        How large a subset is at first: k and this share of the other features.
    drop : float
        Share of its features that a subset loses at a time; at least one.
    metric : str
        What random subsets are compared by, in the conventions that the data come with.
    c : float
        Weight of similarity against importance in the greedy search.
    similarity : "kendall", another name of SIMILARITIES, or array
        How alike features are, for the greedy search.
    n_rounds, n_leaves, learning_rate
        Trees, most leaves of each, and shrinkage, as in :class:`ranksieve.LambdaMART`.
    n_jobs : int, optional
        Threads of LightGBM, as in :class:`ranksieve.LambdaMART`; the many small fits gain little from more
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

    importance_: FloatArray = field(init=False)
    values_: FloatArray = field(init=False)

    k: Count = 10
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

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        lightgbm_for("BRTree")
        check_size("k", self.k, usable, data)
        if not data.pairs_per_query.any():
            raise DataError(None, None, NO_PAIRS)
        self.values_ = np.empty(0)
        search = self._greedy if self.search == "greedy" else self._random
        return search(data, usable, query_weight)

    def _greedy(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        measure = similarity_measure(self.similarity, data.n_features)
        similarity = measure(data, query_weight) if self.c > 0 else np.eye(data.n_features)
        self.importance_ = shares(self._trees(data, usable, query_weight), usable, data.n_features)
        selected, _ = greedy(self.importance_, similarity, self.c, usable, self.k)
        return selected

    def _random(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        rng = np.random.default_rng(self.random_state)
        learning, judging = split_queries(data, rng)
        learned_from, judged_on = data.select_queries(learning), data.select_queries(judging)
        weight = None if query_weight is None else query_weight[learning]
        of_judges = None if query_weight is None else query_weight[judging]
        evaluator, spec = Evaluator(judged_on), parse(self.metric)
        size = self.k + int(np.ceil(self.share * (len(usable) - self.k)))
        subsets, values = [], []
        for _ in range(self.n_subsets):
            first = np.sort(rng.choice(usable, size, replace=False))
            columns, trees = self._eliminate(learned_from, first, weight)
            (per_query,) = evaluator.per_query(trees.predict(judged_on.select_features(columns)), [spec])
            subsets.append((columns, trees))
            values.append(np.average(per_query, weights=of_judges))
        self.values_ = np.array(values)
        columns, trees = subsets[int(np.argmax(self.values_))]
        self.importance_ = shares(trees, columns, data.n_features)
        return largest(self.importance_, columns, self.k)

    def _eliminate(
        self, data: Dataset, columns: IntArray, query_weight: FloatArray | None
    ) -> tuple[IntArray, LambdaMART]:
        """The k columns that are left in the end, and trees on them."""
        trees = self._trees(data, columns, query_weight)
        while len(columns) > self.k:
            kept = max(self.k, min(len(columns) - 1, int((1.0 - self.drop) * len(columns))))
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
            seed=self.random_state,
        ).fit(data.select_features(columns), query_weight=query_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


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
