"""GridRanker: any linear method within a budget, its parameters chosen on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import plain
from ranksieve.baselines.selector import weighted
from ranksieve.choice.decide import Choice, choose
from ranksieve.choice.families import Candidate, Family
from ranksieve.choice.held_out import HeldOut
from ranksieve.data.budget import Budget
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.describe import varying_columns
from ranksieve.data.features import column_blocks
from ranksieve.errors import ParameterError, lookup, warn_caller
from ranksieve.methods import METHODS, Method, find_method, thinned, within
from ranksieve.metrics import Profile, parse, profile_for
from ranksieve.model.linear import LinearModel
from ranksieve.path import Progress
from ranksieve.penalties import NoPenalty
from ranksieve.rankers.base import Attributes, Ranker, Task, ValidData, in_column_order, started_from
from ranksieve.rankers.parameters import Count, Interval, Seed, cost_of, plain_budget, stated_costs
from ranksieve.solvers import Trace

PREPARATION = ("normalise", "missing")
Point = Mapping[str, Any]


@dataclass(eq=False, repr=False)
class GridRanker(Ranker):
    """A linear method of the table METHODS, within a budget of features or cost.

    Candidates are the points of the method's own grid: all of them where each fit starts from the one before
    (``Method.warm``), else the fast grid of at most five values of one parameter or three of each of several.
    A candidate above the budget is fitted once more, on its strongest features alone: those with the largest
    |w_j|·s_j, where s_j is the mean distance of feature j from its mean within the query; with costs each
    that still fits, groups paid once. The candidate with the best mean of the metric on held-out queries is
    kept; in a tie the one with the fewest features (with costs the cheapest), then the first. A model
    without features is never kept, and counts as the worst ranking in a fold where a candidate has none.

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
        What each feature costs, alone or in groups that are paid once; see :func:`ranksieve.io.read_costs`.
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
    ranker_ : Ranker
        The same as the method gives it, fitted on prepared data with the columns ``columns_``.
    points_ : list of mappings
        The parameters of each candidate.
    choice_ : Choice
        The candidates and how they rank held-out queries; ``choice_.index`` is the number of the chosen one.
    n_folds_ : int
        Folds of training queries that were held out in turn; 0 if none were.
    costs_ : FeatureCosts or None
        What features cost.
    """

    ranker_: Ranker = field(init=False)
    columns_: IntArray = field(init=False)
    points_: Sequence[Point] = field(init=False)
    choice_: Choice = field(init=False)
    n_folds_: int = field(init=False)
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

    def fit(  # type: ignore[override]
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
        return self._learn(
            X, y, qid, query_weight=query_weight, document_weight=document_weight, valid=valid,
            progress=progress,
        )  # fmt: skip

    def _task(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Task:
        parse(self.metric)
        self._method()
        return super()._task(X, y, qid, **options)

    def _fit(self, task: Task) -> Attributes:
        method, data, source = self._method(), task.data, task.source
        valid = task.valid
        if valid is not None:
            valid = in_column_order(valid, source.feature_names, self)
            task.preparation.filled(valid)
        n_folds = min(self.cv, data.n_queries) if valid is None and data.n_queries > 1 else 0
        fold_of = np.random.default_rng(self.random_state).permutation(data.n_queries) % max(n_folds, 1)
        costs = stated_costs(self.feature_costs, source.feature_names, task.preparation.missing.indicators)
        search = self._search(method, data, costs, n_folds, task.progress)
        fits = search.fits(data, task.query_weight)
        if not search.budget.allows(np.array([fit.coef for fit in fits])).any():
            reason = f"{method.title} uses no feature with any of the {len(fits)} settings tried"
            raise ParameterError("parameters", self.parameters, f"{reason}; give others that keep some")
        fold_coefs = self._fold_coefs(search, data, task.query_weight, fold_of, n_folds)
        candidates = [fit.candidate(versions) for fit, versions in zip(fits, fold_coefs, strict=True)]
        profile = profile_for(self.profile, source if valid is None else valid)
        dealings = [fold_of] if n_folds else []
        held_out = HeldOut(task.preparation, self.metric, profile, source, dealings, valid)
        family = Family(method.title, candidates).measured(held_out)
        choice = choose([family], search.budget, data.feature_names, random_state=self.random_state)
        chosen = fits[choice.index]
        for category, text in chosen.warnings:
            warn_caller(text, category)
        return {
            "ranker_": chosen.ranker,
            "columns_": chosen.columns,
            "points_": search.grid,
            "n_folds_": n_folds,
            "choice_": choice,
            "costs_": costs,
            "coef_": chosen.coef,
            "objective_": choice.candidate.objective,
            "gap_": choice.candidate.gap,
            "n_iter_": choice.candidate.n_iter,
            "trace_": getattr(chosen.ranker, "trace_", Trace()),
        }

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "budget", "document_weight")  # the last if its method has it

    def _method(self) -> Method:
        method = find_method(self.method.lower()) if isinstance(self.method, str) else self.method
        if not isinstance(method, Method):
            raise ParameterError("method", method, "must be a name or a Method")
        if not method.linear:
            raise ParameterError("method", self.method, "is not linear, so it cannot have a budget")
        if method.can("valid"):
            reason = f"give {method.title} itself `max_features`, `feature_costs` and `max_cost`"
            raise ParameterError("method", self.method, reason)
        for name in self.parameters or {}:
            lookup(method.parameters, name, "parameters")
            if name in PREPARATION:
                raise ParameterError("parameters", self.parameters, f"give `{name}` to GridRanker itself")
        return method

    def _search(
        self,
        method: Method,
        data: Dataset,
        costs: FeatureCosts | None,
        n_folds: int,
        progress: Progress | None,
    ) -> GridSearch:
        names, varies = data.feature_names, varying_columns(data)
        budget = Budget.of(names, self.max_features, self.max_cost, costs)
        budget.check_affordable(varies)
        points = self._grid(method, max(1, min(self.max_features or len(names), int(varies.sum()))))
        return GridSearch(method, points, budget, _counter(progress, len(points) * (1 + n_folds)))

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

    def _fold_coefs(
        self,
        search: GridSearch,
        data: Dataset,
        query_weight: FloatArray | None,
        fold_of: IntArray,
        n_folds: int,
    ) -> Sequence[FloatArray | None]:
        """For each candidate its weights without each fold (folds × features); None without folds."""
        if n_folds == 0:  # one query cannot be held out from itself: it is its own validation set
            return [None] * len(search.grid)
        coefs = np.empty((len(search.grid), n_folds, data.n_features))
        for fold in range(n_folds):
            others = fold_of != fold
            weight = None if query_weight is None else query_weight[others]
            try:
                fits = search.fits(data.select_queries(others), weight)
            except ValueError as error:
                reason = f"cannot fit without fold {fold + 1} of {n_folds} ({error})"
                advice = "give validation data, or another `cv` or `random_state`"
                raise ParameterError("cv", self.cv, f"{reason}; {advice}") from None
            coefs[:, fold] = [fit.coef for fit in fits]
        return list(coefs)

    def to_model(self) -> LinearModel:
        """The chosen ranker as a model that can be saved, exported and explained."""
        model: LinearModel = replace(super().to_model(), method=type(self.ranker_).__name__)
        return model

    def _stated_parameters(self) -> dict[str, Any]:
        """Those of the chosen ranker, with the budget and how it was chosen."""
        own = plain_budget(self, super()._stated_parameters())
        stated = dict(self.ranker_._fit_parameters)
        budget = ("max_features", "max_cost", "feature_costs")
        stated |= {name: own[name] for name in budget if own[name] is not None}
        stated |= {name: own[name] for name in PREPARATION}
        method = next((name for name, entry in METHODS.items() if entry is self._method()), None)
        point = plain(dict(self.points_[self.choice_.index]))
        choice = {
            "method": method, "parameters": own["parameters"] or {}, "candidates": len(self.points_),
            "point": point,
        }  # fmt: skip
        if "valid" not in self._origin.fingerprints:
            choice |= {"cv": self.cv, "random_state": self.random_state}
        return {**stated, "choice": choice | (self.choice_.validation.criterion or {})}

    def _certificate(self) -> dict[str, Any]:
        """That of the chosen ranker; ``features`` are those it was fitted on, if not all."""
        names, proven = self.coef_names_, self.ranker_._certificate()
        if len(self.columns_) < len(names) and np.isfinite(self.objective_):
            proven = {"features": [names[j] for j in self.columns_]} | proven
        return proven

    def _chosen_by(self) -> dict[str, str] | None:
        return None if len(self.points_) == 1 else self.choice_.validation.criterion

    def _metrics(self) -> dict[str, float]:
        validation = self.choice_.validation
        cost = cost_of(self.costs_, self.coef_names_, self.support_)
        return {validation.title: float(validation.mean[self.choice_.index]), **cost}


@dataclass(frozen=True, eq=False)
class GridFit:
    """A ranker fitted on some columns, its weights in full width, and the warnings of its fit."""

    ranker: Ranker
    columns: IntArray
    coef: FloatArray
    warnings: Sequence[tuple[type[Warning], str]]

    def candidate(self, fold_coefs: FloatArray | None) -> Candidate:
        objective, gap = (float(getattr(self.ranker, name, np.nan)) for name in ("objective_", "gap_"))
        n_iter = int(getattr(self.ranker, "n_iter_", 1))
        return Candidate(self.coef, NoPenalty(), objective, gap, fold_coefs, n_iter)


@dataclass(frozen=True, eq=False)
class GridSearch:
    """The points of a method's grid, each fit brought within the budget."""

    method: Method
    grid: Sequence[Point]
    budget: Budget
    count: Callable[[], None]

    def fits(self, data: Dataset, query_weight: FloatArray | None) -> list[GridFit]:
        """One fit per point, on prepared data."""
        return list(self._fits(data, query_weight))

    def _fits(self, data: Dataset, query_weight: FloatArray | None) -> Iterator[GridFit]:
        payable, spread = payable_columns(self.budget, data.n_features), spread_in_queries(data)
        previous = None
        for point in self.grid:
            fit = self._fit(point, data, payable, query_weight, previous)
            previous = fit.ranker if self.method.warm else None
            if fit.coef.any() and not self.budget.allows(fit.coef[None])[0]:
                columns = strongest_columns(fit.coef, spread, self.budget)
                fit = self._fit(point, data, columns, query_weight)
            self.count()
            yield fit

    def _fit(
        self,
        point: Point,
        data: Dataset,
        columns: IntArray,
        query_weight: FloatArray | None,
        previous: Ranker | None = None,
    ) -> GridFit:
        narrow = data if len(columns) == data.n_features else data.select_features(columns)
        if self.method.size:  # no more features than there are to choose from
            n_usable = max(1, int(varying_columns(narrow).sum()))
            point = within([point], self.method, n_usable)[0]
        ranker: Any = self.method.make(**point)
        if previous is not None:
            started_from(ranker, previous.coef_, narrow.feature_names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranker.fit(narrow, **weighted(ranker, query_weight))
        coef = np.zeros(data.n_features)
        coef[columns] = ranker.coef_
        texts = [(one.category, getattr(one.message, "text", str(one.message))) for one in caught]
        return GridFit(ranker, columns, coef, texts)


def payable_columns(budget: Budget, n_features: int) -> IntArray:
    """Columns that the cost limit can pay for, each with its whole group but nothing else."""
    if budget.costs is None or budget.max_cost is None:
        return np.arange(n_features)
    return np.flatnonzero(budget.costs.of_each <= budget.limit)


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
