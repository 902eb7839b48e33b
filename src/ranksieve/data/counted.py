"""Drop queries and documents with weight 0."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset

MANY = 0.1  # share of the documents with weight 0 from which a fit warns


def counted(data: Dataset, query_weight: FloatArray | None, warn: bool = False) -> tuple[Dataset, FloatArray]:
    """The queries and documents of positive weight, and the weights of these queries (1 without).

    If every weight is 0, the data come back unchanged, and the loss reports that there is no pair.
    """
    weight = np.ones(data.n_queries) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    used = weight > 0
    if not used.any():
        return data, weight
    queries = data if used.all() else data.select_queries(used)
    present, numbers = queries.without_weightless()
    if warn and present is not queries:
        _warn_of_absent(queries.n_docs - present.n_docs, queries.n_docs)
    return present, weight[used][numbers]


def _warn_of_absent(n_absent: int, n_docs: int) -> None:
    if n_absent >= MANY * n_docs:
        warn_caller(
            f"{n_absent} of {n_docs} training documents have weight 0, so they are absent: from the fit, and "
            "from the lists on which cross-validation measures it; give every document that users see a "
            "positive weight, such as clicks + 1"
        )
