"""Explain the rank of documents, the importance of features, and the worst-ranked queries."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import to_plain
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import Names, find_document, full_document_name, plain_id, query_number
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.tables import as_costs
from ranksieve.losses import Loss
from ranksieve.losses.squared_hinge import stated_loss
from ranksieve.metrics import Evaluator, MetricSpec, Profile
from ranksieve.metrics.evaluate import evaluate_quietly, mean_of_defined, parse_all, scores_of
from ranksieve.metrics.significance import holm, paired_t, randomisation
from ranksieve.model.linear import FittedRanker, LinearModel, as_linear_model, linear_scores
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.prepare import NOT_NORMALISED
from ranksieve.show.explain import drop_name, drop_parts, pair_parts, query_parts, worst_sentence
from ranksieve.show.formats import metric_title, plural
from ranksieve.show.result import Part, Shown
from ranksieve.show.upwards import Drawn
from ranksieve.solvers import Problem, ProxNewton


def _logged_and_filled(model: LinearModel, data: Dataset) -> tuple[FloatArray, FloatArray]:
    """Values of the features in use (documents × features) as logged, with NaN if missing, and filled.

    An indicator of missing values is 0 or 1 in both.
    """
    matrix, columns = model.locate(data)
    plain = tuple(replace(term, curve=None) for term in model.terms)
    preparation = replace(model.preparation, normalisation=NOT_NORMALISED)
    unscaled = replace(model, terms=plain, preparation=preparation)
    filled = unscaled.inputs(data)
    logged = np.array(dense_block(matrix, slice(None), columns), dtype=np.float64)
    is_indicator = np.isin(model.names, list(model.preparation.missing.indicators))
    return np.where(is_indicator, filled, logged), filled


def inputs(model: LinearModel, data: Dataset) -> FloatArray:
    """Filled and normalised values of the features in use (rows × features), which must be finite."""
    values = model.inputs(data)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(index) for index in bad[0])
        cell = f"feature {model.names[column]} of {full_document_name(data, row)} is {values[row, column]}"
        raise DataError(None, None, f"{cell}; fill missing values or rescale the feature")
    return values


def model_to_explain(model: LinearModel | FittedRanker) -> LinearModel:
    """A linear model that uses at least one feature."""
    linear = as_linear_model(model, "so its scores are not a sum over features")
    if not linear.terms:
        raise ParameterError("model", model, "must use at least one feature")
    return linear


@dataclass(frozen=True)
class FeatureContribution:
    """Contribution of a feature to a score difference: ``contribution`` = weight · (value_a − value_b).

    ``value_a`` is filled and normalised, or the level of the curve, whose weight is 1.
    ``logged_a`` is the value in the data, None if missing, and ``filled_a`` is filled but not normalised,
    None if a curve has a level for missing values. ``next_a`` are the next threshold of the curve above the
    value and the change of the contribution from there on, None if there is none; likewise for b.
    """

    feature: str
    weight: float
    value_a: float
    value_b: float
    contribution: float
    logged_a: float | None
    logged_b: float | None
    filled_a: float | None
    filled_b: float | None
    next_a: tuple[float, float] | None = None
    next_b: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class PairExplanation(Drawn, Shown):
    """score_a − score_b = Σ_j w_j (x_aj − x_bj), with the largest contributions first.

    ``difference`` is the correctly rounded sum (math.fsum) of the contributions c_j, each of which is rounded
    twice. So it is within 2ε·Σ_j|c_j| of the exact value, and the difference of two predicted scores, whose
    sums round at each of n terms, is within (n + 2)·ε·Σ_j(|w_j x_aj| + |w_j x_bj|) of it, ε = 2⁻⁵², unless a
    product is below the smallest normal number. ``scaled``: the model normalises features; ``curves``: it has
    curves.
    """

    query: Any
    a: Any
    b: Any
    score_a: float
    score_b: float
    difference: float
    parts: tuple[FeatureContribution, ...]
    rank_a: int = 0
    rank_b: int = 0
    query_text: str = ""
    text_a: str = ""
    text_b: str = ""
    scaled: bool = False
    curves: bool = False

    def _line(self) -> str:
        relation = "above" if self.difference > 0 else "below" if self.difference < 0 else "level with"
        return f"query {self.query}: {self.a} ranks {relation} {self.b} by {abs(self.difference):.4g}"

    def shown(self) -> Sequence[Part]:
        """Why one document ranks above the other, and the contribution of each feature."""
        return pair_parts(self)

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per feature."""
        names = ("feature", "weight", "value_a", "value_b", "contribution", "logged_a", "logged_b")
        return {name: [getattr(part, name) for part in self.parts] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False, repr=False)
class QueryExplanation(Drawn, Shown):
    """The documents of a query by descending score, with the contribution of each feature in use.

    ``contributions`` (documents × features) is w_j·x_j, with x_j in ``values``, filled and normalised, or the
    value of a curve; the sum of a row plus ``intercept`` is the score. ``logged`` has the values in the data,
    NaN if missing; ``filled`` has them filled, but not normalised. ``rows`` are row numbers of the data.
    ``scaled``: the model normalises features. For a model with curves, ``next_thresholds`` has the next
    threshold above each value and ``next_changes`` the change of the contribution from there on, NaN if there
    is none.
    """

    query: Any
    documents: tuple[Any, ...]
    rows: IntArray
    labels: FloatArray
    scores: FloatArray
    features: tuple[str, ...]
    values: FloatArray
    contributions: FloatArray
    intercept: float
    logged: FloatArray
    filled: FloatArray
    query_text: str = ""
    texts: tuple[str, ...] = field(default=())
    scaled: bool = False
    next_thresholds: FloatArray | None = None
    next_changes: FloatArray | None = None

    @property
    def curves(self) -> bool:
        """Whether the model has curves."""
        return self.next_thresholds is not None

    @property
    def ranks(self) -> IntArray:
        """1, 2, …; documents with equal scores keep the order of the data."""
        return np.arange(1, len(self.rows) + 1)

    def _line(self) -> str:
        documents = plural(len(self.rows), "document")
        return f"query {self.query}: {documents}, {plural(len(self.features), 'feature')}"

    def shown(self) -> Sequence[Part]:
        """Contributions of the features that vary most, then the values."""
        return query_parts(self)

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """One row per document, with the contribution of each feature."""
        facts = {"rank": self.ranks, "document": self.documents, "label": self.labels, "score": self.scores}
        added = {f"contribution of {name}": self.contributions[:, j] for j, name in enumerate(self.features)}
        return {name: np.asarray(values).tolist() for name, values in {**facts, **added}.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a missing value is None."""
        named = {name: to_plain(v) if isinstance(v, np.ndarray) else v for name, v in vars(self).items()}
        return {**named, "rows": self.rows.tolist()}


def explain_pair(
    model: LinearModel | FittedRanker, data: Dataset, a: Hashable, b: Hashable, qid: Hashable | None = None
) -> PairExplanation:
    """Explain why document ``a`` ranks above or below document ``b`` of the same query.

    Without ``qid``, ``a`` and ``b`` are row numbers of the data (from 0). With ``qid``, they are document ids
    or numbers (from 1) within the query.
    """
    model = model_to_explain(model)
    row_a, row_b = (
        _row(data, name, document) if qid is None else find_document(data, qid, document)
        for name, document in (("a", a), ("b", b))
    )
    if data.qid[row_a] != data.qid[row_b]:
        reason = f"rows {row_a} and {row_b} belong to queries {data.qid[row_a]} and {data.qid[row_b]}"
        raise ParameterError("b", b, f"{reason}; choose documents of the same query")
    query = explain_query(model, data, data.qid[row_a])
    i, j = (int(np.flatnonzero(query.rows == row)[0]) for row in (row_a, row_b))
    values, filled = query.values[[i, j]], query.filled[[i, j]]
    contributions = model.weights * (values[0] - values[1])
    columns = [model.weights, *values, contributions, *to_plain(query.logged[[i, j]]), *to_plain(filled)]
    lists = (np.asarray(column).tolist() for column in columns)
    steps = [_steps_above(query, k) for k in (i, j)]
    parts = list(map(FeatureContribution, query.features, *lists, *steps))
    scores, ranks, texts = query.scores.tolist(), query.ranks.tolist(), query.texts or [""] * len(query.rows)
    return PairExplanation(
        query.query, query.documents[i], query.documents[j], scores[i], scores[j],
        math.fsum(part.contribution for part in parts),
        tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        ranks[i], ranks[j], query.query_text, texts[i], texts[j], query.scaled, query.curves,
    )  # fmt: skip


def _steps_above(query: QueryExplanation, document: int) -> list[tuple[float, float] | None]:
    """The next threshold and change of each feature."""
    if query.next_thresholds is None or query.next_changes is None:
        return [None] * len(query.features)
    steps = zip(query.next_thresholds[document].tolist(), query.next_changes[document].tolist(), strict=True)
    return [None if math.isnan(step[0]) else step for step in steps]


def explain_query(model: LinearModel | FittedRanker, data: Dataset, qid: Hashable) -> QueryExplanation:
    """Contribution of each feature in use to the score of each document of a query."""
    model = model_to_explain(model)
    number, names = query_number(data, qid), Names(data)
    rows = data.queries.rows_of(number)
    documents = data.select_rows(rows)
    scores = model.predict(documents)
    order = np.argsort(-scores, kind="stable")
    values, ranked = inputs(model, documents)[order], rows[order].tolist()
    logged, filled = _logged_and_filled(model, documents)
    texts = tuple(names.document_text(row) for row in ranked)
    thresholds, changes = _next_steps(model, logged[order])
    return QueryExplanation(
        plain_id(documents.qid[0]), tuple(names.document(row) for row in ranked), rows[order],
        documents.y[order], scores[order], tuple(model.names), values, values * model.weights,
        model.intercept, logged[order], filled[order], names.query_text(number),
        texts if any(texts) else (), model.normalisation is not None, thresholds, changes,
    )  # fmt: skip


def _next_steps(model: LinearModel, logged: FloatArray) -> tuple[FloatArray | None, FloatArray | None]:
    """Next thresholds and changes (documents × features) above the values; None without curves."""
    if not model.has_curves:
        return None, None
    thresholds, changes = np.full(logged.shape, np.nan), np.full(logged.shape, np.nan)
    curves = model.curves
    for k, name in enumerate(model.names):
        if (curve := curves.get(name)) is not None:
            thresholds[:, k], changes[:, k] = curve.next_steps(logged[:, k])
    return thresholds, changes


def _row(data: Dataset, name: str, row: Any) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < data.n_docs:
        reason = f"must be a row number from 0 to {data.n_docs - 1}; pass `qid` to use document ids"
        raise ParameterError(name, row, reason)
    return int(row)


IMPORTANCE_RIDGE_SHARE = 1e-6  # of ‖Xᵀ∇f(0)‖_∞: keeps a refit bounded if its features separate every pair


@dataclass(frozen=True)
class FeatureImportance:
    """Change of a metric if a feature, or all features of a group that is paid once, are dropped.

    ``loss`` = ``value`` − ``without``, both means over queries. The p-values (paired t, randomisation) are
    two-sided; those named holm are corrected for all different drops. ``saved`` is the saved cost, None
    without costs. ``dropped`` are the features in use that are dropped; ``group``: ``feature`` is the name of
    a group.
    """

    feature: str
    metric: str
    value: float
    without: float
    loss: float
    p_t: float
    p_randomisation: float
    p_t_holm: float
    p_randomisation_holm: float
    saved: float | None
    dropped: tuple[str, ...] = ()
    group: bool = False


class Importances(Shown, tuple[FeatureImportance, ...]):
    """The loss in each metric without each feature: a tuple that prints itself."""

    def _line(self) -> str:
        rows = (f"{drop_name(one)} {one.loss:+.4f} {metric_title(one.metric)}" for one in self[:3])
        return f"{plural(len(self), 'drop')}: {', '.join(rows)}"

    def shown(self) -> Sequence[Part]:
        """One table per metric."""
        return drop_parts(self)

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """All fields."""
        return {one.name: [getattr(row, one.name) for row in self] for one in fields(FeatureImportance)}


class _Drop(NamedTuple):
    """Columns of the model to drop, and the saved cost."""

    name: str
    columns: tuple[int, ...]
    saved: float | None
    group: bool


def feature_importance(
    model: LinearModel | FittedRanker,
    data: Dataset,
    metrics: str | Sequence[str | MetricSpec] = "ndcg@10",
    feature_costs: Mapping[str, Any] | FeatureCosts | None = None,
    *,
    train: Dataset | None = None,
    profile: str | Profile | None = None,
    n_permutations: int = 10_000,
    random_state: int = 0,
) -> Importances:
    """Loss in each metric, and saved cost, if each feature of the model is dropped.

    With costs, there is also a row for each group of features that is paid once, if the model uses one of
    them: dropping one feature of a group saves nothing while another is in use. The other weights are kept
    unless ``train`` is given: then the weights with and without the feature are refitted on it, min f(w) +
    ½ρ‖w‖², f the mean squared hinge over pairs with the model's pair weighting, ρ = 10⁻⁶·‖Xᵀ∇f(0)‖_∞.
    ``profile`` is as in :func:`ranksieve.evaluate`. Rows are ordered by metric, then by decreasing loss.
    """
    linear = model_to_explain(model)
    specs, drops = parse_all(metrics), _drops(linear, data, feature_costs)
    evaluator, values_of = Evaluator(data, profile), inputs(linear, data)
    refit_data = None if train is None else (inputs(linear, train), train)
    loss = stated_loss(linear.parameters)

    def per_query(without: tuple[int, ...]) -> Mapping[str, FloatArray]:
        columns = np.delete(np.arange(len(linear.terms)), without)
        weights = (
            linear.weights[columns] if refit_data is None else _refit_weights(*refit_data, loss, columns)
        )
        return evaluator.evaluate(linear_scores(values_of, columns, weights), specs).per_query

    with_all = per_query(())
    without = {columns: per_query(columns) for columns in dict.fromkeys(drop.columns for drop in drops)}
    all_rows: list[FeatureImportance] = []
    for metric, values in with_all.items():
        reduced = {columns: one[metric] for columns, one in without.items()}
        p_values = dict(
            zip(reduced, _p_values(values, list(reduced.values()), n_permutations, random_state), strict=True)
        )
        value = mean_of_defined(values)
        rows = []
        for drop in drops:
            mean = mean_of_defined(reduced[drop.columns])
            dropped = tuple(linear.names[j] for j in drop.columns)
            row = (drop.name, metric, value, mean, value - mean, *p_values[drop.columns], drop.saved)
            rows.append(FeatureImportance(*row, dropped, drop.group))
        all_rows += sorted(rows, key=lambda row: -row.loss)
    return Importances(all_rows)


def _drops(
    model: LinearModel, data: Dataset, feature_costs: Mapping[str, Any] | FeatureCosts | None
) -> list[_Drop]:
    """A drop for each feature, then for each group of which the model uses a feature."""
    names, indicators = model.names, model.preparation.missing.indicators
    if feature_costs is None:
        return [_Drop(name, (j,), None, False) for j, name in enumerate(names)]
    sources = [name for name in data.feature_names if name not in indicators]
    costs = as_costs(feature_costs, sources).with_indicators(indicators)
    groups = [unit for unit in costs.units if unit.group is not None]
    sets = [(name, [name], False) for name in names]
    sets += [(unit.name, [name for name in names if name in unit.features], True) for unit in groups]
    total, drops = costs.of(names), []
    for name, dropped, group in sets:
        if dropped:
            saved = total - costs.of([other for other in names if other not in dropped])
            drops.append(_Drop(name, tuple(map(names.index, dropped)), saved, group))
    return drops


def _p_values(
    values: FloatArray, reduced: list[FloatArray], n_permutations: int, random_state: int
) -> list[tuple[float, float, float, float]]:
    """p-values of the paired t-test and the randomisation test, and both corrected, for each drop."""
    p_t = [paired_t(values, one) for one in reduced]
    p_random = [randomisation(values, one, n_permutations, random_state) for one in reduced]
    return list(zip(p_t, p_random, holm(p_t).tolist(), holm(p_random).tolist(), strict=True))


def _refit_weights(values: FloatArray, train: Dataset, loss: Loss, columns: IntArray) -> FloatArray:
    if len(columns) == 0:
        return np.empty(0)
    data = train.replace_features(values[:, columns], [f"f{j + 1}" for j in columns])
    objective = make_objective(data, loss)
    ridge = IMPORTANCE_RIDGE_SHARE * float(np.abs(objective.gradient(objective.at_zero)).max())
    return ProxNewton(tol=1e-6, max_iter=100).solve(Problem(objective, Ridge(ridge))).w


@dataclass(frozen=True)
class WorstQuery:
    """A query with its metric value, and its highest-ranked relevant document with its rank.

    ``first`` is the document at rank 1. Texts are from the data, or empty.
    """

    query: Any
    text: str
    metric: str
    value: float
    n_documents: int
    n_relevant: int
    rank: int
    document: Any
    document_text: str
    first: Any
    first_text: str

    @property
    def why(self) -> str:
        """Description of the rank of its relevant documents."""
        count = "its only relevant document" if self.n_relevant == 1 else (
            f"the highest-ranked of its {self.n_relevant} relevant documents"
        )  # fmt: skip
        return f"{count} is at rank {self.rank} of {self.n_documents}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "why": self.why}


class WorstQueries(Shown, tuple[WorstQuery, ...]):
    """The queries with the lowest metric: a tuple that prints itself."""

    def _line(self) -> str:
        rows = (f"{one.query} {one.value:.4f}" for one in self[:5])
        metric = f" by {metric_title(self[0].metric)}" if self else ""
        return f"{plural(len(self), 'query', 'queries')}{metric}: {', '.join(rows)}"

    def shown(self) -> Sequence[Part]:
        """One sentence per query."""
        return [worst_sentence(one) for one in self]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """All fields."""
        return {one.name: [getattr(row, one.name) for row in self] for one in fields(WorstQuery)}


def worst_queries(
    scores: Any,
    data: Dataset,
    metric: str | MetricSpec = "ndcg@10",
    n: int = 10,
    *,
    profile: str | Profile | None = None,
) -> WorstQueries:
    """The ``n`` queries with the lowest metric, lowest first.

    Ties are broken by the rank of the first relevant document, lowest-ranked first. Queries without a
    relevant document are ignored: all rankings of them are equally good. ``scores`` has one score per row, as
    returned by ``predict``, or is a model or fitted ranker; ``profile`` is as in :func:`ranksieve.evaluate`.
    """
    scores = scores_of(scores, data)
    evaluation = evaluate_quietly(scores, data, [metric], profile)
    ((metric_name, values),) = evaluation.per_query.items()
    names, worst = Names(data), []
    for number, value in enumerate(values.tolist()):
        rows = data.queries.rows_of(number)
        ranked = rows[np.argsort(-np.asarray(scores)[rows], kind="stable")]
        relevant = np.flatnonzero(data.y[ranked] >= evaluation.profile.relevant_from)
        if len(relevant) and not np.isnan(value):
            worst.append((value, -int(relevant[0]), number, ranked, len(relevant)))
    worst.sort(key=lambda one: one[:3])
    result = []
    for value, minus_index, number, ranked, n_relevant in worst[:n]:
        best, first = (
            (names.document(row), names.document_text(row)) for row in ranked[[-minus_index, 0]].tolist()
        )
        query = (plain_id(data.queries.ids[number]), names.query_text(number), metric_name, value)
        result.append(WorstQuery(*query, len(ranked), n_relevant, 1 - minus_index, *best, *first))
    return WorstQueries(result)
