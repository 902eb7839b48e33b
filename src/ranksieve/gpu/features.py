"""Features and lists of documents as GPU kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.gpu import kernels

SHORT = (16, 32, 64, 128)  # documents up to which one program has all of a list


@dataclass(frozen=True)
class Tasks:
    """Blocks of ``rows`` documents, each of one query: its number (``queries``) and the first of them."""

    rows: int
    queries: IntArray
    query: Any
    row: Any
    distinct: Any  # queries
    blocks: Any  # of each of them, or None where all have one

    @property
    def whole(self) -> bool:
        """Whether each has all documents of its query."""
        return self.blocks is None

    def __len__(self) -> int:
        return len(self.queries)


class Lists:
    """Queries whose documents are together, on a GPU; ``tasks`` are those of lists of similar length."""

    def __init__(self, offsets: IntArray, device: Any) -> None:
        self.device, self.sizes, self.host_offsets = device, np.diff(offsets), offsets
        self.n_queries, self.n_rows = len(self.sizes), int(offsets[-1])
        self.offsets = self.moved(offsets)
        self.tasks: list[Tasks] = []
        for least, most in pairwise((1, *SHORT, np.inf)):
            queries = np.flatnonzero((self.sizes > least) & (self.sizes <= most))
            if len(queries):
                rows = next((one for one in SHORT if one >= most), SHORT[-1])
                self.tasks.append(self._tasks(queries, rows))

    @cached_property
    def query_of_row(self) -> Any:
        return torch.repeat_interleave(
            torch.arange(self.n_queries, dtype=torch.int32, device=self.device), self.moved(self.sizes)
        )

    def _tasks(self, queries: IntArray, rows: int) -> Tasks:
        n_blocks = -(-self.sizes[queries] // rows)
        query = np.repeat(queries, n_blocks)
        block = np.arange(len(query)) - np.repeat(np.cumsum(n_blocks) - n_blocks, n_blocks)
        first = self.host_offsets[query] + block * rows
        blocks = self.moved(n_blocks) if n_blocks.max() > 1 else None
        return Tasks(rows, query, self.moved(query, np.int32), self.moved(first), self.moved(queries), blocks)

    def moved(self, values: Any, dtype: Any = None) -> Any:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype)).to(self.device)

    def moved_edges(self, edges: list[IntArray]) -> tuple[Any, Any]:
        """The firsts and lasts of runs between edges."""
        firsts, lasts = [part[:-1] for part in edges], [part[1:] for part in edges]
        return self.moved(np.concatenate(firsts)), self.moved(np.concatenate(lasts))

    def of_queries(self, by_task: list[Any]) -> Any:
        """Sums over the tasks of each query, of numbers (tasks × …) of the tasks of each length."""
        width = by_task[0].shape[1:]
        total = torch.zeros((self.n_queries, *width), dtype=torch.float64, device=self.device)
        for tasks, values in zip(self.tasks, by_task, strict=True):
            if tasks.blocks is not None:
                values = torch.segment_reduce(values, "sum", lengths=tasks.blocks, unsafe=True)
            total[tasks.distinct] = values
        return total


ROWS, COLUMNS = 32, 32  # of X that a program reads at a time
# up to so many features: rows and columns that a program scores at a time, and its warps
SCORED = ((64, (32, 16, 2)), (512, (32, 32, 4)), (np.inf, (4, 128, 1)))
SUMMED = (1024, 2048, 4096)  # cells of X that a program adds up at a time, four by each thread
FILLED = 0.95  # of them have to be of rows, where that can be
THREADS = 32  # of a warp
PARTS = 1056  # sums of rows that are added up at the end: 8 for each multiprocessor of a large GPU
FEWEST_ROWS = 256  # of such a sum
WIDTH = 16  # columns of Hessians come in so many
MANY_DOCUMENTS = 2**18  # from here on Hessians are of float16: rounding errors average out


class DeviceFeatures:
    """X on a GPU, and what solvers ask of it.

    Attributes
    ----------
    reach : array
        max |x_j| of each feature.
    spread : array
        Of each feature the largest max − min within a list.
    varies : array of bool
        Features that are not constant within every list.
    """

    def __init__(self, X: Any, lists: Lists, extremes: tuple[FloatArray, FloatArray] | None = None) -> None:
        self.X, self.lists, self.n_features = X, lists, int(X.shape[1])
        self.spread, self.reach = extremes or extremes_of(X, lists)
        self._kept: tuple[IntArray, Any] | None = None

    @property
    def varies(self) -> BoolArray:
        return self.spread > 0

    @property
    def _aligned(self) -> int:
        """Of which power of two, up to 4, the number of columns is a multiple: so many are read at once."""
        return next(one for one in (4, 2, 1) if self.n_features % one == 0)

    def scores(self, w: FloatArray) -> Any:
        """Xw, on the GPU."""
        out = torch.empty(self.lists.n_rows, dtype=torch.float64, device=self.X.device)
        rows, columns, warps = next(shape for most, shape in SCORED if self.n_features <= most)
        kernels.row_products[(-(-len(out) // rows),)](
            self.X, self.lists.moved(w, np.float64), out, *self.X.shape,
            ROWS=rows, COLUMNS=columns, ALIGNED=self._aligned, num_warps=warps,
        )  # fmt: skip
        return out

    def transposed(self, g: Any) -> FloatArray:
        """Xᵀg, of a vector on the GPU."""
        return np.asarray(self.on_device_transposed(g).cpu().numpy())

    def on_device_transposed(self, g: Any) -> Any:
        """Xᵀg on the GPU; nothing is waited for."""
        return self._sums(g, *self._parts).sum((0, 1))

    def transposed_parts(self, g: Any, cuts: IntArray) -> FloatArray:
        """Xᵀg of the rows between each two cuts."""
        edges = parts_between(cuts, PARTS, FEWEST_ROWS)
        sums = self._sums(g, *self.lists.moved_edges(edges)).sum(1)
        return summed(sums, [len(part) - 1 for part in edges])

    def _sums(self, g: Any, firsts: Any, lasts: Any) -> Any:
        """Xᵀg of the rows of each part, in some sums (parts × sums × features)."""
        n_rows, cells = rows_at_once(self.n_features)
        out = torch.empty((len(firsts), n_rows, self.n_features), dtype=torch.float64, device=g.device)
        kernels.column_sums[(len(firsts), -(-n_rows * self.n_features // cells))](
            self.X, g, firsts, lasts, out, self.n_features, n_rows,
            CELLS=cells, ALIGNED=self._aligned, num_warps=cells // (4 * THREADS),
        )  # fmt: skip
        return out

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """The first and last rows of the parts of all data."""
        whole = np.array([0, self.lists.n_rows])
        return self.lists.moved_edges(parts_between(whole, PARTS, FEWEST_ROWS))

    def keep(self, columns: IntArray) -> None:
        """Prepare some columns for Hessians."""
        kept = np.sort(columns)
        size = np.where(self.varies[kept], self.spread[kept], 1.0)
        width = -(-len(kept) // WIDTH) * WIDTH
        kind = torch.float16 if self.lists.n_rows >= MANY_DOCUMENTS else torch.float32
        values = torch.empty((self.lists.n_rows, width), dtype=kind, device=self.X.device)
        grid = (-(-self.lists.n_rows // ROWS), width // WIDTH)
        kernels.columns_in_units[grid](
            self.X, self.lists.moved(kept), self.lists.moved(1.0 / size, np.float32), self.lists.query_of_row,
            self.lists.offsets, values, *self.X.shape, len(kept), width, ROWS=ROWS, COLUMNS=WIDTH,
        )  # fmt: skip
        self._kept = (kept, values)

    def keeps(self, columns: IntArray) -> bool:
        """Whether these columns are prepared, and not many more, whose Hessian would be computed in vain."""
        if self._kept is None or len(self._kept[0]) > max(2 * len(columns), WIDTH):
            return False
        return bool(np.isin(columns, self._kept[0], assume_unique=True).all())

    def prepared(self, columns: IntArray) -> tuple[IntArray, Any]:
        """Columns that hold the given ones, and their values.

        These are differences from the query's first document, in units of ``spread``; zeros fill the last
        ones up.
        """
        if self._kept is None or not self.keeps(columns):
            self.keep(columns)
        assert self._kept is not None
        return self._kept

    def column(self, j: int) -> Any:
        """Feature ``j`` of every document, on the GPU."""
        return self.X[:, j].to(torch.float64)

    def restricted(self, columns: IntArray) -> DeviceFeatures:
        X = self.X[:, self.lists.moved(columns)].contiguous()
        return DeviceFeatures(X, self.lists, (self.spread[columns], self.reach[columns]))


def extremes_of(X: Any, lists: Lists) -> tuple[FloatArray, FloatArray]:
    """Of each column the largest max − min within a list, and the largest |x|."""
    edges = np.unique(np.linspace(0, lists.n_queries, min(PARTS, lists.n_queries) + 1).astype(np.int64))
    firsts, lasts = lists.moved(edges[:-1]), lists.moved(edges[1:])
    found = torch.empty((2, len(firsts), X.shape[1]), dtype=torch.float32, device=X.device)
    grid = (len(firsts), -(-X.shape[1] // COLUMNS))
    kernels.extremes[grid](
        X, lists.offsets, firsts, lasts, found[0], found[1], X.shape[1], ROWS=ROWS, COLUMNS=COLUMNS
    )
    spread, largest = found.amax(1).cpu().numpy().astype(np.float64)
    return spread, largest


def rows_at_once(n_columns: int) -> tuple[int, int]:
    """How many rows of X a program adds up at a time, and to how many cells at once."""

    def filled(cells: int) -> float:
        taken = max(1, cells // n_columns) * n_columns
        return taken / (-(-taken // cells) * cells)

    cells = next((one for one in SUMMED if filled(one) >= FILLED), max(SUMMED, key=filled))
    return max(1, cells // n_columns), cells


def parts_between(cuts: IntArray, most: int, fewest: int) -> list[IntArray]:
    """The edges of about ``most`` runs of rows in all, of at least ``fewest`` each, between each two cuts."""
    length = max(fewest, -(-int(cuts[-1] - cuts[0]) // most))
    return [
        np.linspace(a, b, max(1, -(-(b - a) // length)) + 1).astype(np.int64)
        for a, b in pairwise(cuts.tolist())
    ]


def summed(parts: Any, counts: list[int]) -> FloatArray:
    """Sums of so many neighbouring rows each, as an array of the host."""
    return np.array([some.sum(0).cpu().numpy() for some in torch.split(parts, counts)])
