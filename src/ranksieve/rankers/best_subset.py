"""BestSubset: the best ranker with at most k features, and a bound on all others."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray, IntArray, PathLike
from ranksieve.choice.folds import Folds
from ranksieve.choice.forward import ForwardSearch
from ranksieve.choice.held_out import HeldOut, Validation, number_of_folds
from ranksieve.data.budget import Budget, Features, Signs
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight, drop_zero_weight, query_weights
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses import SquaredHinge
from ranksieve.metrics import Profile, profile_for
from ranksieve.objective import Objective, make_objective
from ranksieve.path import Progress
from ranksieve.prepare import Preparation
from ranksieve.rankers.base import Attributes, Ranker, Task, ValidData, as_valid, in_column_order
from ranksieve.rankers.parameters import (
    Count,
    Interval,
    Normalise,
    NotNegative,
    PairWeighting,
    Positive,
    check_parameters,
    cost_of,
    plain_budget,
    stated_budget,
    stated_costs,
    usable_budget,
)
from ranksieve.show.upwards import report_function
from ranksieve.solvers import Trace
from ranksieve.solvers.base import Callback
from ranksieve.subset import Effort, SubsetResult, SubsetSearch

COPY_TOL = 1e-9  # i and j are copies if |H_ij| ≥ (1 − this)·√(H_ii·H_jj), H the Hessian at w = 0
COPY_BLOCK_COLUMNS = 1000


@dataclass(eq=False, repr=False)
class BestSubset(Ranker):
    """The best linear ranker with at most ``max_features`` features, with a proof of how good it is.

    Minimises (1/Σω) Σ_{pairs} ω_ij max(0, 1 − ⟨w, x_i − x_j⟩)² + ½μ‖w‖² over w with at most k nonzero
    weights, ω_ij by ``pair_weighting``: the problem of forward selection in :class:`ranksieve.SparseRanker`.
    Good sets come from forward selection with swaps. Branch and bound on features then raises a lower bound
    on the objective of every other set: the perspective relaxation of the ridge, certified by its dual.

    Parameters
    ----------
    max_features : int, optional
        k. None: only ``max_cost`` limits the set.
    feature_costs, max_cost, must_have, must_not, signs
        Feature costs (groups are paid once) and their limit, features that every set or no set contains, and
        signs of weights; as in :class:`ranksieve.SparseRanker`.
    gap : float
        Stop when no set can lower the objective by more than this share; 0: search until optimality is
        proven.
    time_limit : float
        Time limit in seconds; ``bound_`` is the best bound proven by then. 0: stop after the first bound.
    max_nodes : int, optional
        Maximum number of nodes of the search tree; unlike ``time_limit``, it gives the same result on every
        machine.
    ridge : float, optional
        μ. Default: 0.1 % of the mean curvature of the usable features at w = 0, as in forward selection.
    pair_weighting, normalise, missing
        As in :class:`ranksieve.SparseRanker`.

    Attributes
    ----------
    coef_, support_, objective_
        The best set found and its weights.
    bound_, gap_ : float
        No allowed set has an objective below ``bound_``; ``gap_`` is ``objective_`` − ``bound_``.
    root_bound_ : float
        The bound before the first branching.
    never_, always_ : list of str
        Features that no better set uses, and features that every better set uses.
    ties_ : dict of str to list of str
        Other features that are multiples of a feature of the set, within queries.
    n_iter_ : int
        Number of nodes of the search tree.
    subset_ : SubsetResult
        The complete result, with the search tree that proves it.
    costs_ : FeatureCosts or None
        Feature costs.
    ridge_ : float
        μ.
    """

    subset_: SubsetResult = field(init=False)
    costs_: FeatureCosts | None = field(init=False)
    bound_: float = field(init=False)
    root_bound_: float = field(init=False)
    ridge_: float = field(init=False)
    never_: list[str] = field(init=False)
    always_: list[str] = field(init=False)
    ties_: dict[str, list[str]] = field(init=False)

    max_features: Count | None = None
    _: KW_ONLY
    feature_costs: Any = None
    max_cost: Annotated[float, Interval(Real, 0, np.inf, closed="both")] | None = None
    must_have: Features = ()
    must_not: Features = ()
    signs: Signs | None = None
    gap: NotNegative = 0.0
    time_limit: Annotated[float, Interval(Real, 0, np.inf, closed="both")] = 60.0
    max_nodes: Count | None = None
    ridge: Positive | None = None
    pair_weighting: PairWeighting = "sqrt"
    normalise: Normalise = "auto"

    def _loss(self) -> SquaredHinge:
        return SquaredHinge(pair_weighting=self.pair_weighting)

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight", "budget")

    def _fit(self, task: Task) -> Attributes:
        return self._best(task, *self._search(task), task.callback)

    def fit_sizes(
        self,
        sizes: Iterable[int],
        data: Dataset,
        *,
        query_weight: QueryWeight | None = None,
        progress: Progress | None = None,
    ) -> BestSubsets:
        """Fit one ranker per number of features; each search starts from the previous set.

        ``progress`` is called with (percent done, summed over sizes; 100 × number of sizes). During a search
        the percentage is the elapsed share of ``time_limit``.
        """
        rankers = [clone(self).set_params(max_features=size) for size in sorted(set(sizes))]
        for ranker in rankers:
            check_parameters(ranker)
        with single_threaded_blas():
            task = rankers[-1]._task(data, query_weight=query_weight)
            search, costs = rankers[-1]._search(task)
            for done, ranker in enumerate(rankers):
                callback = _time_callback(progress, done, len(rankers), self.time_limit)
                ranker._set(task.origin, ranker._best(task, search, costs, callback))
        return BestSubsets(rankers)

    def _search(self, task: Task) -> tuple[SubsetSearch, FeatureCosts | None]:
        objective = make_objective(task.data, self._loss(), task.query_weight)
        budget, costs = self._budget(task.source, task.data, task.preparation, objective)
        return SubsetSearch(objective, budget, self.ridge), costs

    def _budget(
        self, source: Dataset, data: Dataset, preparation: Preparation, objective: Objective
    ) -> tuple[Budget, FeatureCosts | None]:
        """The budget and the feature costs; a budget that allows no set is an error."""
        indicators = preparation.missing.indicators
        costs = stated_costs(self.feature_costs, source.feature_names, indicators)
        budget = usable_budget(stated_budget(self, data.feature_names, indicators, costs), objective)
        if budget.max_cost is None:
            budget = budget.without_costs()
        usable = budget.usable
        if not usable.any():
            raise DataError(
                None,
                None,
                "no feature distinguishes any pair of documents: every usable feature is constant within "
                "every query that has different labels",
            )
        most = int(np.count_nonzero(usable))
        if self.max_features is not None and self.max_features > most:
            reason = f"only {most} of the {len(usable)} features are allowed and vary within queries"
            raise ParameterError("max_features", self.max_features, f"{reason}; use at most {most}")
        budget.check_affordable(usable)
        return budget, costs

    def _best(
        self, task: Task, search: SubsetSearch, costs: FeatureCosts | None, callback: Callback | None
    ) -> Attributes:
        trace, usable = Trace(), search.budget.usable

        def record(n_nodes: int, w: FloatArray, objective: float, gap: float) -> None:
            trace.record(objective, gap, w)
            if callback is not None:
                callback(n_nodes, w, objective, gap)

        size = self.max_features or int(np.count_nonzero(usable))
        best = search.best(size, Effort(self.gap, self.time_limit, self.max_nodes), record)
        names, objective = np.array(task.data.feature_names), float(best.fit.objective)
        return {
            "subset_": replace(best, max_cost=self.max_cost),
            "costs_": costs,
            "ridge_": search.ridge,
            "coef_": best.fit.w.copy(),
            "objective_": objective,
            "bound_": best.bound,
            "root_bound_": best.root_bound,
            "gap_": objective - best.bound,
            "n_iter_": best.n_nodes,
            "trace_": trace,
            "never_": names[usable & (best.with_each >= objective)].tolist(),
            "always_": names[usable & (best.without_each >= objective)].tolist(),
            "ties_": _copies(search.objective, usable, np.flatnonzero(best.fit.w), names),
        }

    def _certificate(self) -> dict[str, Any]:
        return self.subset_.certificate()

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> None:
        return None

    def _stated_parameters(self) -> dict[str, Any]:
        return plain_budget(self, super()._stated_parameters())

    def _metrics(self) -> dict[str, float]:
        return cost_of(self.costs_, self.coef_names_, self.support_)


class BestSubsets(list[BestSubset]):
    """The best subsets of several sizes."""

    def report(self, path: PathLike, data: Dataset, valid: Dataset | None = None, **options: Any) -> None:
        """Write the page that ``ranksieve subset --report`` writes.

        ``data`` are the training data; held-out queries are those of ``valid``, or of cross-validation.
        ``metric``, ``profile``, ``cv``, ``random_state`` and ``query_weight`` may be given.
        """
        report_function("calls.report_sizes")(self, path, data, valid, **options)


def _time_callback(progress: Progress | None, done: int, total: int, time_limit: float) -> Callback | None:
    """Callback that reports the elapsed share of the time limit."""
    if progress is None:
        return None
    start, report = time.perf_counter(), progress

    def callback(n_nodes: int, w: FloatArray, objective: float, gap: float) -> None:
        share = (time.perf_counter() - start) / max(time_limit, np.finfo(float).tiny)
        report(int(100 * (done + min(1.0, share))), 100 * total)

    return callback


def _copies(objective: Objective, usable: BoolArray, support: IntArray, names: Any) -> dict[str, list[str]]:
    """For each feature of ``support``, the other features that are multiples of it within queries."""
    point, copies = objective.at_zero, dict[int, list[int]]()
    candidates = np.setdiff1d(np.flatnonzero(usable), support)
    for first in range(0, max(len(candidates), 1), COPY_BLOCK_COLUMNS):
        others = candidates[first : first + COPY_BLOCK_COLUMNS]
        columns = np.union1d(others, support)
        H = objective.hessian(point, columns)
        norm = np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
        for j in support.tolist():
            row = np.searchsorted(columns, j)
            same = columns[np.abs(H[row]) >= (1.0 - COPY_TOL) * norm[row] * norm]
            copies.setdefault(j, []).extend(same[same != j].tolist())
    return {str(names[j]): names[np.unique(same).tolist()].tolist() for j, same in copies.items() if same}


def evaluate_sizes(
    rankers: Sequence[BestSubset],
    data: Dataset,
    valid: ValidData = None,
    metric: str = "ndcg@10",
    profile: str | Profile | None = None,
    cv: int | str = "auto",
    random_state: int = 0,
    query_weight: QueryWeight | None = None,
) -> tuple[Validation, int]:
    """Evaluate the best set of each size on held-out queries: (validation, number of folds).

    ``rankers`` is the result of ``fit_sizes`` with the same ``query_weight``. In each fold, forward selection
    with swaps chooses the sets.
    """
    valid = as_valid(valid)
    largest = rankers[-1]
    data, weight = drop_zero_weight(data, query_weights(query_weight, data))
    preparation, most = largest.preparation_, largest.subset_.max_features
    prepared = preparation.for_learning(data)
    n_folds, splits, fold_coefs = number_of_folds(cv, prepared, valid), [], None
    if n_folds:
        folds = Folds(prepared, n_folds, 1, random_state, weight, largest._loss())
        splits = [folds.fold_of_queries(one) for one in folds.splits]
        budget, _ = largest._budget(data, prepared, preparation, folds.objective)
        first = max(1, len(budget.fixed))
        fold_coefs = np.zeros((len(rankers), n_folds, prepared.n_features))
        for fold in range(n_folds):
            forward = ForwardSearch(folds.objective_without(fold), budget.usable, ridge=largest.ridge_)
            fits = forward.path(most, budget)
            for k, ranker in enumerate(rankers if fits else ()):
                fold_coefs[k, fold] = fits[min(ranker.subset_.max_features - first, len(fits) - 1)].w
    measured = profile_for(profile, data if valid is None else valid)
    if valid is not None:
        valid = in_column_order(valid, data.feature_names, largest)
        preparation.filled(valid)
    held_out = HeldOut(preparation, metric, measured, data, splits, valid)
    return held_out.measure(np.array([ranker.coef_ for ranker in rankers]), fold_coefs), n_folds
