"""What counts of a data set: queries and documents of positive weight."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import is_streamed


def counted(data: Dataset, query_weight: FloatArray | None) -> tuple[Dataset, FloatArray]:
    """The queries and documents of positive weight, and the weights of these queries (1 without).

    Of data on disk or elsewhere documents of weight 0 stay: they add nothing to any sum. Data of which
    nothing counts come back as they are, and the loss will say that there is no pair.
    """
    if query_weight is None:
        return _present(data, np.ones(data.n_queries))
    weight = np.asarray(query_weight, dtype=np.float64)
    used = weight > 0
    if not used.any():
        return data, weight
    return _present(data if used.all() else data.select_queries(used), weight[used])


def _present(data: Dataset, query_weight: FloatArray) -> tuple[Dataset, FloatArray]:
    weight = data.document_weight
    if weight is None or weight.all() or not weight.any() or is_streamed(data.X):
        return data, query_weight
    rows = np.flatnonzero(weight)
    kept = data.select_rows(rows)
    first = kept.queries.order[kept.queries.offsets[:-1]]  # which of its rows is the first of each query
    return kept, data.queries.of_rows(query_weight)[rows[first]]
