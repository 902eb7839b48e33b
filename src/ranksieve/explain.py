"""Why a document stands where it stands, and what each feature is worth."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.formats.feature_tables import as_costs
from ranksieve.metrics import Evaluator, MetricSpec, Profile
from ranksieve.metrics.evaluate import mean_of_defined, parse_all
from ranksieve.model import LinearModel, linear_scores
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.significance import holm, paired_t, randomisation
from ranksieve.solvers import Problem, ProxNewton

NEAREST = 3
RIDGE_SHARE = 1e-6  # of ‖Xᵀ∇f(0)‖_∞: keeps a refit bounded when its features separate every pair
REFIT_TOL, REFIT_STEPS = 1e-6, 100


@dataclass(frozen=True)
class Part:
    """One feature's share of a score difference: ``contribution`` = weight · (value_a − value_b)."""

    feature: str
    weight: float
    value_a: float
    value_b: float
    contribution: float


@dataclass(frozen=True)
class PairExplanation:
    """score_a − score_b = Σ_j w_j (x_aj − x_bj), the largest parts first.

    ``difference`` is the correctly rounded sum (math.fsum) of the parts, each of which is rounded twice. So
    it is within 2ε·Σ|part| of the exact value, and the difference of two predicted scores, whose sums round
    at each of n terms, is within (n + 2)·ε·Σ_j(|w_j x_aj| + |w_j x_bj|) of it, ε = 2⁻⁵², unless a product
    falls below the smallest normal number.
    """

    query: Any
    a: Any
    b: Any
    score_a: float
    score_b: float
    difference: float
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class QueryExplanation:
    """The documents of a query, best first, and what each feature in use adds to each score.

    ``contributions`` (documents × features) holds w_j·x_j with x as the model sees it (``values``: filled
    and normalised); a row and ``intercept`` add up to the score. ``rows`` are the documents' row numbers.
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

    @property
    def ranks(self) -> IntArray:
        """1, 2, …; ties in score keep the order of the data."""
        return np.arange(1, len(self.rows) + 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in vars(self).items()}


@dataclass(frozen=True)
class FeatureDrop:
    """What leaving out one feature does to one metric.

    ``loss`` = value − without, the mean over queries of what the metric falls by; the p-values (paired t,
    randomisation) are two-sided, those called holm corrected over all features. ``saved`` is the cost that
    falls away, None without costs.
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


def explain_pair(
    model: LinearModel, data: Dataset, a: Hashable, b: Hashable, qid: Hashable | None = None
) -> PairExplanation:
    """Why document ``a`` stands above or below document ``b`` of the same query.

    Without ``qid``, ``a`` and ``b`` are row numbers of the data (from 0). With it they name documents of that
    query: document ids, or numbers (from 1) within the query.
    """
    _check_linear(model)
    row_a, row_b = (_row(data, name) if qid is None else find_document(data, qid, name) for name in (a, b))
    if data.qid[row_a] != data.qid[row_b]:
        raise ValueError(
            f"rows {row_a} and {row_b} belong to queries {data.qid[row_a]} and {data.qid[row_b]}; scores are "
            "comparable within one query only"
        )
    query = explain_query(model, data, data.qid[row_a])
    at_a, at_b = (int(np.flatnonzero(query.rows == row)[0]) for row in (row_a, row_b))
    x_a, x_b = query.values[at_a], query.values[at_b]
    values = zip(model.names, model.weights.tolist(), x_a.tolist(), x_b.tolist(), strict=True)
    parts = [Part(name, w, va, vb, w * (va - vb)) for name, w, va, vb in values]
    difference = math.fsum(part.contribution for part in parts)
    scores = query.scores.tolist()
    return PairExplanation(
        query.query, query.documents[at_a], query.documents[at_b], scores[at_a], scores[at_b], difference,
        tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
    )  # fmt: skip


def explain_query(model: LinearModel, data: Dataset, qid: Hashable) -> QueryExplanation:
    """What each feature in use adds to the score of each document of a query."""
    _check_linear(model)
    rows = query_rows(data, qid)
    chosen = data.select_rows(rows)
    scores = model.predict(chosen)
    order = np.argsort(-scores, kind="stable")
    values = _inputs(model, chosen)[order]
    return QueryExplanation(
        _plain(chosen.qid[0]), tuple(document_name(data, int(row)) for row in rows[order]), rows[order],
        chosen.y[order], scores[order], tuple(model.names), values, values * model.weights, model.intercept,
    )  # fmt: skip


def drop_costs(
    model: LinearModel,
    data: Dataset,
    metrics: str | Sequence[str | MetricSpec] = "ndcg@10",
    feature_costs: Mapping[str, Any] | FeatureCosts | None = None,
    *,
    train: Dataset | None = None,
    profile: str | Profile | None = None,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> tuple[FeatureDrop, ...]:
    """What the model would lose in each metric, and save in cost, without each of its features.

    The other weights stay; if ``train`` is given, the weights with and without the feature are both refitted
    on it: min f(w) + ½ρ‖w‖², f the mean squared hinge over pairs, ρ a millionth of ‖Xᵀ∇f(0)‖_∞. A feature
    of a group that is paid once saves only with the last of its group. ``profile`` is as in
    :func:`ranksieve.evaluate`. Rows are by metric, the greatest loss first.
    """
    _check_linear(model)
    specs, saved = parse_all(metrics), _savings(model, feature_costs)
    evaluator, inputs = Evaluator(data, profile), _inputs(model, data)
    learn_from = None if train is None else (_inputs(model, train), train)

    def per_query(kept: IntArray) -> Mapping[str, FloatArray]:
        weights = model.weights[kept] if learn_from is None else _refitted(*learn_from, kept)
        return evaluator.evaluate(linear_scores(inputs, kept, weights), specs).per_query

    columns = np.arange(len(model.terms))
    with_all, without = per_query(columns), [per_query(np.delete(columns, j)) for j in columns]
    drops: list[FeatureDrop] = []
    for metric, values in with_all.items():
        less = [one[metric] for one in without]
        p_values = _p_values(values, less, n_permutations, seed)
        value, means = mean_of_defined(values), [mean_of_defined(one) for one in less]
        rows = zip(model.names, means, p_values, saved, strict=True)
        found = [FeatureDrop(name, metric, value, m, value - m, *p, save) for name, m, p, save in rows]
        drops += sorted(found, key=lambda drop: -drop.loss)
    return tuple(drops)


def _p_values(
    values: FloatArray, less: list[FloatArray], n_permutations: int, seed: int
) -> list[tuple[float, float, float, float]]:
    """Of the paired t and the randomisation test, and both corrected, for each feature."""
    p_t = [paired_t(values, one) for one in less]
    p_random = [randomisation(values, one, n_permutations, seed) for one in less]
    return list(zip(p_t, p_random, holm(p_t).tolist(), holm(p_random).tolist(), strict=True))


def find_document(data: Dataset, qid: Hashable, document: Hashable) -> int:
    """The row of a document of a query, named by its id, or by its number (from 1) within the query."""
    rows = query_rows(data, qid)
    if data.doc_ids is not None:
        names = {int(row): str(data.doc_ids[int(row)]) for row in rows}
        found = [row for row, name in names.items() if name == str(document)]
        if len(found) > 1:
            raise ValueError(
                f"query {qid} has {len(found)} documents called {document}; give the number within the query"
            )
        if found:
            return found[0]
    if str(document).isdecimal() and 1 <= int(str(document)) <= len(rows):
        return int(rows[int(str(document)) - 1])
    known = [] if data.doc_ids is None else list(names.values())
    raise ValueError(
        f"query {qid} has no document {document}{_nearest(document, known)}; it has {len(rows)}, named by "
        f"{'id or ' if known else ''}number from 1 to {len(rows)}"
    )


def query_rows(data: Dataset, qid: Hashable) -> IntArray:
    """The rows of a query, in order; its id may also be given as text."""
    queries, ids = data.queries, data.queries.ids.tolist()
    number = next((q for q, one in enumerate(ids) if one == qid), None)
    if number is None:
        texts = [str(one) for one in ids]
        if str(qid) not in texts:
            raise ValueError(f"there is no query {qid} among {len(ids)} queries{_nearest(qid, texts)}")
        number = texts.index(str(qid))
    return queries.rows_of(number)


def document_name(data: Dataset, row: int) -> Any:
    """The document id of a row, or its number (from 1) within its query."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    if name not in (None, ""):
        return _plain(name)
    return int(np.flatnonzero(query_rows(data, _plain(data.qid[row])) == row)[0]) + 1


def _inputs(model: LinearModel, data: Dataset) -> FloatArray:
    """What the weights multiply: rows × features in use, as the model sees them; all of it finite."""
    inputs = model.inputs(data)
    bad = np.argwhere(~np.isfinite(inputs))
    if len(bad):
        row, column = (int(place) for place in bad[0])
        raise ValueError(
            f"feature {model.names[column]} of document {document_name(data, row)} of query {data.qid[row]} "
            f"is {inputs[row, column]}, which explains nothing; fill missing values or rescale the feature"
        )
    return inputs


def _refitted(inputs: FloatArray, train: Dataset, kept: IntArray) -> FloatArray:
    if len(kept) == 0:
        return np.empty(0)
    objective = make_objective(train.replace_features(inputs[:, kept], [f"f{j + 1}" for j in kept]))
    ridge = RIDGE_SHARE * float(np.abs(objective.gradient(objective.at_zero)).max())
    return ProxNewton(REFIT_TOL, REFIT_STEPS).solve(Problem(objective, Ridge(ridge))).w


def _savings(
    model: LinearModel, feature_costs: Mapping[str, Any] | FeatureCosts | None
) -> list[float] | list[None]:
    names, indicators = model.names, model.preparation.missing.indicators
    if feature_costs is None:
        return [None] * len(names)
    given = [name for name in names if name not in indicators]
    costs = as_costs(feature_costs, given).with_indicators(indicators)
    return [costs.of(names) - costs.of([n for n in names if n != name]) for name in names]


def _check_linear(model: Any) -> None:
    if not isinstance(model, LinearModel):
        kind = getattr(model, "method", "") or type(model).__name__
        raise ValueError(f"{kind} is not a linear model, so its scores are no sum over features to explain")
    if not model.terms:
        raise ValueError("the model uses no feature, so there is nothing to explain")


def _row(data: Dataset, row: Any) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < data.n_docs:
        raise ValueError(
            f"{row!r} is no row number of the data, which have {data.n_docs} rows from 0 on; to name a "
            "document by its id give qid as well"
        )
    return int(row)


def _nearest(name: Hashable, known: list[str]) -> str:
    near = get_close_matches(str(name), known, n=NEAREST, cutoff=0.4)
    return f" (nearest: {', '.join(near)})" if near else ""


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
