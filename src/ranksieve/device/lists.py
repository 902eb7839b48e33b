"""The lists of documents as kernels take them: blocks of rows, by the lengths of the lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ranksieve._types import IntArray

SHORT = (16, 32, 64, 128)  # documents up to which one program has all of a list
TILED = 8192  # documents up to which all pairs of a list are looked at; sorting takes less time beyond


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
    """Queries whose documents are together, on a GPU.

    ``tasks`` are those of lists of similar length; in ``long`` are the numbers of queries that are sorted.
    """

    def __init__(self, offsets: IntArray, device: Any, tiled: int = TILED) -> None:
        self.device, self.sizes, self.host_offsets = device, np.diff(offsets), offsets
        self.n_queries, self.n_rows = len(self.sizes), int(offsets[-1])
        self.offsets = self.moved(offsets)
        self.tasks: list[Tasks] = []
        edges = [1, *(most for most in SHORT if most < tiled), tiled]
        for least, most in pairwise(edges):
            queries = np.flatnonzero((self.sizes > least) & (self.sizes <= most))
            if len(queries):
                rows = next((one for one in SHORT if one >= most), SHORT[-1])
                self.tasks.append(self._tasks(queries, rows))
        self.long = np.flatnonzero(self.sizes > tiled)

    @cached_property
    def query_of_row(self) -> Any:
        """The number of each row's query."""
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
        """An array on the GPU."""
        return torch.from_numpy(np.ascontiguousarray(values, dtype=dtype)).to(self.device)

    def moved_edges(self, edges: list[IntArray]) -> tuple[Any, Any]:
        """The firsts and lasts of runs between edges."""
        firsts, lasts = [part[:-1] for part in edges], [part[1:] for part in edges]
        return self.moved(np.concatenate(firsts)), self.moved(np.concatenate(lasts))

    def of_queries(self, by_task: list[Any]) -> Any:
        """Sums over the tasks of each query, of numbers (tasks × …) of the tasks of each length."""
        width = by_task[0].shape[1:] if by_task else ()
        total = torch.zeros((self.n_queries, *width), dtype=torch.float64, device=self.device)
        for tasks, values in zip(self.tasks, by_task, strict=True):
            if tasks.blocks is not None:
                values = torch.segment_reduce(values, "sum", lengths=tasks.blocks, unsafe=True)
            total[tasks.distinct] = values
        return total
