"""Hessian blocks of an objective on a GPU."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray, IntArray
from ranksieve.device.features import DeviceFeatures, parts_between, summed
from ranksieve.device.kernels.hessian import hessian_blocks
from ranksieve.device.lists import Tasks
from ranksieve.device.squared_hinge import DeviceSquaredHinge, DeviceValue

WIDTHS = (16, 32, 64, 128)  # columns of a block
PROGRAMS = 1056  # sums of lists that are added up at the end: 8 for each multiprocessor of a large GPU
COLUMNS = 32  # documents that a program compares with its own at a time, where it does not have all
AT_ONCE = 16  # columns of long lists


class Hessians:
    """VᵀSV, V some columns of the features and S the Hessian of the loss in scores, in sums over lists."""

    def __init__(self, features: DeviceFeatures, loss: DeviceSquaredHinge) -> None:
        self._features, self._loss = features, loss

    def blocks(self, at: DeviceValue, columns: IntArray, cuts: IntArray) -> FloatArray:
        """What the lists between each two cuts add."""
        if len(columns) == 0:
            return np.zeros((len(cuts) - 1, 0, 0))
        kept, V = self._features.prepared(columns)
        n_blocks, width = _blocks(V.shape[1])
        left, right = np.triu_indices(n_blocks)
        found = self._sums(at, V, cuts, left, right, width)
        whole = np.zeros((len(cuts) - 1, n_blocks * width, n_blocks * width))
        for block, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            rows, others = slice(a * width, (a + 1) * width), slice(b * width, (b + 1) * width)
            whole[:, others, rows] = found[:, block].transpose(0, 2, 1)
            whole[:, rows, others] = found[:, block]
        places, size = np.searchsorted(kept, columns), self._features.spread[columns]
        whole = whole[:, places[:, None], places] * np.outer(size, size)
        if self._loss.long is not None:
            whole += self._of_long(at, columns, cuts)
        return np.asarray(0.5 * (whole + whole.transpose(0, 2, 1)))

    def diagonal(self, at: DeviceValue) -> FloatArray:
        """The diagonal, of all features and lists."""
        n_features, cuts = self._features.n_features, np.array([0, self._loss.lists.n_queries])
        found = np.empty(n_features)
        for some in np.array_split(np.arange(n_features), -(-n_features // WIDTHS[-1])):
            found[some] = np.diagonal(self.blocks(at, some, cuts)[0])
        return found

    @cached_property
    def _weights(self) -> tuple[Any, Any, Any, float]:
        """(of documents, of pairs of labels, of queries) as shares of the largest; the product of these."""
        loss = self._loss
        (queries, scale), (labels, of_labels) = _shares(loss.query_weight), _shares(loss.table)
        documents, of_documents = (queries, 1.0) if loss.mass is None else _shares(loss.mass)
        return documents, labels, queries, scale * of_labels * of_documents**2  # a pair has two documents

    def _sums(
        self, at: DeviceValue, V: Any, cuts: IntArray, left: IntArray, right: IntArray, width: int
    ) -> FloatArray:
        """The blocks (left, right) of so many columns that lists without sorting add (cuts × blocks × …)."""
        total = np.zeros((len(cuts) - 1, len(left), width, width))
        for tasks in self._loss.lists.tasks:
            total += self._of_tasks(at, V, tasks, cuts, left, right, width)
        return total * self._weights[-1]

    def _of_tasks(
        self,
        at: DeviceValue,
        V: Any,
        tasks: Tasks,
        cuts: IntArray,
        left: IntArray,
        right: IntArray,
        width: int,
    ) -> FloatArray:
        lists, loss = self._loss.lists, self._loss
        documents, labels, queries, _ = self._weights
        edges = parts_between(np.searchsorted(tasks.queries, cuts), PROGRAMS, 1)
        firsts, lasts = lists.moved_edges(edges)
        out = torch.empty((len(firsts), len(left), width, width), dtype=torch.float32, device=lists.device)
        hessian_blocks[(len(firsts), len(left))](
            V, V.shape[1], lists.moved(left, np.int32), lists.moved(right, np.int32), at.s, loss.code,
            documents, labels, len(labels), lists.offsets, queries, tasks.query, tasks.row, firsts, lasts,
            out,
            ROWS=tasks.rows, COLUMNS=COLUMNS, WIDTH=width, WHOLE=tasks.whole, **loss.options,
            num_warps=8 if tasks.rows * width >= 8192 else 4,
            num_stages=1 if tasks.whole and width > 32 else 3,
        )  # fmt: skip
        return summed(out, [len(part) - 1 for part in edges])

    def _of_long(self, at: DeviceValue, columns: IntArray, cuts: IntArray) -> FloatArray:
        """What lists that are sorted add."""
        long: Any = self._loss.long
        lists = self._loss.lists
        V = self._features.X[:, lists.moved(columns)][long.rows].to(torch.float64).T
        V = V - long.first_of(V)
        ends = np.concatenate(([0], np.cumsum(lists.sizes[lists.long])))
        rows = ends[np.searchsorted(lists.long, cuts)]
        found = np.zeros((len(cuts) - 1, len(columns), len(columns)))
        for some in torch.split(torch.arange(len(columns), device=V.device), AT_ONCE):
            N = long.products(at.s, V[some])
            for part, (a, b) in enumerate(pairwise(rows.tolist())):
                found[part][:, some.cpu().numpy()] = (V[:, a:b] @ N[:, a:b].T).cpu().numpy()
        return found


def _shares(weights: Any) -> tuple[Any, float]:
    """Weights as shares of the largest, in float32, and that one; 1 if all are 0."""
    largest = float(weights.max()) or 1.0
    return (weights / largest).to(torch.float32), largest


def _blocks(n_columns: int) -> tuple[int, int]:
    """How many blocks of which width hold so many columns."""
    width = next((one for one in WIDTHS if one >= n_columns), WIDTHS[-1])
    return -(-n_columns // width), width
