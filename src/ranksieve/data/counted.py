"""Drop queries and documents with weight 0."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset


def counted(data: Dataset, query_weight: FloatArray | None) -> tuple[Dataset, FloatArray]:
    """The queries and documents of positive weight, and the weights of these queries (1 without).

    Data of which nothing counts come back as they are, and the loss will say that there is no pair.
    """
    weight = np.ones(data.n_queries) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    used = weight > 0
    if not used.any():
        return data, weight
    present, numbers = (data if used.all() else data.select_queries(used)).without_weightless()
    return present, weight[used][numbers]
