"""Weights of documents: a document of weight 2 counts as two copies of it, one of weight 0 as absent.

A pair counts as often as the product of its documents' weights says; copies have equal labels and make no
pair with one another, so that is exact.
"""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.inputs import as_document_weight
from ranksieve.data.queries import Queries
from ranksieve.data.query_weights import checked_query_weight


def grouped_weights(document_weight: FloatArray | None, queries: Queries) -> FloatArray | None:
    """One finite weight ≥ 0 per document, in grouped order; None if there are none, or if all are 1."""
    weights = as_document_weight(document_weight, queries.n_rows)
    return None if weights is None or np.all(weights == 1.0) else queries.group(weights)


def list_weights(
    queries: Queries, query_weight: FloatArray | None, document_weight: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Weights of queries, and of documents in grouped order or None, for losses that are means over queries.

    A query whose documents are all absent is absent too: it has weight 0, and its documents have any.
    """
    weight = checked_query_weight(query_weight, queries.n_queries)
    mass = grouped_weights(document_weight, queries)
    if mass is None:
        return weight, None
    empty = np.maximum.reduceat(mass, queries.offsets[:-1]) == 0
    return np.where(empty, 0.0, weight), np.where(np.repeat(empty, queries.sizes), 1.0, mass)


def counted_labels(y: FloatArray, mass: FloatArray | None, queries: Queries) -> FloatArray:
    """Labels in grouped order, where documents of weight 0 have one that their query has without them."""
    labels = queries.group(y)
    if mass is None or mass.all():
        return labels
    highest = np.maximum.reduceat(np.where(mass > 0, labels, -np.inf), queries.offsets[:-1])
    return np.where(mass > 0, labels, np.repeat(highest, queries.sizes))
