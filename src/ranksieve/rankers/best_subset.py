"""BestSubset: the best ranker with at most k features, and the proof that no other k do better."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.candidates import check_affordable
from ranksieve.choice.families import Fitted
from ranksieve.choice.forward import ForwardSearch, Rules
from ranksieve.choice.held_out import HeldOut, Validation, number_of_folds
from ranksieve.choice.leave_out import Folds
from ranksieve.data.dataset import Dataset, QueryWeight, counted, query_weights
from ranksieve.errors import DataError, ParameterError
from ranksieve.metrics import Profile, profile_for
from ranksieve.objective import Objective, make_objective
from ranksieve.path import Progress, collect
from ranksieve.penalties.base import Features, Signs
from ranksieve.rankers.base import PlainFit, ValidData, as_valid
from ranksieve.rankers.parameters import Count, Interval, Normalise, NotNegative, Positive, check_parameters
from ranksieve.rankers.within_budget import WithinBudget
from ranksieve.solvers import Trace
from ranksieve.solvers.base import Callback
from ranksieve.subset import Effort, Found, SubsetSearch

ALIKE = 1e-9  # share of a feature's curvature that a copy of it may leave unexplained
COMPARED_AT_ONCE = 1000  # features


@dataclass(eq=False, repr=False)
class BestSubset(PlainFit, WithinBudget):
    """The best linear ranker with at most so many features, with a proof of how much better others can be.

    min over sets S of at most k features of min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + ½μ‖w‖², w the
    weights of S. Good sets come from forward selection with swaps. Branch and bound on features then raises a
    lower bound of all other sets: the perspective relaxation of the ridge, certified by its dual.

    Parameters
    ----------
    max_features : int, optional
        k; None: only ``max_cost`` limits the set.
    feature_costs, max_cost, must_have, must_not, signs
        Costs (groups are paid once) and their limit, features that are in every set or in none, and signs of
        weights; as in :class:`ranksieve.SparseRanker`.
    gap : float
        Stop when no set can be better by more than this share of the objective; 0: the best set is proven.
    time_limit : float
        Stop after so many seconds, with the bound proven by then; 0: after the first bound.
    max_nodes : int, optional
        Stop after so many regions of sets; unlike seconds, the same on every machine.
    ridge : float, optional
        μ; default: 1 % of the mean curvature of a usable feature at w = 0.
    normalise, missing
        As in :class:`ranksieve.SparseRanker`.

    Attributes
    ----------
    coef_, support_, objective_
        The best set found and its weights.
    bound_, gap_ : float
        No allowed set has an objective below ``bound_``; ``gap_`` is ``objective_`` less it.
    root_bound_ : float
        The bound before the first split.
    never_, always_ : list of str
        Features that no better set uses, and features that every better set uses.
    ties_ : dict of str to list of str
        For features of the set, other features that are copies of it, up to their scale within queries.
    n_iter_ : int
        Regions of sets that were bounded.
    found_ : Found
        All of this, and the tree that proves it.
    ridge_ : float
        μ.
    """

    found_: Found = field(init=False)
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
    normalise: Normalise = "auto"

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        search = self._search(data, query_weight)
        self._adopt(search, self.max_features or int(np.count_nonzero(search.rules.usable)), callback)

    def fit_sizes(
        self,
        sizes: Iterable[int],
        data: Dataset,
        *,
        query_weight: QueryWeight | None = None,
        progress: Progress | None = None,
    ) -> list[BestSubset]:
        """One fitted ranker for each number of features; each search begins with the set of the one before.

        ``progress`` is called with (hundredths of a size done, in all), by time where a search goes on.
        """
        sizes = sorted(set(sizes))
        trial = self._sized(max(sizes))
        for size in sizes:
            check_parameters(self._sized(size))
        rankers: list[BestSubset] = []
        with single_threaded_blas():
            given, weight = trial._given_data(data, None, None, query_weight)
            search = trial._search(trial._prepared_for_learning(given, weight), weight)
            for size in sizes:
                ranker = trial._sized(size)
                ranker._adopt(search, size, _clock(progress, len(rankers), len(sizes), self.time_limit))
                ranker._learned_with = ranker._plain_parameters()
                rankers.append(ranker)
        return rankers

    def _sized(self, size: int) -> BestSubset:
        """Another ranker that has learned the same, for so many features."""
        return self._twin().set_params(max_features=size)  # type: ignore[no-any-return]

    def _search(self, data: Dataset, query_weight: FloatArray | None) -> SubsetSearch:
        """The search for sets of these data, prepared already."""
        objective = make_objective(data, query_weight=query_weight)
        return SubsetSearch(objective, self._rules(data, objective), self.ridge)

    def _rules(self, data: Dataset, objective: Objective) -> Rules:
        """The sets that are allowed; those that the parameters leave empty are refused."""
        constraints, budget = self._constraints(data), self._budget(data)
        budget.check_must_have(constraints.unpenalised)
        rules = self.stated_rules(data, objective, self.missing_.indicators, budget.max_cost)
        usable = rules.usable
        if not usable.any():
            raise DataError(
                None,
                None,
                "no feature tells any pair of documents apart: every usable feature is constant within "
                "every query that has different labels",
            )
        most = int(np.count_nonzero(usable))
        if self.max_features is not None and self.max_features > most:
            reason = f"only {most} of the {len(usable)} features may be used and vary within queries"
            raise ParameterError("max_features", self.max_features, f"{reason}; give at most {most}")
        if budget.costs is not None:
            check_affordable(budget, budget.costs, usable.astype(np.float64), constraints.unpenalised)
        return rules

    def _adopt(self, search: SubsetSearch, size: int, callback: Callback | None) -> None:
        trace = Trace()

        def record(n_nodes: int, w: FloatArray, objective: float, gap: float) -> None:
            trace.record(objective, gap, w)
            if callback is not None:
                callback(n_nodes, w, objective, gap)

        found = search.best(size, Effort(self.gap, self.time_limit, self.max_nodes), record)
        found = replace(found, max_cost=self.max_cost)
        self.found_, self.ridge_, self.trace_ = found, search.ridge, trace
        self.coef_, self.objective_ = found.fit.w.copy(), float(found.fit.objective)
        self.bound_, self.root_bound_ = found.bound, found.root_bound
        self.gap_, self.n_iter_ = self.objective_ - found.bound, found.n_nodes
        names, usable = np.array(self._names()), search.rules.usable
        self.never_ = names[usable & (found.joined >= self.objective_)].tolist()
        self.always_ = names[usable & (found.left >= self.objective_)].tolist()
        self.ties_ = _copies(search.objective, usable, self.support_, names)

    def _certificate(self) -> dict[str, Any]:
        return self.found_.certificate()


def _clock(progress: Progress | None, done: int, total: int, time_limit: float) -> Callback | None:
    """A callback that reports the share of the time that has gone by."""
    if progress is None:
        return None
    began, report = time.perf_counter(), progress

    def tick(n_nodes: int, w: FloatArray, objective: float, gap: float) -> None:
        share = (time.perf_counter() - began) / max(time_limit, np.finfo(float).tiny)
        report(int(100 * (done + min(1.0, share))), 100 * total)

    return tick


def _copies(objective: Objective, usable: BoolArray, support: IntArray, names: Any) -> dict[str, list[str]]:
    """For each feature of a set the others that differ from it by a factor alone, within queries."""
    point, found = objective.at_zero, dict[int, list[int]]()
    candidates = np.setdiff1d(np.flatnonzero(usable), support)
    for first in range(0, max(len(candidates), 1), COMPARED_AT_ONCE):
        others = candidates[first : first + COMPARED_AT_ONCE]
        columns = np.union1d(others, support)
        H = objective.hessian(point, columns)
        size = np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
        for j in support.tolist():
            row = np.searchsorted(columns, j)
            same = columns[np.abs(H[row]) >= (1.0 - ALIKE) * size[row] * size]
            found.setdefault(j, []).extend(same[same != j].tolist())
    return {str(names[j]): names[np.unique(same).tolist()].tolist() for j, same in found.items() if same}


def best_subset(
    data: Dataset,
    k: int,
    *,
    time_limit: float = 60.0,
    gap: float = 0.0,
    query_weight: QueryWeight | None = None,
    **options: Any,
) -> BestSubset:
    """The best ranker with at most ``k`` features, and the proof of how much better another can be.

    ``options`` are parameters of :class:`ranksieve.BestSubset`, which is what comes back, fitted.
    """
    return BestSubset(k, time_limit=time_limit, gap=gap, **options).fit(data, query_weight=query_weight)


def held_out_sizes(
    rankers: Sequence[BestSubset],
    data: Dataset,
    valid: ValidData = None,
    metric: str = "ndcg@10",
    profile: str | Profile | None = None,
    cv: int | str = "auto",
    random_state: int = 0,
    query_weight: QueryWeight | None = None,
) -> tuple[Validation, int]:
    """(how sets of each size rank held-out queries, folds of training queries that were held out in turn).

    ``rankers`` are those of ``fit_sizes``, to which ``query_weight`` was given. Folds have sets of their own,
    by forward selection with swaps.
    """
    valid = as_valid(valid)
    largest = rankers[-1]
    data, weight = counted(data, query_weights(query_weight, data))
    prepared, names = largest._prepared(data), tuple(largest._names())
    n_folds, folds, without = number_of_folds(cv, prepared, valid), None, None
    if n_folds:
        folds = Folds(prepared, n_folds, 1, random_state, weight)
        rules = largest._rules(prepared, folds.objective)
        most, first = largest.found_.max_features, max(1, len(rules.fixed))
        without = np.zeros((len(rankers), n_folds, len(names)))
        for fold in range(n_folds):
            forward = ForwardSearch(folds.left(fold), rules.usable, ridge=largest.ridge_)
            coefs = forward.path(most, rules, names).coefs
            for k, ranker in enumerate(rankers if len(coefs) else ()):
                without[k, fold] = coefs[min(ranker.found_.max_features - first, len(coefs) - 1)]
    fits = [ranker.found_.fit for ranker in rankers]
    fitted = Fitted("subset", collect(np.full(len(fits), largest.ridge_), fits, names), [], without, 1)
    measured = profile_for(profile, data if valid is None else valid)
    held = None if valid is None else largest._held_out(valid)
    return HeldOut(largest._scores_with, metric, measured, data, folds, held).measure(fitted), n_folds
