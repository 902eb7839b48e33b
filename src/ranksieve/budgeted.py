"""BudgetedRanker: any linear method within a budget, its parameters chosen on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.messages import lookup, warn_caller
from ranksieve.baselines.selector import weighted
from ranksieve.choice.budget import Budget, fits
from ranksieve.choice.candidates import check_affordable
from ranksieve.choice.held_out import Validation, scores_to_measure
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.describe import varying_columns
from ranksieve.data.features import column_blocks
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.tables import as_costs
from ranksieve.methods import METHODS, Method, find_method, thinned, within
from ranksieve.metrics import Profile, evaluate_many, parse, profile_for
from ranksieve.model.linear import LinearModel
from ranksieve.path import Progress
from ranksieve.rankers.base import LinearRanker, ValidData, all_or_nothing, as_valid
from ranksieve.rankers.parameters import Count, Interval, Seed
from ranksieve.solvers import Trace

PREPARATION = ("normalise", "missing")
Point = Mapping[str, Any]


@dataclass(eq=False, repr=False)
class BudgetedRanker(LinearRanker):
    """A linear method of the table METHODS, within a budget of features or cost.

    Candidates are the points of the method's own grid: all of them where each fit starts from the one before
    (``Method.warm``), else the fast grid of at most five values of one parameter or three of each of several.
    A candidate above the budget is fitted once more, on its strongest features alone: those with the largest
    |w_j|·s_j, where s_j is the mean distance of feature j from its mean within the query; with costs each
    that still fits, groups paid once. The candidate with the best mean of the metric on held-out queries is
    kept; of equals the one with the fewest features, then the first. A model without features is never kept,
    and counts as the worst ranking in a fold where a candidate has none.

    Parameters
    ----------
    method : str or Method
        Its name in METHODS, or a method of your own. SparseRanker keeps budgets by itself.
    max_features : int, optional
        Use at most this many features.
    metric : str
        What the choice maximises, such as "ndcg@10" or "map".
    parameters : mapping, optional
        Parameters of the method that are fixed; the grid keeps what they leave open.
    feature_costs : file, mapping, sequence or FeatureCosts, optional
        What each feature costs, alone or in groups that are paid once; see :func:`ranksieve.read_costs`.
    max_cost : float, optional
        The features in use cost at most this much.
    profile : str or Profile, optional
        Metric conventions; default: those that the data to choose on come with, else "standard".
    cv : int
        Query-level folds used when ``fit`` gets no validation set. Each candidate, with its choice of
        features, is fitted again without each fold.
    random_state : int
        Shuffles queries into folds.
    normalise, missing
        As in every ranker: how features are scaled, and what takes the place of missing ones.

    Attributes
    ----------
    coef_, support_, objective_, gap_, n_iter_
        The chosen ranker, in the width of the data, and its certificate.
    ranker_ : LinearRanker
        The same as the method gives it, fitted on prepared data with the columns ``columns_``.
    points_ : list of mappings
        The parameters of each candidate.
    chosen_ : int
        Which of them was chosen.
    validation_ : Validation
        Held-out metric of each candidate, per query.
    costs_ : FeatureCosts or None
        What features cost.
    """

    uses_valid: ClassVar[bool] = True
    weighs_documents: ClassVar[bool] = True  # if its method does
    ranker_: LinearRanker = field(init=False)
    columns_: IntArray = field(init=False)
    points_: Sequence[Point] = field(init=False)
    chosen_: int = field(init=False)
    validation_: Validation = field(init=False)
    costs_: FeatureCosts | None = field(init=False)

    method: Any = "ranksvm-l1"
    max_features: Count | None = None
    metric: str = "ndcg@10"
    _: KW_ONLY
    parameters: Any = None
    feature_costs: Any = None
    max_cost: Annotated[float, Interval(Real, 0, np.inf, closed="both")] | None = None
    profile: str | Profile | None = None
    cv: Annotated[int, Interval(Integral, 2, None, closed="left")] = 5
    random_state: Seed = 0

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        valid: ValidData = None,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the candidates and choose one on ``valid``, or by query-level cross-validation.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset, optional
            Held-out queries for the choice.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or the weights of some (others weigh 1): with
            2 a query counts as two, with 0 as none.
        document_weight : array, optional
            One weight per row, unless X is a Dataset: with 2 a document counts as two copies of it, with 0 as
            absent.
        progress : callable, optional
            Called with (candidates fitted, fits in all).
        """
        valid = as_valid(valid)
        parse(self.metric)
        method = self._method()
        given, weight = self._given_data(X, y, qid, query_weight, valid, document_weight)
        data = self._prepared_for_learning(given, weight)
        measured = given if valid is None else self._held_out(valid)
        n_folds = min(self.cv, data.n_queries) if valid is None and data.n_queries > 1 else 0
        search = self._search(method, data, n_folds, progress)
        candidates = search.candidates(data, weight)
        coefs, profile = weights_of(candidates), profile_for(self.profile, measured)
        if not search.budget.allows(coefs).any():
            reason = f"{method.title} uses no feature with any of the {len(candidates)} settings tried"
            raise ParameterError("parameters", self.parameters, f"{reason}; give others that keep some")
        if n_folds:
            values = self._cross_validated(search, data, measured, weight, n_folds, profile)
        else:  # one query cannot be held out from itself: it is its own validation set
            values = self._values(coefs, measured, profile)
        self.points_, self.validation_ = search.grid, _validation(self.metric, profile, values, measured)
        self.chosen_ = _best(coefs, self.validation_.mean, search.budget)
        self._adopt(candidates[self.chosen_])
        return self

    def _method(self) -> Method:
        method = find_method(self.method.lower()) if isinstance(self.method, str) else self.method
        if not isinstance(method, Method):
            raise ParameterError("method", method, "must be a name or a Method")
        if not method.linear:
            raise ParameterError("method", self.method, "is not linear, so it cannot have a budget")
        if method.uses_valid:
            reason = f"give {method.title} itself `max_features`, `feature_costs` and `max_cost`"
            raise ParameterError("method", self.method, reason)
        for name in self.parameters or {}:
            lookup(method.parameters, name, "parameters")
            if name in PREPARATION:
                raise ParameterError("parameters", self.parameters, f"give `{name}` to BudgetedRanker itself")
        return method

    def _search(self, method: Method, data: Dataset, n_folds: int, progress: Progress | None) -> Search:
        names = data.feature_names
        self.costs_ = None if self.feature_costs is None else as_costs(self.feature_costs, names)
        costs = None if self.costs_ is None else self.costs_.columns(names)
        budget = Budget(self.max_features, self.max_cost, costs)
        varies = varying_columns(data)
        if costs is not None:
            check_affordable(budget, costs, varies.astype(np.float64), np.zeros(len(names), dtype=bool))
        points = self._grid(method, max(1, min(self.max_features or len(names), int(varies.sum()))))
        return Search(method, points, budget, _counter(progress, len(points) * (1 + n_folds)))

    def _grid(self, method: Method, n_usable: int) -> Sequence[Point]:
        """The points of the method's grid that differ in what is not fixed, with sizes up to ``n_usable``.

        Where all that varies in it is fixed, nothing is chosen, and what else it holds does not count.
        """
        fixed: Point = self.parameters or {}
        grid = within(method.grid, method, n_usable)
        points: Sequence[Point] = grid if method.warm else thinned(grid)
        first = method.grid[0]
        varied = {name for point in method.grid for name in point if point[name] != first.get(name)}
        if varied and varied | ({method.size} - {""}) <= fixed.keys():
            points = [{}]
        points = within([{**point, **fixed} for point in points], method, n_usable)
        return [point for k, point in enumerate(points) if point not in points[:k]]

    def _cross_validated(
        self,
        search: Search,
        data: Dataset,
        measured: Dataset,
        query_weight: FloatArray | None,
        n_folds: int,
        profile: Profile,
    ) -> FloatArray:
        """Values (candidates × queries): each query is ranked by the candidates of the other folds."""
        fold_of = np.random.default_rng(self.random_state).permutation(data.n_queries) % n_folds
        values = np.empty((len(search.grid), data.n_queries))
        for fold in range(n_folds):
            others = fold_of != fold
            weight = None if query_weight is None else query_weight[others]
            try:
                candidates = search.candidates(data.select_queries(others), weight)
            except ValueError as error:
                reason = f"cannot fit without fold {fold + 1} of {n_folds} ({error})"
                advice = "give validation data, or another `cv` or `random_state`"
                raise ParameterError("cv", self.cv, f"{reason}; {advice}") from None
            held_out = measured.select_queries(~others)
            values[:, ~others] = self._values(weights_of(candidates), held_out, profile)
        return values

    def _values(self, coefs: FloatArray, held_out: Dataset, profile: Profile) -> FloatArray:
        """Metric (candidates × queries)."""
        scores = scores_to_measure(self._scores_with, coefs, held_out)
        return evaluate_many(scores, held_out, self.metric, profile)

    def _adopt(self, candidate: Candidate) -> None:
        ranker = candidate.ranker
        self.ranker_, self.columns_, self.coef_ = ranker, candidate.columns, candidate.coef
        self.objective_ = float(getattr(ranker, "objective_", np.nan))
        self.gap_ = float(getattr(ranker, "gap_", np.nan))
        self.n_iter_ = int(getattr(ranker, "n_iter_", 1))
        self.trace_ = getattr(ranker, "trace_", Trace())
        for category, words in candidate.told:
            warn_caller(words, category)

    def to_model(self) -> LinearModel:
        """The chosen ranker as a model that can be saved, exported and explained."""
        return replace(super().to_model(), method=type(self.ranker_).__name__)

    def _plain_parameters(self) -> dict[str, Any]:
        """Those of the chosen ranker, with the budget and how it was chosen."""
        own, held = super()._plain_parameters(), dict(self.ranker_._learned_with)
        if self.costs_ is not None:
            own["feature_costs"] = self.costs_.to_dict()
        budget = ("max_features", "max_cost", "feature_costs")
        held |= {name: own[name] for name in budget if own[name] is not None}
        held |= {name: own[name] for name in PREPARATION}
        method = next((name for name, entry in METHODS.items() if entry is self._method()), None)
        choice = {"method": method, "parameters": own["parameters"] or {}, "candidates": len(self.points_)}
        if "valid" not in self._learned_from:
            choice |= {"cv": self.cv, "random_state": self.random_state}
        return {**held, "choice": choice | (self.validation_.criterion or {})}

    def _certificate(self) -> dict[str, Any]:
        """That of the chosen ranker; ``features`` are those it was fitted on, if not all."""
        names, proven = self._names(), self.ranker_._certificate()
        if len(self.columns_) < len(names) and np.isfinite(self.objective_):
            proven = {"features": [names[j] for j in self.columns_]} | proven
        return proven

    def _chosen_by(self) -> dict[str, str] | None:
        return None if len(self.points_) == 1 else self.validation_.criterion

    def _measured(self) -> dict[str, float]:
        measured = {self.validation_.title: float(self.validation_.mean[self.chosen_])}
        if self.costs_ is not None:
            names = self._names()
            measured["cost"] = self.costs_.of(names[j] for j in self.support_)
        return measured


@dataclass(frozen=True, eq=False)
class Candidate:
    """A ranker fitted on some columns, its weights in full width, and the warnings of its fit."""

    ranker: LinearRanker
    columns: IntArray
    coef: FloatArray
    told: Sequence[tuple[type[Warning], str]]


def weights_of(candidates: Sequence[Candidate]) -> FloatArray:
    """Weights, one row per candidate."""
    return np.array([candidate.coef for candidate in candidates])


@dataclass(frozen=True, eq=False)
class Search:
    """What candidates are: the points of a grid of a method, each brought within the budget."""

    method: Method
    grid: Sequence[Point]
    budget: Budget
    count: Callable[[], None]

    def candidates(self, data: Dataset, query_weight: FloatArray | None) -> list[Candidate]:
        """One candidate per point, fitted on prepared data."""
        return list(self._candidates(data, query_weight))

    def _candidates(self, data: Dataset, query_weight: FloatArray | None) -> Iterator[Candidate]:
        payable, spread, start = payable_columns(self.budget, data.n_features), spread_in_queries(data), None
        for point in self.grid:
            found = self._fit(point, data, payable, query_weight, start)
            start = found.ranker.coef_ if self.method.warm else None
            if found.coef.any() and not self.budget.allows(found.coef[None])[0]:
                columns = strongest_columns(found.coef, spread, self.budget)
                found = self._fit(point, data, columns, query_weight)
            self.count()
            yield found

    def _fit(
        self,
        point: Point,
        data: Dataset,
        columns: IntArray,
        query_weight: FloatArray | None,
        start: FloatArray | None = None,
    ) -> Candidate:
        narrow = data if len(columns) == data.n_features else data.select_features(columns)
        if self.method.size:  # no more features than there are to choose from
            n_usable = max(1, int(varying_columns(narrow).sum()))
            point = within([point], self.method, n_usable)[0]
        ranker = cast("Any", self.method.make(**point))
        if start is not None:
            ranker.set_params(warm_start=True).coef_ = start
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranker.fit(narrow, **weighted(ranker, query_weight))
        coef = np.zeros(data.n_features)
        coef[columns] = ranker.coef_
        told = [(one.category, getattr(one.message, "text", str(one.message))) for one in caught]
        return Candidate(ranker, columns, coef, told)


def payable_columns(budget: Budget, n_features: int) -> IntArray:
    """Columns that the cost limit can pay for, each with its whole group but nothing else."""
    if budget.costs is None or budget.max_cost is None:
        return np.arange(n_features)
    return np.flatnonzero(fits(budget.costs.of_each, budget.max_cost))


def strongest_columns(coef: FloatArray, spread: FloatArray, budget: Budget) -> IntArray:
    """Of the columns in use, in the order of falling |w_j|·spread_j, each with which the budget is kept."""
    used, kept = np.flatnonzero(coef), np.zeros_like(coef)
    for j in used[np.argsort(-np.abs(coef[used]) * spread[used], kind="stable")]:
        kept[j] = 1.0
        if not budget.allows(kept[None])[0]:
            kept[j] = 0.0
    return np.flatnonzero(kept)


def spread_in_queries(data: Dataset) -> FloatArray:
    """Mean distance of each feature from its mean within the query: what a weight of 1 does to scores."""
    queries, spread = data.queries, np.empty(data.n_features)
    for columns, block in column_blocks(data.X):
        grouped = queries.group(block)
        mean = np.add.reduceat(grouped, queries.offsets[:-1]) / queries.sizes[:, None]
        spread[columns] = np.abs(grouped - mean[queries.query_of_grouped]).mean(axis=0)
    return spread


def _counter(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return count


def _best(coefs: FloatArray, means: FloatArray, budget: Budget) -> int:
    """The highest mean within the budget; of equals the fewest features, then the first."""
    allowed = np.flatnonzero(budget.allows(coefs))
    size = np.count_nonzero(coefs[allowed], axis=1)
    return int(allowed[np.lexsort((size, -means[allowed]))[0]])


def _validation(metric: str, profile: Profile, values: FloatArray, data: Dataset) -> Validation:
    defined = ~np.isnan(values[0])  # whether a query has a value depends on its labels alone
    if not defined.any():
        reason = f"{metric} is undefined for every validation query: none has a relevant document"
        raise DataError(None, None, reason)
    return Validation(metric, profile, np.ascontiguousarray(values[:, defined]), data.queries.ids[defined])
