"""GridRanker: any linear method within a budget, with parameters selected on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import to_plain
from ranksieve.baselines.selector import query_weight_argument
from ranksieve.choice.decide import Choice, choose
from ranksieve.choice.families import Candidate, Family
from ranksieve.choice.held_out import HeldOut
from ranksieve.data.budget import Budget
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.describe import varying_columns
from ranksieve.data.features import column_blocks
from ranksieve.errors import ParameterError, lookup, warn_caller
from ranksieve.methods import METHODS, Method, as_method, limit_sizes, thin_grid
from ranksieve.metrics import Profile, parse, profile_for
from ranksieve.model.linear import LinearModel
from ranksieve.path import Progress
from ranksieve.penalties import NoPenalty
from ranksieve.rankers.base import Attributes, Ranker, Task, ValidData, in_column_order, start_from
from ranksieve.rankers.parameters import Count, Interval, Seed, cost_of, plain_budget, stated_costs
from ranksieve.solvers import Trace

PREPARATION_PARAMETERS = ("normalise", "missing")
Point = Mapping[str, Any]


@dataclass(eq=False, repr=False)
class GridRanker(Ranker):
    """A linear method of METHODS within a budget, with parameters selected on held-out queries.

    Candidates are the points of the method's grid: all of them if each fit starts from the previous one
    (``Method.warm``), else the fast grid with at most five values of one parameter or three of each of
    several. A candidate above the budget is refitted on its strongest features: in the order of decreasing
    |w_j|·s_j, s_j the mean absolute deviation of feature j from its mean within the query, each feature that
    the budget still allows (groups are paid once). The candidate with the best mean of the metric on held-out
    queries is selected; ties are broken by the number of features (with costs: by cost), then by the order of
    the grid. A model without features is never selected; in a fold, it counts as the worst possible ranking.

    Parameters
    ----------
    method : str, Method, class or object
        A name in METHODS, ``package.module:Class``, a Method, or a class or object of your own with ``fit``,
        ``predict`` and, after the fit, ``coef_``; a class may have a ``grid``, a list of parameters to try.
        SparseRanker has its own budget and is not supported.
    max_features : int, optional
        Maximum number of features.
    metric : str
        Metric to maximise, such as "ndcg@10" or "map".
    parameters : mapping, optional
        Fixed parameters of the method; the grid varies the others.
    feature_costs : file, mapping, sequence or FeatureCosts, optional
        Cost of each feature, or of groups of features that are paid once; see
        :func:`ranksieve.io.read_costs`.
    max_cost : float, optional
        Maximum cost of the features in use.
    profile : str or Profile, optional
        Metric conventions. Default: the profile of the held-out data if they have one, else "standard".
    cv : int
        Number of folds of the training queries, used without validation data. Each candidate is refitted
        without each fold, including its selection of features.
    random_state : int
        Seed of the split into folds.
    normalise, missing
        Scaling of features and replacement of missing values, as in every ranker.

    Attributes
    ----------
    coef_, support_, objective_, gap_, n_iter_
        The selected model, with one weight per column of the data, and its certificate.
    ranker_ : Ranker
        The selected ranker of the method, fitted on the columns ``columns_`` of the prepared data.
    points_ : list of mappings
        The parameters of each candidate.
    choice_ : Choice
        The candidates with their held-out metrics; ``choice_.index`` is the index of the selected one.
    n_folds_ : int
        Number of folds of cross-validation; 0 without cross-validation.
    costs_ : FeatureCosts or None
        Feature costs.
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
        progress: bool | Progress | None = None,
        **others: Any,
    ) -> Self:
        """Fit the candidates and select one on ``valid``, or by cross-validation over queries.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset, optional
            Validation data for the selection.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or a mapping for some queries (default 1). A
            query of weight 2 counts twice, one of weight 0 is ignored.
        document_weight : array, optional
            One weight per row, unless X is a Dataset. A document of weight 2 counts as two copies, one of
            weight 0 is ignored.
        progress : bool or callable, optional
            True: show the progress; a function is called with (fits done, total).
        **others
            ``group``, the number of rows of each query as in LightGBM and XGBoost, in place of ``qid``;
            ``verbose`` is the same as ``progress``.
        """
        return self._learn(
            X, y, qid, query_weight=query_weight, document_weight=document_weight, valid=valid,
            progress=progress, **others,
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
            raise ParameterError("parameters", self.parameters, f"{reason}; use parameters that keep some")
        fold_coefs = self._fold_coefs(search, data, task.query_weight, fold_of, n_folds)
        candidates = [fit.candidate(versions) for fit, versions in zip(fits, fold_coefs, strict=True)]
        profile = profile_for(self.profile, source if valid is None else valid)
        splits = [fold_of] if n_folds else []
        held_out = HeldOut(task.preparation, self.metric, profile, source, splits, valid)
        family = Family(method.title, candidates).with_validation(held_out)
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
        return ("linear", "scale", "budget", "document_weight")  # the last only if the method has it

    def _method(self) -> Method:
        method = as_method(self.method)
        if not method.linear:
            raise ParameterError("method", self.method, "is not linear; budgets need a linear method")
        if method.can("valid"):
            reason = f"pass `max_features`, `feature_costs` and `max_cost` to {method.title} itself"
            raise ParameterError("method", self.method, reason)
        for name in self.parameters or {}:
            lookup(method.parameters, name, "parameters")
            if name in PREPARATION_PARAMETERS:
                raise ParameterError("parameters", self.parameters, f"pass `{name}` to GridRanker itself")
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
        """Points of the method's grid with the fixed parameters, with sizes of at most ``n_usable``.

        If every parameter that varies in the grid is fixed, there is one point, and the constant parameters
        of the grid are not used.
        """
        fixed: Point = self.parameters or {}
        grid = limit_sizes(method.grid, method, n_usable)
        points: Sequence[Point] = grid if method.warm else thin_grid(grid)
        first = method.grid[0]
        varied = {name for point in method.grid for name in point if point[name] != first.get(name)}
        if varied and varied | ({method.size} - {""}) <= fixed.keys():
            points = [{}]
        points = limit_sizes([{**point, **fixed} for point in points], method, n_usable)
        return [point for k, point in enumerate(points) if point not in points[:k]]

    def _fold_coefs(
        self,
        search: GridSearch,
        data: Dataset,
        query_weight: FloatArray | None,
        fold_of: IntArray,
        n_folds: int,
    ) -> Sequence[FloatArray | None]:
        """Weights of each candidate, fitted without each fold (folds × features); None without folds."""
        if n_folds == 0:  # validation data, or a single query, which is then evaluated on itself
            return [None] * len(search.grid)
        coefs = np.empty((len(search.grid), n_folds, data.n_features))
        for fold in range(n_folds):
            others = fold_of != fold
            weight = None if query_weight is None else query_weight[others]
            try:
                fits = search.fits(data.select_queries(others), weight)
            except ValueError as error:
                reason = f"cannot fit without fold {fold + 1} of {n_folds} ({error})"
                advice = "use validation data, or another `cv` or `random_state`"
                raise ParameterError("cv", self.cv, f"{reason}; {advice}") from None
            coefs[:, fold] = [fit.coef for fit in fits]
        return list(coefs)

    def to_model(self) -> LinearModel:
        """The selected ranker as a model that can be saved, exported and explained."""
        model: LinearModel = replace(super().to_model(), method=self.ranker_._model_name)
        return model

    def _stated_parameters(self) -> dict[str, Any]:
        """Parameters of the selected ranker, with the budget and the settings of the selection."""
        parameters = plain_budget(self, super()._stated_parameters())
        stated = dict(self.ranker_._fit_parameters)
        budget = ("max_features", "max_cost", "feature_costs")
        stated |= {name: parameters[name] for name in budget if parameters[name] is not None}
        stated |= {name: parameters[name] for name in PREPARATION_PARAMETERS}
        method = next((name for name, entry in METHODS.items() if entry is self._method()), None)
        point = to_plain(dict(self.points_[self.choice_.index]))
        choice = {
            "method": method, "parameters": parameters["parameters"] or {}, "candidates": len(self.points_),
            "point": point,
        }  # fmt: skip
        if "valid" not in self._origin.fingerprints:
            choice |= {"cv": self.cv, "random_state": self.random_state}
        return {**stated, "choice": choice | (self.choice_.validation.criterion or {})}

    def _certificate(self) -> dict[str, Any]:
        """Certificate of the selected ranker, with the ``features`` it was fitted on, if not all."""
        names, certificate = self.coef_names_, self.ranker_._certificate()
        if len(self.columns_) < len(names) and np.isfinite(self.objective_):
            certificate = {"features": [names[j] for j in self.columns_]} | certificate
        return certificate

    def _chosen_by(self) -> dict[str, str] | None:
        return None if len(self.points_) == 1 else self.choice_.validation.criterion

    def _metrics(self) -> dict[str, float]:
        validation = self.choice_.validation
        cost = cost_of(self.costs_, self.coef_names_, self.support_)
        return {validation.title: float(validation.mean[self.choice_.index]), **cost}


@dataclass(frozen=True, eq=False)
class GridFit:
    """A ranker fitted on some columns, its weights for all columns, and the warnings of its fit."""

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
    """Fits the points of a method's grid within the budget."""

    method: Method
    grid: Sequence[Point]
    budget: Budget
    count: Callable[[], None]

    def fits(self, data: Dataset, query_weight: FloatArray | None) -> list[GridFit]:
        return list(self._fits(data, query_weight))

    def _fits(self, data: Dataset, query_weight: FloatArray | None) -> Iterator[GridFit]:
        affordable, spread = affordable_columns(self.budget, data.n_features), spread_in_queries(data)
        previous = None
        for point in self.grid:
            fit = self._fit(point, data, affordable, query_weight, previous)
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
        train = data if len(columns) == data.n_features else data.select_features(columns)
        if self.method.size:
            n_usable = max(1, int(varying_columns(train).sum()))
            point = limit_sizes([point], self.method, n_usable)[0]
        ranker: Any = self.method.make(**point)
        if previous is not None:
            start_from(ranker, previous.coef_, train.feature_names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranker.fit(train, **query_weight_argument(ranker, query_weight))
        if not ranker.can("linear"):
            reason = f"{self.method.title} has no `coef_` with one weight per feature, which budgets need"
            raise ParameterError("method", self.method.title, reason)
        coef = np.zeros(data.n_features)
        coef[columns] = ranker.coef_
        texts = [(one.category, getattr(one.message, "text", str(one.message))) for one in caught]
        return GridFit(ranker, columns, coef, texts)


def affordable_columns(budget: Budget, n_features: int) -> IntArray:
    """Columns whose own cost, including that of their group, is within the cost limit."""
    if budget.costs is None or budget.max_cost is None:
        return np.arange(n_features)
    return np.flatnonzero(budget.costs.of_each <= budget.limit)


def strongest_columns(coef: FloatArray, spread: FloatArray, budget: Budget) -> IntArray:
    """Select columns in use greedily, by decreasing |w_j|·spread_j, while the budget allows them."""
    used, selected = np.flatnonzero(coef), np.zeros_like(coef)
    for j in used[np.argsort(-np.abs(coef[used]) * spread[used], kind="stable")]:
        selected[j] = 1.0
        if not budget.allows(selected[None])[0]:
            selected[j] = 0.0
    return np.flatnonzero(selected)


def spread_in_queries(data: Dataset) -> FloatArray:
    """Mean absolute deviation of each feature from its mean within the query."""
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
