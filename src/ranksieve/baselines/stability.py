"""Stability selection: the features that the path finds again and again in random halves of the queries."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from joblib import Parallel, delayed

from ranksieve._parallel import use_threads
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve._util.messages import warn_caller
from ranksieve.baselines.selector import NOTHING_TO_CHOOSE, FeatureSelector
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from ranksieve.rankers.parameters import Count, CountAtOnce, Interval, Positive, Seed, Share


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

    weighs_documents = True
    decided_last: ClassVar[frozenset[str]] = frozenset({"base", "threshold"})

    frequencies_: FloatArray = field(init=False)
    alphas_: FloatArray = field(init=False)
    stability_: FloatArray = field(init=False)
    q_: float = field(init=False)
    error_bound_: float = field(init=False)

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

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        self.alphas_ = self._grid(data, query_weight)
        jobs = (
            delayed(selected_along)(data, queries, query_weight, self.alphas_, self.tol, self.max_features)
            for queries in self._subsamples(data)
        )
        runs: list[BoolArray] = list(Parallel(n_jobs=self.n_jobs)(jobs))
        self.frequencies_ = np.mean(runs, axis=0)
        self.stability_ = self.frequencies_.max(axis=0)
        self.q_ = float(np.mean([np.count_nonzero(run.any(axis=0)) for run in runs]))
        return self._selected_again(usable)

    def _selected_again(self, usable: IntArray) -> IntArray:
        self.error_bound_ = self.q_**2 / ((2.0 * self.threshold - 1.0) * len(usable))
        stable = usable[self.stability_[usable] >= self.threshold]
        return stable[np.argsort(-self.stability_[stable], kind="stable")]

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

    def _advice(self) -> str:
        return (
            f"the largest selection frequency is {self.stability_.max():.2f}, below "
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
