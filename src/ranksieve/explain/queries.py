"""Why a document stands where it stands: scores as sums over features."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve._util.json_values import plain
from ranksieve.data.dataset import Dataset
from ranksieve.data.naming import Names, find_document, plain_id, query_number
from ranksieve.errors import ParameterError
from ranksieve.explain.inputs import all_inputs, explainable
from ranksieve.model import FittedRanker, LinearModel


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
    parts = [_part(query, model.weights, j, at_a, at_b) for j in range(len(query.features))]
    scores, ranks, texts = query.scores.tolist(), query.ranks.tolist(), query.texts or [""] * len(query.rows)
    return PairExplanation(
        query.query, query.documents[at_a], query.documents[at_b], scores[at_a], scores[at_b],
        math.fsum(part.contribution for part in parts),
        tuple(sorted(parts, key=lambda part: -abs(part.contribution))),
        ranks[at_a], ranks[at_b], query.query_text, texts[at_a], texts[at_b], query.scaled,
    )  # fmt: skip


def _part(query: QueryExplanation, weights: FloatArray, j: int, a: int, b: int) -> Part:
    w, (value_a, value_b) = float(weights[j]), query.values[[a, b], j].tolist()
    logged_a, logged_b = plain(query.logged[[a, b], j])
    filled = query.filled[[a, b], j].tolist()
    return Part(
        query.features[j], w, value_a, value_b, w * (value_a - value_b), logged_a, logged_b, *filled
    )  # fmt: skip


def explain_query(model: LinearModel | FittedRanker, data: Dataset, qid: Hashable) -> QueryExplanation:
    """What each feature in use adds to the score of each document of a query."""
    model = explainable(model)
    number, names = query_number(data, qid), Names(data)
    rows = data.queries.rows_of(number)
    chosen = data.select_rows(rows)
    scores = model.predict(chosen)
    order = np.argsort(-scores, kind="stable")
    of, ranked = all_inputs(model, chosen), rows[order].tolist()
    texts = tuple(names.document_text(row) for row in ranked)
    return QueryExplanation(
        plain_id(chosen.qid[0]), tuple(names.document(row) for row in ranked), rows[order],
        chosen.y[order], scores[order], tuple(model.names), of.values[order],
        of.values[order] * model.weights, model.intercept, of.logged[order], of.filled[order],
        names.query_text(number), texts if any(texts) else (), model.normalisation is not None,
    )  # fmt: skip


def _row(data: Dataset, name: str, row: Any) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < data.n_docs:
        reason = f"must be a row number from 0 to {data.n_docs - 1}; to name a document by its id give `qid`"
        raise ParameterError(name, row, reason)
    return int(row)
