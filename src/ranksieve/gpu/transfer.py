"""Data sets whose features are on a GPU."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import AnyArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.data.feature_matrix import FAR
from ranksieve.data.matrix import dense_block, dense_rows, spread_and_largest
from ranksieve.data.queries import queries_in_order
from ranksieve.data.remote import RemoteDataset
from ranksieve.errors import ParameterError
from ranksieve.gpu.matrix import ROUNDED, DeviceMatrix, on_gpu


def on_device(data: Dataset, device: str = "cpu", given: Dataset | None = None) -> Dataset:
    """Data to learn from, with their features on the GPU of that name, query after query.

    A feature whose values lie far from zero for their range within queries is read less its value in the
    query's first document: float32 would not keep its differences, which are all that losses see. ``given``
    are the data before they were prepared: if these are float64, a word says that they are rounded.
    """
    if device == "cpu":
        return data
    if isinstance(data, RemoteDataset):
        raise ParameterError("device", device, "needs the data in memory, and these are distributed")
    queries = data.queries
    if (data if given is None else given).X.dtype == np.float64:
        warn_caller(ROUNDED)
    X = on_gpu(data.X, queries, device, _origin(data))
    weight = data.document_weight
    moved = Dataset(
        X, queries.group(data.y), queries.group(data.qid), data.feature_names, truth=data.truth,
        source=data.source, profile=data.profile,
        document_weight=None if weight is None else queries.group(weight),
    )  # fmt: skip
    moved.__dict__["queries"] = queries_in_order(queries.ids, queries.sizes)
    return moved


def rounded(data: Dataset) -> Dataset:
    """Data as a GPU has their features, in memory: in float32, far ones less those of the first document."""
    queries, origin = data.queries, _origin(data)
    X = dense_rows(data.X, slice(None))
    if origin is not None:
        X = X - origin[queries.restore(queries.query_of_grouped)]
    return data.replace_features(X.astype(np.float32))


def _origin(data: Dataset) -> AnyArray | None:
    """For each query what its rows are read less, if there is a feature far from zero."""
    if isinstance(data.X, DeviceMatrix):
        return None
    queries = data.queries
    spread, largest = spread_and_largest(data.X, queries, split_blocks(queries.offsets))
    far = np.flatnonzero(largest > FAR * spread)
    if not len(far):
        return None
    origin = np.zeros((queries.n_queries, data.n_features))
    origin[:, far] = dense_block(data.X, queries.order[queries.offsets[:-1]], far)
    return origin
