"""The GPU: whether there is one, its memory, and how a feature matrix or a data set gets there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.feature_matrix import FAR
from ranksieve.data.inputs import check_shape
from ranksieve.data.matrix import StreamedMatrix, dense_block, dense_rows, spread_and_largest
from ranksieve.data.parts import RemoteRows
from ranksieve.data.queries import Queries, queries_in_order
from ranksieve.errors import DataError, ParameterError, how_to_install, warn_caller

NAMES = re.compile(r"cuda(:\d+)?")
NO_GPU = "needs an NVIDIA GPU that PyTorch can use; leave it out, or look at torch.cuda.is_available()"


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    if device != "cpu":
        find_device(device)


def find_device(device: str) -> Any:
    """The torch device of that name; a sentence where there is none.

    Where Triton interprets its kernels (TRITON_INTERPRET=1), the processor stands in for the GPU.
    """
    if not (isinstance(device, str) and NAMES.fullmatch(device)):
        raise ParameterError("device", device, 'must be "cpu", "cuda", "cuda:0", "cuda:1", …')
    try:
        import torch
        import triton  # noqa: F401
    except ImportError:
        raise ParameterError(
            "device", device, f"needs PyTorch with Triton: {how_to_install('gpu')}"
        ) from None
    if is_interpreted():
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ParameterError("device", device, NO_GPU)
    number = torch.device(device).index or 0
    if number >= torch.cuda.device_count():
        raise ParameterError("device", device, f"this machine has {torch.cuda.device_count()} GPUs")
    return torch.device("cuda", number)


def is_interpreted() -> bool:
    """Whether Triton interprets kernels instead of compiling them."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def check_memory(device: Any, needed: Mapping[str, int]) -> None:
    """Refuse what does not fit on the GPU, before any of it is copied; ``needed`` in bytes."""
    if device.type != "cuda":
        return
    import torch

    free = torch.cuda.mem_get_info(device)[0] + _unused(device)
    total = sum(needed.values())
    if total > free:
        parts = ", ".join(f"{in_gigabytes(n)} for {what}" for what, n in needed.items())
        reason = (
            f"the data need {in_gigabytes(total)} of GPU memory ({parts}), and {in_gigabytes(free)} are "
            "free; leave `device` out, or fit on a part of the queries"
        )
        raise DataError(None, None, reason)


def _unused(device: Any) -> int:
    """Memory that PyTorch holds for later."""
    import torch

    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def in_gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.3g} GB"


if TYPE_CHECKING:
    import torch


CUDA = 2  # what DLPack calls NVIDIA's GPUs
ROUNDED = (
    "the features are float64 and the GPU takes float32: it fits, and certifies, the rounded ones; give "
    "float32 to avoid this warning"
)
BLOCK_BYTES = 2**28  # of rows that are copied at a time
OF_A_DOCUMENT = 12 * 8  # bytes: scores, gradients and what else has a number for each document


class DeviceMatrix(StreamedMatrix):
    """A dense float32 matrix on a GPU. Rows and columns that are chosen stay there; what is read does not."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__(np.array([0, len(values)]), int(values.shape[1]), np.dtype(np.float32))
        self.values = values

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        rows = self.values[first:last]
        if not np.array_equal(columns, np.arange(self.shape[1])):
            rows = rows[:, self._index(columns)]
        return np.asfortranarray(rows.cpu().numpy())

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        """There is nothing to do ahead."""

    @cached_property
    def value_range(self) -> tuple[float, float]:
        low, high = self.values.aminmax()
        return float(low), float(high)

    def spread_and_largest(self, queries: Queries) -> tuple[FloatArray, FloatArray] | None:
        if not queries.contiguous:
            return None
        from ranksieve.gpu.features import Lists, extremes_of

        return extremes_of(self.values, Lists(queries.offsets, self.values.device))

    def objective(self, data: Dataset, loss: Any, query_weight: FloatArray | None) -> Any:
        from ranksieve.gpu.objective import device_objective  # loads PyTorch

        return device_objective(data, loss, query_weight)

    def taken(self, rows: IntArray) -> DeviceMatrix:
        """Some rows, on the GPU."""
        return DeviceMatrix(self.values[self._index(rows)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and index[0] == slice(None) and np.ndim(index[1]) == 1:
            return DeviceMatrix(self.values[:, self._index(np.asarray(index[1]))].contiguous())
        return super().__getitem__(index)

    def _index(self, places: IntArray) -> torch.Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(places, dtype=np.int64)).to(self.values.device)


def is_on_gpu(X: Any) -> bool:
    """Whether X is an array of PyTorch, CuPy or the like whose values are on a GPU."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack_device__"):
        return False
    return int(X.__dlpack_device__()[0]) == CUDA


def from_gpu(X: Any) -> DeviceMatrix:
    """A matrix of another library's array on a GPU, which stays where it is if it is float32 in rows."""
    import torch

    values = X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    check_shape(values)
    if values.dtype == torch.float64:
        warn_caller(ROUNDED)
    return DeviceMatrix(values.detach().to(torch.float32).contiguous())


def as_host_array(values: Any) -> AnyArray:
    """An array of the host, also of values that are on a GPU."""
    if not is_on_gpu(values):
        return np.asarray(values)
    import torch

    return np.asarray(
        (values if isinstance(values, torch.Tensor) else torch.from_dlpack(values)).cpu().numpy()
    )


def on_gpu(X: Matrix, queries: Queries, device: str, origin: AnyArray | None = None) -> DeviceMatrix:
    """X on a GPU, in float32, its rows query after query.

    ``origin`` has for each query a row that is taken off the query's rows before they are rounded.
    """
    place = find_device(device)
    if isinstance(X, DeviceMatrix) and origin is None and X.values.device == place:
        return X if queries.contiguous else X.taken(queries.order)
    import torch

    n_rows, n_columns = X.shape
    needed = {"features": 4 * n_rows * n_columns, "documents": OF_A_DOCUMENT * n_rows}
    check_memory(place, needed)
    values = torch.empty((n_rows, n_columns), dtype=torch.float32, device=place)
    query = queries.query_of_grouped if origin is not None else None
    step = max(1, BLOCK_BYTES // (8 * n_columns))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step) if queries.contiguous else queries.order[start : start + step]
        block = X[rows]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block)
        if origin is not None and query is not None:
            block = block - origin[query[start : start + step]]
        values[start : start + step] = torch.from_numpy(np.ascontiguousarray(block, dtype=np.float32)).to(
            place
        )
    return DeviceMatrix(values)


def on_device(data: Dataset, device: str = "cpu", given: Dataset | None = None) -> Dataset:
    """Data to learn from, with their features on the GPU of that name, query after query.

    A feature whose values lie far from zero for their range within queries is read less its value in the
    query's first document: float32 would not keep its differences, which are all that losses see. ``given``
    are the data before they were prepared: if these are float64, a warning says that they are rounded.
    """
    if device == "cpu":
        return data
    if isinstance(data, RemoteRows):
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
