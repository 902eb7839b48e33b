"""Features and query lists on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.gpu import kernels

TASK_ROWS = (16, 32, 64, 128)  # documents per task; lists longer than the last are split


@dataclass(frozen=True)
class Tasks:
    """Blocks of at most ``rows`` documents of one query: ``query`` and first ``row`` of each block.

    ``queries`` is ``query`` on the host, ``distinct`` the queries and ``blocks`` the number of blocks of
    each, or None if each has one.
    """

    rows: int
    queries: IntArray
    query: Any
    row: Any
    distinct: Any
    blocks: Any

    @property
    def whole(self) -> bool:
        """Return True if each block has all documents of its query."""
        return self.blocks is None

    def __len__(self) -> int:
        return len(self.queries)


class DeviceLists:
    """Queries with contiguous documents, on a GPU; each of ``tasks`` has lists of similar length."""

    def __init__(self, offsets: IntArray, device: Any) -> None:
        self.device, self.sizes, self.host_offsets = device, np.diff(offsets), offsets
        self.n_queries, self.n_rows = len(self.sizes), int(offsets[-1])
        self.offsets = self.to_device(offsets)
        self.tasks: list[Tasks] = []
        for least, most in pairwise((1, *TASK_ROWS, np.inf)):
            queries = np.flatnonzero((self.sizes > least) & (self.sizes <= most))
            if len(queries):
                rows = next((one for one in TASK_ROWS if one >= most), TASK_ROWS[-1])
                self.tasks.append(self._tasks(queries, rows))

    @cached_property
    def query_of_row(self) -> Any:
        return torch.repeat_interleave(
            torch.arange(self.n_queries, dtype=torch.int32, device=self.device), self.to_device(self.sizes)
        )

    def _tasks(self, queries: IntArray, rows: int) -> Tasks:
        n_blocks = -(-self.sizes[queries] // rows)
        query = np.repeat(queries, n_blocks)
        block = np.arange(len(query)) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
        first = self.host_offsets[query] + block * rows
        blocks = self.to_device(n_blocks) if n_blocks.max() > 1 else None
        return Tasks(
            rows,
            query,
            self.to_device(query, np.int32),
            self.to_device(first),
            self.to_device(queries),
            blocks,
        )

    def to_device(self, values: Any, dtype: Any = None) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype)).to(self.device)

    def edges_to_device(self, edges: list[IntArray]) -> tuple[Any, Any]:
        """First and last rows of the runs between edges."""
        firsts, lasts = [part[:-1] for part in edges], [part[1:] for part in edges]
        return self.to_device(np.concatenate(firsts)), self.to_device(np.concatenate(lasts))

    def sum_by_query(self, by_task: list[Any]) -> Any:
        """Sum values (blocks × …), one array per entry of ``tasks``, over the blocks of each query."""
        width = by_task[0].shape[1:]
        total = torch.zeros((self.n_queries, *width), dtype=torch.float64, device=self.device)
        for tasks, values in zip(self.tasks, by_task, strict=True):
            if tasks.blocks is not None:
                values = torch.segment_reduce(values, "sum", lengths=tasks.blocks, unsafe=True)
            total[tasks.distinct] = values
        return total


ROWS, COLUMNS = 32, 32  # cells of X that a program reads at a time
# (maximum number of features, (rows and columns that a program scores at a time, warps))
SCORE_SHAPES = ((64, (32, 16, 2)), (512, (32, 32, 4)), (np.inf, (4, 128, 1)))
SUM_CELLS = (1024, 2048, 4096)  # cells of X that a program sums at a time, four per thread
MIN_FILL = 0.95  # fraction of the cells that should be used
THREADS = 32  # per warp
N_PARTIAL_SUMS = 1056  # 8 for each multiprocessor of a large GPU
FEWEST_ROWS = 256  # of a partial sum
WIDTH = 16  # columns of Hessians are padded to a multiple
FLOAT16_MIN_DOCUMENTS = 2**18  # from here on Hessians use float16, because rounding errors average out


class DeviceFeatures:
    """X on a GPU, with the interface of a feature matrix.

    Attributes
    ----------
    max_abs : array
        max |x_j| of each feature.
    spread : array
        Largest max − min of each feature within a list.
    varies : array of bool
        Features that are not constant within every list.
    """

    def __init__(
        self, X: Any, lists: DeviceLists, extremes: tuple[FloatArray, FloatArray] | None = None
    ) -> None:
        self.X, self.lists, self.n_features = X, lists, int(X.shape[1])
        self.spread, self.max_abs = extremes or extremes_of(X, lists)
        self._prepared: tuple[IntArray, Any] | None = None

    @property
    def varies(self) -> BoolArray:
        return self.spread > 0

    @property
    def _aligned(self) -> int:
        """Columns read at once: the largest of 4, 2, 1 that divides the number of columns."""
        return next(one for one in (4, 2, 1) if self.n_features % one == 0)

    def scores(self, w: FloatArray) -> Any:
        """Xw, on the GPU."""
        out = torch.empty(self.lists.n_rows, dtype=torch.float64, device=self.X.device)
        rows, columns, warps = next(shape for most, shape in SCORE_SHAPES if self.n_features <= most)
        kernels.row_products[(-(-len(out) // rows),)](
            self.X, self.lists.to_device(w, np.float64), out, *self.X.shape,
            ROWS=rows, COLUMNS=columns, ALIGNED=self._aligned, num_warps=warps,
        )  # fmt: skip
        return out

    def transposed(self, g: Any) -> FloatArray:
        """Xᵀg for a vector on the GPU."""
        return np.asarray(self.transposed_on_device(g).cpu().numpy())

    def transposed_on_device(self, g: Any) -> Any:
        """Xᵀg on the GPU, without synchronisation."""
        return self._sums(g, *self._parts).sum((0, 1))

    def transposed_parts(self, g: Any, cuts: IntArray) -> FloatArray:
        """Xᵀg of the rows between consecutive cuts."""
        edges = parts_between(cuts, N_PARTIAL_SUMS, FEWEST_ROWS)
        sums = self._sums(g, *self.lists.edges_to_device(edges)).sum(1)
        return host_sums(sums, [len(part) - 1 for part in edges])

    def _sums(self, g: Any, firsts: Any, lasts: Any) -> Any:
        """Partial sums of Xᵀg over the rows of each part (parts × sums × features)."""
        n_rows, cells = rows_at_once(self.n_features)
        out = torch.empty((len(firsts), n_rows, self.n_features), dtype=torch.float64, device=g.device)
        kernels.column_sums[(len(firsts), -(-n_rows * self.n_features // cells))](
            self.X, g, firsts, lasts, out, self.n_features, n_rows,
            CELLS=cells, ALIGNED=self._aligned, num_warps=cells // (4 * THREADS),
        )  # fmt: skip
        return out

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """First and last rows of the parts."""
        whole = np.array([0, self.lists.n_rows])
        return self.lists.edges_to_device(parts_between(whole, N_PARTIAL_SUMS, FEWEST_ROWS))

    def keep(self, columns: IntArray) -> None:
        """Prepare some columns for Hessians."""
        sorted_columns = np.sort(columns)
        size = np.where(self.varies[sorted_columns], self.spread[sorted_columns], 1.0)
        width = -(-len(sorted_columns) // WIDTH) * WIDTH
        dtype = torch.float16 if self.lists.n_rows >= FLOAT16_MIN_DOCUMENTS else torch.float32
        values = torch.empty((self.lists.n_rows, width), dtype=dtype, device=self.X.device)
        grid = (-(-self.lists.n_rows // ROWS), width // WIDTH)
        kernels.columns_in_units[grid](
            self.X, self.lists.to_device(sorted_columns), self.lists.to_device(1.0 / size, np.float32),
            self.lists.query_of_row, self.lists.offsets, values, *self.X.shape, len(sorted_columns), width,
            ROWS=ROWS, COLUMNS=WIDTH,
        )  # fmt: skip
        self._prepared = (sorted_columns, values)

    def keeps(self, columns: IntArray) -> bool:
        """Return True if these columns are prepared, and not many more, which would waste time."""
        if self._prepared is None or len(self._prepared[0]) > max(2 * len(columns), WIDTH):
            return False
        return bool(np.isin(columns, self._prepared[0], assume_unique=True).all())

    def prepared(self, columns: IntArray) -> tuple[IntArray, Any]:
        """The prepared columns, which include the given ones, and their values.

        Values are differences from the query's first document, in units of ``spread``, padded with zero
        columns.
        """
        if self._prepared is None or not self.keeps(columns):
            self.keep(columns)
        assert self._prepared is not None
        return self._prepared

    def column(self, j: int) -> Any:
        """Feature ``j`` of every document, on the GPU."""
        return self.X[:, j].to(torch.float64)

    def restricted(self, columns: IntArray) -> DeviceFeatures:
        X = self.X[:, self.lists.to_device(columns)].contiguous()
        return DeviceFeatures(X, self.lists, (self.spread[columns], self.max_abs[columns]))


def extremes_of(X: Any, lists: DeviceLists) -> tuple[FloatArray, FloatArray]:
    """Largest max − min within a list, and largest |x|, of each column."""
    edges = np.unique(
        np.linspace(0, lists.n_queries, min(N_PARTIAL_SUMS, lists.n_queries) + 1).astype(np.int64)
    )
    firsts, lasts = lists.to_device(edges[:-1]), lists.to_device(edges[1:])
    by_part = torch.empty((2, len(firsts), X.shape[1]), dtype=torch.float32, device=X.device)
    grid = (len(firsts), -(-X.shape[1] // COLUMNS))
    kernels.extremes[grid](
        X, lists.offsets, firsts, lasts, by_part[0], by_part[1], X.shape[1], ROWS=ROWS, COLUMNS=COLUMNS
    )
    spread, largest = by_part.amax(1).cpu().numpy().astype(np.float64)
    return spread, largest


def rows_at_once(n_columns: int) -> tuple[int, int]:
    """Rows of X that a program sums at a time, and the number of cells."""

    def fill(cells: int) -> float:
        used = max(1, cells // n_columns) * n_columns
        return used / (-(-used // cells) * cells)

    cells = next((one for one in SUM_CELLS if fill(one) >= MIN_FILL), max(SUM_CELLS, key=fill))
    return max(1, cells // n_columns), cells


def parts_between(cuts: IntArray, most: int, fewest: int) -> list[IntArray]:
    """Edges of about ``most`` runs in total between consecutive cuts, each of at least ``fewest`` rows."""
    length = max(fewest, -(-int(cuts[-1] - cuts[0]) // most))
    return [
        np.linspace(a, b, max(1, -(-(b - a) // length)) + 1).astype(np.int64)
        for a, b in pairwise(cuts.tolist())
    ]


def host_sums(parts: Any, counts: list[int]) -> FloatArray:
    """Sums of consecutive parts, ``counts`` of them each, as a NumPy array."""
    return np.array([some.sum(0).cpu().numpy() for some in torch.split(parts, counts)])
