"""GPU devices, their memory, and the transfer of feature matrices and data sets."""

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
from ranksieve.data.feature_matrix import MAX_OFFSET
from ranksieve.data.inputs import check_shape
from ranksieve.data.matrix import StreamedMatrix, dense_block, dense_rows, spread_and_largest
from ranksieve.data.parts import RemoteData
from ranksieve.data.queries import Queries, contiguous_queries
from ranksieve.errors import DataError, ParameterError, how_to_install, warn_caller

DEVICE_NAME = re.compile(r"cuda(:\d+)?")
NO_GPU = (
    "needs an NVIDIA GPU that PyTorch can use (see torch.cuda.is_available()); leave it out to use the CPU"
)


def check_device(device: str) -> None:
    """Raise an error if the device is not available."""
    if device != "cpu":
        find_device(device)


def find_device(device: str) -> Any:
    """The torch device of that name; raises an error if it is not available.

    If Triton interprets its kernels (TRITON_INTERPRET=1), the CPU is used instead of a GPU.
    """
    if not (isinstance(device, str) and DEVICE_NAME.fullmatch(device)):
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
        raise ParameterError("device", device, f"no such GPU; this machine has {torch.cuda.device_count()}")
    return torch.device("cuda", number)


def is_interpreted() -> bool:
    """Return True if Triton interprets kernels instead of compiling them."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def check_memory(device: Any, needed: Mapping[str, int]) -> None:
    """Raise an error if the data do not fit into GPU memory; ``needed`` is in bytes."""
    if device.type != "cuda":
        return
    import torch

    free = torch.cuda.mem_get_info(device)[0] + _cached_memory(device)
    total = sum(needed.values())
    if total > free:
        parts = ", ".join(f"{in_gigabytes(n)} for {what}" for what, n in needed.items())
        reason = (
            f"the data need {in_gigabytes(total)} of GPU memory ({parts}), but only {in_gigabytes(free)} are "
            "free; leave `device` out or use fewer queries"
        )
        raise DataError(None, None, reason)


def _cached_memory(device: Any) -> int:
    """Bytes that PyTorch has reserved but does not use."""
    import torch

    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def in_gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.3g} GB"


if TYPE_CHECKING:
    import torch


CUDA = 2  # DLPack's code for NVIDIA GPUs
ROUNDED_TO_FLOAT32 = (
    "the features are float64 and are rounded to float32 for the GPU: the fit and its certificate are for "
    "the rounded features; pass float32 features to avoid this warning"
)
BLOCK_BYTES = 2**28  # of rows copied at a time
BYTES_PER_DOCUMENT = 12 * 8  # scores, gradients and other arrays with one number per document


class DeviceMatrix(StreamedMatrix):
    """A dense float32 matrix on a GPU. Selected rows and columns stay there; ``read`` copies to the host."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__(np.array([0, len(values)]), int(values.shape[1]), np.dtype(np.float32))
        self.values = values

    def read(self, first: int, last: int, columns: IntArray) -> AnyArray:
        rows = self.values[first:last]
        if not np.array_equal(columns, np.arange(self.shape[1])):
            rows = rows[:, self._index(columns)]
        return np.asfortranarray(rows.cpu().numpy())

    def read_ahead(self, first: int, last: int, columns: IntArray) -> None:
        """Does nothing."""

    @cached_property
    def value_range(self) -> tuple[float, float]:
        low, high = self.values.aminmax()
        return float(low), float(high)

    def spread_and_largest(self, queries: Queries) -> tuple[FloatArray, FloatArray] | None:
        if not queries.contiguous:
            return None
        from ranksieve.gpu.features import DeviceLists, extremes_of

        return extremes_of(self.values, DeviceLists(queries.offsets, self.values.device))

    def objective(self, data: Dataset, loss: Any, query_weight: FloatArray | None) -> Any:
        from ranksieve.gpu.objective import device_objective  # imports PyTorch

        return device_objective(data, loss, query_weight)

    def take_rows(self, rows: IntArray) -> DeviceMatrix:
        """Some rows, on the GPU."""
        return DeviceMatrix(self.values[self._index(rows)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and index[0] == slice(None) and np.ndim(index[1]) == 1:
            return DeviceMatrix(self.values[:, self._index(np.asarray(index[1]))].contiguous())
        return super().__getitem__(index)

    def _index(self, positions: IntArray) -> torch.Tensor:
        import torch

        return torch.from_numpy(np.ascontiguousarray(positions, dtype=np.int64)).to(self.values.device)


def is_on_gpu(X: Any) -> bool:
    """Return True if X is an array (PyTorch, CuPy, …) on a GPU."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack_device__"):
        return False
    return int(X.__dlpack_device__()[0]) == CUDA


def from_gpu(X: Any) -> DeviceMatrix:
    """A matrix from an array on a GPU; not copied if it is float32 in C order."""
    import torch

    values = X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)
    check_shape(values)
    if values.dtype == torch.float64:
        warn_caller(ROUNDED_TO_FLOAT32)
    return DeviceMatrix(values.detach().to(torch.float32).contiguous())


def as_host_array(values: Any) -> AnyArray:
    """A NumPy array, copied from the GPU if necessary."""
    if not is_on_gpu(values):
        return np.asarray(values)
    import torch

    return np.asarray(
        (values if isinstance(values, torch.Tensor) else torch.from_dlpack(values)).cpu().numpy()
    )


def on_gpu(X: Matrix, queries: Queries, device: str, origin: AnyArray | None = None) -> DeviceMatrix:
    """X on a GPU in float32, with rows grouped by query.

    ``origin`` has one row per query, which is subtracted from the query's rows before rounding.
    """
    target = find_device(device)
    if isinstance(X, DeviceMatrix) and origin is None and X.values.device == target:
        return X if queries.contiguous else X.take_rows(queries.order)
    import torch

    n_rows, n_columns = X.shape
    needed = {"features": 4 * n_rows * n_columns, "documents": BYTES_PER_DOCUMENT * n_rows}
    check_memory(target, needed)
    values = torch.empty((n_rows, n_columns), dtype=torch.float32, device=target)
    query = queries.query_of_grouped if origin is not None else None
    step = max(1, BLOCK_BYTES // (8 * n_columns))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step) if queries.contiguous else queries.order[start : start + step]
        block = X[rows]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block)
        if origin is not None and query is not None:
            block = block - origin[query[start : start + step]]
        values[start : start + step] = torch.from_numpy(np.ascontiguousarray(block, dtype=np.float32)).to(
            target
        )
    return DeviceMatrix(values)


def on_device(data: Dataset, device: str = "cpu", original: Dataset | None = None) -> Dataset:
    """Training data with their features on the given device, grouped by query.

    If the values of a feature are far from zero compared with their range within queries, its value in the
    first document of the query is subtracted: float32 would lose its differences, and losses depend only on
    these. ``original`` are the data before preparation: if they are float64, a warning reports the rounding.
    """
    if device == "cpu":
        return data
    if isinstance(data, RemoteData):
        raise ParameterError("device", device, "needs the data in memory, not distributed")
    queries = data.queries
    if (data if original is None else original).X.dtype == np.float64:
        warn_caller(ROUNDED_TO_FLOAT32)
    X = on_gpu(data.X, queries, device, _origin(data))
    weight = data.document_weight
    moved = Dataset(
        X, queries.group(data.y), queries.group(data.qid), data.feature_names, truth=data.truth,
        source=data.source, profile=data.profile,
        document_weight=None if weight is None else queries.group(weight),
    )  # fmt: skip
    moved.__dict__["queries"] = contiguous_queries(queries.ids, queries.sizes)
    return moved


def round_like_gpu(data: Dataset) -> Dataset:
    """Data with the float32 features that :func:`on_device` would use, in memory."""
    queries, origin = data.queries, _origin(data)
    X = dense_rows(data.X, slice(None))
    if origin is not None:
        X = X - origin[queries.restore(queries.query_of_grouped)]
    return data.replace_features(X.astype(np.float32))


def _origin(data: Dataset) -> AnyArray | None:
    """The row to subtract from each query's rows; None if no feature has a large offset."""
    if isinstance(data.X, DeviceMatrix):
        return None
    queries = data.queries
    spread, largest = spread_and_largest(data.X, queries, split_blocks(queries.offsets))
    shifted = np.flatnonzero(largest > MAX_OFFSET * spread)
    if not len(shifted):
        return None
    origin = np.zeros((queries.n_queries, data.n_features))
    origin[:, shifted] = dense_block(data.X, queries.order[queries.offsets[:-1]], shifted)
    return origin
