"""Why a document ranks where it does, what each feature is worth, and the worst-ranked queries."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import plain
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import Names, document_words, find_document, plain_id, query_number
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.tables import as_costs
from ranksieve.metrics import Evaluator, MetricSpec, Profile, evaluate
from ranksieve.metrics.evaluate import mean_of_defined, parse_all, scores_of
from ranksieve.metrics.significance import holm, paired_t, randomisation
from ranksieve.model.linear import FittedRanker, LinearModel, linear_model, linear_scores
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.prepare import NOT_NORMALISED
from ranksieve.solvers import Problem, ProxNewton


def _logged_and_filled(model: LinearModel, data: Dataset) -> tuple[FloatArray, FloatArray]:
    """Documents × features in use as logged (NaN where missing), and with missing values filled.

    An indicator is logged as what it is filled with, 0 or 1.
    """
    matrix, columns = model.located(data)
    unscaled = replace(model, preparation=replace(model.preparation, normalisation=NOT_NORMALISED))
    filled = unscaled.inputs(data)
    logged = np.array(dense_block(matrix, slice(None), columns), dtype=np.float64)
    about = np.isin(model.names, list(model.preparation.missing.indicators))
    return np.where(about, filled, logged), filled


def inputs(model: LinearModel, data: Dataset) -> FloatArray:
    """What the weights multiply: rows × features in use, as the model sees them; all of it finite."""
    values = model.inputs(data)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        place = f"feature {model.names[column]} of {document_words(data, row)} is {values[row, column]}"
        raise DataError(None, None, f"{place}; fill missing values or rescale the feature")
    return values


def explainable(given: LinearModel | FittedRanker) -> LinearModel:
    """A linear model with features, or that of a fitted ranker."""
    model = linear_model(given, "so its scores are no sum over features to explain")
    if not model.terms:
        raise ParameterError("model", given, "must use at least one feature")
    return model


@dataclass(frozen=True)
class Part:
    """One feature's share of a score difference: ``contribution`` = weight · (value_a − value_b).

    Values are as the model sees them. ``logged_a`` is the value in the data, None if it is missing, and
    ``filled_a`` the same with the missing value replaced; equally for b.
    """

    feature: str
    weight: float
    value_a: float
    value_b: float
    contribution: float
    logged_a: float | None
    logged_b: float | None
    filled_a: float
    filled_b: float


@dataclass(frozen=True)
class PairExplanation:
    """score_a − score_b = Σ_j w_j (x_aj − x_bj), the largest parts first.

    ``difference`` is the correctly rounded sum (math.fsum) of the parts, each of which is rounded twice. So
    it is within 2ε·Σ|part| of the exact value, and the difference of two predicted scores, whose sums round
    at each of n terms, is within (n + 2)·ε·Σ_j(|w_j x_aj| + |w_j x_bj|) of it, ε = 2⁻⁵², unless a product
    falls below the smallest normal number. ``scaled`` tells whether the model normalises.
    """

    query: Any
    a: Any
    b: Any
    score_a: float
    score_b: float
    difference: float
    parts: tuple[Part, ...]
    rank_a: int = 0
    rank_b: int = 0
    query_text: str = ""
    text_a: str = ""
    text_b: str = ""
    scaled: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class QueryExplanation:
    """The documents of a query, best first, and what each feature in use adds to each score.

    ``contributions`` (documents × features) holds w_j·x_j with x as the model sees it (``values``: filled
    and normalised); a row and ``intercept`` add up to the score. ``logged`` holds the values in the data, NaN
    where they are missing, and ``filled`` the same with these replaced. ``rows`` are the documents' row
    numbers; ``scaled`` tells whether the model normalises.
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

    @property
    def ranks(self) -> IntArray:
        """1, 2, …; ties in score keep the order of the data."""
        return np.arange(1, len(self.rows) + 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a missing value is None."""
        named = {name: plain(v) if isinstance(v, np.ndarray) else v for name, v in vars(self).items()}
        return {**named, "rows": self.rows.tolist()}


def explain_pair(
    model: LinearModel | FittedRanker, data: Dataset, a: Hashable, b: Hashable, qid: Hashable | None = None
) -> PairExplanation:
    """Why document ``a`` stands above or below document ``b`` of the same query.

    Without ``qid``, ``a`` and ``b`` are row numbers of the data (from 0). With it they name documents of that
    query: document ids, or numbers (from 1) within the query.
    """
    model = explainable(model)
    row_a, row_b = (
        _row(data, name, document) if qid is None else find_document(data, qid, document)
        for name, document in (("a", a), ("b", b))
    )
    if data.qid[row_a] != data.qid[row_b]:
        reason = f"rows {row_a} and {row_b} belong to queries {data.qid[row_a]} and {data.qid[row_b]}"
        raise ParameterError("b", b, f"{reason}; only documents of the same query can be compared")
    query = explain_query(model, data, data.qid[row_a])
    at_a, at_b = (int(np.flatnonzero(query.rows == row)[0]) for row in (row_a, row_b))
    values, filled = query.values[[at_a, at_b]], query.filled[[at_a, at_b]]
    contributions = model.weights * (values[0] - values[1])
    columns = [model.weights, *values, contributions, *plain(query.logged[[at_a, at_b]]), *filled]
    parts = list(map(Part, query.features, *(np.asarray(column).tolist() for column in columns)))
    scores, ranks, texts = query.scores.tolist(), query.ranks.tolist(), query.texts or [""] * len(query.rows)
    return PairExplanation(
        query.query, query.documents[at_a], query.documents[at_b], scores[at_a], scores[at_b],
        math.fsum(part.contribution for part in parts),
        tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        ranks[at_a], ranks[at_b], query.query_text, texts[at_a], texts[at_b], query.scaled,
    )  # fmt: skip


def explain_query(model: LinearModel | FittedRanker, data: Dataset, qid: Hashable) -> QueryExplanation:
    """What each feature in use adds to the score of each document of a query."""
    model = explainable(model)
    number, names = query_number(data, qid), Names(data)
    rows = data.queries.rows_of(number)
    chosen = data.select_rows(rows)
    scores = model.predict(chosen)
    order = np.argsort(-scores, kind="stable")
    values, ranked = inputs(model, chosen)[order], rows[order].tolist()
    logged, filled = _logged_and_filled(model, chosen)
    texts = tuple(names.document_text(row) for row in ranked)
    return QueryExplanation(
        plain_id(chosen.qid[0]), tuple(names.document(row) for row in ranked), rows[order],
        chosen.y[order], scores[order], tuple(model.names), values, values * model.weights,
        model.intercept, logged[order], filled[order], names.query_text(number),
        texts if any(texts) else (), model.normalisation is not None,
    )  # fmt: skip


def _row(data: Dataset, name: str, row: Any) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < data.n_docs:
        reason = f"must be a row number from 0 to {data.n_docs - 1}; to name a document by its id give `qid`"
        raise ParameterError(name, row, reason)
    return int(row)


RIDGE_SHARE = 1e-6  # of ‖Xᵀ∇f(0)‖_∞: keeps a refit bounded when its features separate every pair
REFIT_TOL, REFIT_STEPS = 1e-6, 100


@dataclass(frozen=True)
class FeatureImportance:
    """What leaving out one feature, or all features of a group that is paid once, does to one metric.

    ``loss`` = value − without, the mean over queries of what the metric falls by; the p-values (paired t,
    randomisation) are two-sided, those called holm corrected over all rows that drop something else.
    ``saved`` is the cost that falls away, None without costs. ``dropped`` are the features in use that are
    left out; ``group`` tells that ``feature`` is the name of a group of them.
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


class _Drop(NamedTuple):
    """The columns of the model that a row leaves out, and what that saves."""

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
) -> tuple[FeatureImportance, ...]:
    """What the model would lose in each metric, and save in cost, without each of its features.

    With costs there is also a row for each group of features that is paid once, if the model uses any of it:
    a feature of a group saves nothing while another one of it is in use. The other weights stay; if ``train``
    is given, the weights with and without the feature are both refitted on it: min f(w) + ½ρ‖w‖², f the mean
    squared hinge over pairs, ρ a millionth of ‖Xᵀ∇f(0)‖_∞. ``profile`` is as in :func:`ranksieve.evaluate`.
    Rows are by metric, the greatest loss first.
    """
    linear = explainable(model)
    specs, drops = parse_all(metrics), _drops(linear, data, feature_costs)
    evaluator, values_of = Evaluator(data, profile), inputs(linear, data)
    learn_from = None if train is None else (inputs(linear, train), train)

    def per_query(without: tuple[int, ...]) -> Mapping[str, FloatArray]:
        kept = np.delete(np.arange(len(linear.terms)), without)
        weights = linear.weights[kept] if learn_from is None else _refitted(*learn_from, kept)
        return evaluator.evaluate(linear_scores(values_of, kept, weights), specs).per_query

    with_all = per_query(())
    without = {columns: per_query(columns) for columns in dict.fromkeys(drop.columns for drop in drops)}
    all_rows: list[FeatureImportance] = []
    for metric, values in with_all.items():
        less = {columns: one[metric] for columns, one in without.items()}
        p_values = dict(
            zip(less, _p_values(values, list(less.values()), n_permutations, random_state), strict=True)
        )
        value = mean_of_defined(values)
        rows = []
        for drop in drops:
            mean, dropped = mean_of_defined(less[drop.columns]), tuple(linear.names[j] for j in drop.columns)
            row = (drop.name, metric, value, mean, value - mean, *p_values[drop.columns], drop.saved)
            rows.append(FeatureImportance(*row, dropped, drop.group))
        all_rows += sorted(rows, key=lambda row: -row.loss)
    return tuple(all_rows)


def _drops(
    model: LinearModel, data: Dataset, feature_costs: Mapping[str, Any] | FeatureCosts | None
) -> list[_Drop]:
    """Each feature, then each group that the model uses a feature of."""
    names, indicators = model.names, model.preparation.missing.indicators
    if feature_costs is None:
        return [_Drop(name, (j,), None, False) for j, name in enumerate(names)]
    given = [name for name in data.feature_names if name not in indicators]
    costs = as_costs(feature_costs, given).with_indicators(indicators)
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
    values: FloatArray, less: list[FloatArray], n_permutations: int, random_state: int
) -> list[tuple[float, float, float, float]]:
    """Of the paired t and the randomisation test, and both corrected, for each drop."""
    p_t = [paired_t(values, one) for one in less]
    p_random = [randomisation(values, one, n_permutations, random_state) for one in less]
    return list(zip(p_t, p_random, holm(p_t).tolist(), holm(p_random).tolist(), strict=True))


def _refitted(values: FloatArray, train: Dataset, kept: IntArray) -> FloatArray:
    if len(kept) == 0:
        return np.empty(0)
    objective = make_objective(train.replace_features(values[:, kept], [f"f{j + 1}" for j in kept]))
    ridge = RIDGE_SHARE * float(np.abs(objective.gradient(objective.at_zero)).max())
    return ProxNewton(REFIT_TOL, REFIT_STEPS).solve(Problem(objective, Ridge(ridge))).w


@dataclass(frozen=True)
class WorstQuery:
    """A query with its value of the metric, and the highest of its relevant documents with its rank.

    ``first`` is what the ranking has at the top instead. Texts are those of the data, empty without any.
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
        """Where its relevant documents are, in a sentence."""
        count = "its only relevant document" if self.n_relevant == 1 else (
            f"the best placed of its {self.n_relevant} relevant documents"
        )  # fmt: skip
        return f"{count} is at rank {self.rank} of {self.n_documents}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "why": self.why}


def worst_queries(
    scores: Any,
    data: Dataset,
    metric: str | MetricSpec = "ndcg@10",
    n: int = 10,
    *,
    profile: str | Profile | None = None,
) -> tuple[WorstQuery, ...]:
    """The ``n`` queries with the lowest metric, the lowest first; of equals the one placed worse.

    Queries without a relevant document are left out, for no ranking serves them. ``scores`` are one per row,
    as ``predict`` gives them, or a model or fitted ranker; ``profile`` is as in :func:`ranksieve.evaluate`.
    """
    scores = scores_of(scores, data)
    evaluation = evaluate(scores, data, [metric], profile)
    ((measured_by, values),) = evaluation.per_query.items()
    names, worst = Names(data), []
    for number, value in enumerate(values.tolist()):
        rows = data.queries.rows_of(number)
        ranked = rows[np.argsort(-np.asarray(scores)[rows], kind="stable")]
        relevant = np.flatnonzero(data.y[ranked] >= evaluation.profile.relevant_from)
        if len(relevant) and not np.isnan(value):
            worst.append((value, -int(relevant[0]), number, ranked, len(relevant)))
    worst.sort(key=lambda one: one[:3])
    described = []
    for value, place, number, ranked, n_relevant in worst[:n]:
        best, first = (
            (names.document(row), names.document_text(row)) for row in ranked[[-place, 0]].tolist()
        )
        query = (plain_id(data.queries.ids[number]), names.query_text(number), measured_by, value)
        described.append(WorstQuery(*query, len(ranked), n_relevant, 1 - place, *best, *first))
    return tuple(described)
