"""The queries that a ranking serves worst, and where their relevant documents are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ranksieve._types import AnyArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.naming import Names, plain_id
from ranksieve.metrics import MetricSpec, Profile, evaluate
from ranksieve.metrics.evaluate import scores_of


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
    found = evaluate(scores, data, [metric], profile)
    ((name, values),) = found.per_query.items()
    names, worst = Names(data), []
    for number, value in enumerate(values.tolist()):
        rows = data.queries.rows_of(number)
        ranked = rows[np.argsort(-np.asarray(scores)[rows], kind="stable")]
        relevant = np.flatnonzero(data.y[ranked] >= found.profile.relevant_from)
        if len(relevant) and not np.isnan(value):
            worst.append((value, -int(relevant[0]), number, ranked, len(relevant)))
    worst.sort(key=lambda one: one[:3])
    return tuple(_described(names, name, *one) for one in worst[:n])


def _described(
    names: Names, metric: str, value: float, place: int, number: int, ranked: AnyArray, n_relevant: int
) -> WorstQuery:
    best, first = int(ranked[-place]), int(ranked[0])
    return WorstQuery(
        plain_id(names.data.queries.ids[number]), names.query_text(number), metric, value, len(ranked),
        n_relevant, 1 - place, names.document(best), names.document_text(best),
        names.document(first), names.document_text(first),
    )  # fmt: skip
