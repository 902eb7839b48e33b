"""The squared hinge on a GPU, and its Hessians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray, IntArray
from ranksieve.gpu import kernels
from ranksieve.gpu.features import DeviceFeatures, DeviceLists, Tasks, host_sums, parts_between
from ranksieve.gpu.kernels import hessian_blocks

CELLS_PER_WARP = 256  # pairs that a warp processes at a time
PAIR_COLUMNS = 4  # documents that a program compares with its own at a time


@dataclass(frozen=True, eq=False)
class DeviceValue:
    """The loss at some scores; ``size`` is Σ |gradient|. The gradient is on the GPU."""

    s: Any
    value: float
    slack: float
    size: float
    gradient: Any


class DeviceSquaredHinge:
    """Σ ω_ij max(0, 1 − (s_i − s_j))² over pairs of one list with y_i > y_j, and p = Σ ω_ij (``normaliser``).

    Scores, gradients and products are float64 on the GPU. ``level_weights`` is the table of the loss, for
    integer labels from 0.
    """

    def __init__(
        self,
        y: Any,
        lists: DeviceLists,
        query_weight: Any,
        document_weight: Any = None,
        level_weights: FloatArray | None = None,
    ) -> None:
        self.lists, self.query_weight, self.document_weight = lists, query_weight, document_weight
        table, self._n_levels = np.zeros((1, 1)), 1
        if level_weights is None:
            self.code = torch.unique(y, return_inverse=True)[1].to(torch.int32)
        else:
            self.code, self._n_levels = y.to(torch.int32), len(level_weights)
            below_diagonal = np.tril(level_weights, -1)
            table = below_diagonal + below_diagonal.T
        self._level_weights, self._has_table = level_weights, level_weights is not None
        self.table = lists.to_device(table, np.float64)
        self.normaliser = self._total_pair_weight()

    def evaluate(self, s: Any) -> DeviceValue:
        """Sum and gradient at the scores ``s``."""
        gradient, by_query = self.sums(s)
        return self.value(s, gradient, by_query.sum(0).tolist())

    def value(self, s: Any, gradient: Any, totals: Any) -> DeviceValue:
        """The results of :meth:`sums`, with the totals over queries."""
        slack, value, size = totals
        return DeviceValue(s, float(value), float(slack), float(size), gradient)

    def sums(self, s: Any) -> tuple[Any, Any]:
        """The gradient, and Σ ωξ, Σ ωξ² and Σ |gradient| of each query, without synchronisation."""
        gradient, by_task = torch.zeros_like(s), []
        for tasks in self.lists.tasks:
            sums = self._empty_sums(tasks, 3)
            self._run(kernels.squared_hinge, tasks, (s,), (gradient, sums))
            by_task.append(sums)
        return gradient, self.lists.sum_by_query(by_task)

    def line(self, s: Any, d: Any) -> Callable[[float], tuple[float, float]]:
        """Function that returns both derivatives of the loss along d at s + μd."""

        def along(step: float) -> tuple[float, float]:
            mu, by_task = torch.full((1,), step, dtype=torch.float64, device=s.device), []
            for tasks in self.lists.tasks:
                sums = self._empty_sums(tasks, 2)
                self._run(kernels.squared_hinge_along, tasks, (s, d, mu), (sums,))
                by_task.append(sums)
            total = torch.zeros(2, dtype=torch.float64, device=s.device)
            for sums in by_task:
                total += sums.sum(0)
            slope, curvature = total.tolist()
            return slope, curvature

        return along

    def product(self, at: DeviceValue, v: Any) -> Any:
        """Sv, S the (generalised) Hessian in the scores."""
        product = torch.zeros_like(v)
        for tasks in self.lists.tasks:
            self._run(kernels.hessian_product, tasks, (at.s, v), (product,))
        return product

    def part(self, lists: DeviceLists, rows: Any, queries: Any) -> DeviceSquaredHinge:
        """The loss of some queries, given their lists, rows and indices."""
        document_weight = None if self.document_weight is None else self.document_weight[rows]
        return DeviceSquaredHinge(
            self.code[rows], lists, self.query_weight[queries], document_weight, self._level_weights
        )

    def _total_pair_weight(self) -> float:
        total = 0.0
        for tasks in self.lists.tasks:
            sums = self._empty_sums(tasks, 1)
            self._run(kernels.total_weights, tasks, (), (sums,))
            total += float(sums.sum())
        return total

    def _run(self, kernel: Any, tasks: Tasks, scores: tuple[Any, ...], out: tuple[Any, ...]) -> None:
        kernel[(len(tasks),)](
            *scores, *self._kernel_arguments, tasks.query, tasks.row, *out,
            ROWS=tasks.rows, COLUMNS=PAIR_COLUMNS, **self.options,
            num_warps=max(1, tasks.rows * PAIR_COLUMNS // CELLS_PER_WARP),
        )  # fmt: skip

    @property
    def _kernel_arguments(self) -> tuple[Any, ...]:
        document_weight = self.query_weight if self.document_weight is None else self.document_weight
        return (self.code, document_weight, self.table, self._n_levels, self.lists.offsets, self.query_weight)

    @property
    def options(self) -> dict[str, bool]:
        return {"HAS_WEIGHTS": self.document_weight is not None, "HAS_TABLE": self._has_table}

    def _empty_sums(self, tasks: Tasks, width: int) -> Any:
        return torch.empty((len(tasks), width), dtype=torch.float64, device=self.lists.device)


WIDTHS = (16, 32, 64, 128)  # columns of a block
PROGRAMS = 1056  # 8 for each multiprocessor of a large GPU
HESSIAN_COLUMNS = 32  # the same for Hessians, if a task does not have all documents


class Hessians:
    """VᵀSV for columns V of the features, S the Hessian of the loss in scores."""

    def __init__(self, features: DeviceFeatures, loss: DeviceSquaredHinge) -> None:
        self._features, self._loss = features, loss

    def blocks(self, at: DeviceValue, columns: IntArray, cuts: IntArray) -> FloatArray:
        """VᵀSV of the lists between consecutive cuts."""
        if len(columns) == 0:
            return np.zeros((len(cuts) - 1, 0, 0))
        prepared, V = self._features.prepared(columns)
        n_blocks, width = _blocks(V.shape[1])
        left, right = np.triu_indices(n_blocks)
        blocks = self._sums(at, V, cuts, left, right, width)
        hessians = np.zeros((len(cuts) - 1, n_blocks * width, n_blocks * width))
        for block, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            rows, others = slice(a * width, (a + 1) * width), slice(b * width, (b + 1) * width)
            hessians[:, others, rows] = blocks[:, block].transpose(0, 2, 1)
            hessians[:, rows, others] = blocks[:, block]
        positions, size = np.searchsorted(prepared, columns), self._features.spread[columns]
        hessians = hessians[:, positions[:, None], positions] * np.outer(size, size)
        return np.asarray(0.5 * (hessians + hessians.transpose(0, 2, 1)))

    def diagonal(self, at: DeviceValue) -> FloatArray:
        """The diagonal for all features and lists."""
        n_features, cuts = self._features.n_features, np.array([0, self._loss.lists.n_queries])
        diagonal = np.empty(n_features)
        for columns in np.array_split(np.arange(n_features), -(-n_features // WIDTHS[-1])):
            diagonal[columns] = np.diagonal(self.blocks(at, columns, cuts)[0])
        return diagonal

    @cached_property
    def _relative_weights(self) -> tuple[Any, Any, Any, float]:
        """Weights (documents, pairs of labels, queries) divided by their maximum, and the total scale."""
        loss = self._loss
        (queries, scale), (labels, of_labels) = _shares(loss.query_weight), _shares(loss.table)
        documents, of_documents = (
            (queries, 1.0) if loss.document_weight is None else _shares(loss.document_weight)
        )
        return documents, labels, queries, scale * of_labels * of_documents**2  # a pair has two documents

    def _sums(
        self, at: DeviceValue, V: Any, cuts: IntArray, left: IntArray, right: IntArray, width: int
    ) -> FloatArray:
        """The blocks (left, right) of ``width`` columns for the lists between cuts (cuts × blocks × …)."""
        total = np.zeros((len(cuts) - 1, len(left), width, width))
        for tasks in self._loss.lists.tasks:
            total += self._of_tasks(at, V, tasks, cuts, left, right, width)
        return total * self._relative_weights[-1]

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
        documents, labels, queries, _ = self._relative_weights
        edges = parts_between(np.searchsorted(tasks.queries, cuts), PROGRAMS, 1)
        firsts, lasts = lists.edges_to_device(edges)
        out = torch.empty((len(firsts), len(left), width, width), dtype=torch.float32, device=lists.device)
        hessian_blocks[(len(firsts), len(left))](
            V, V.shape[1], lists.to_device(left, np.int32), lists.to_device(right, np.int32), at.s, loss.code,
            documents, labels, len(labels), lists.offsets, queries, tasks.query, tasks.row, firsts, lasts,
            out,
            ROWS=tasks.rows, COLUMNS=HESSIAN_COLUMNS, WIDTH=width, WHOLE=tasks.whole, **loss.options,
            num_warps=8 if tasks.rows * width >= 8192 else 4,
            num_stages=1 if tasks.whole and width > 32 else 3,
        )  # fmt: skip
        return host_sums(out, [len(part) - 1 for part in edges])


def _shares(weights: Any) -> tuple[Any, float]:
    """Weights divided by the largest, in float32, and the largest (1 if all are 0)."""
    largest = float(weights.max()) or 1.0
    return (weights / largest).to(torch.float32), largest


def _blocks(n_columns: int) -> tuple[int, int]:
    """Number and width of the blocks for ``n_columns`` columns."""
    width = next((one for one in WIDTHS if one >= n_columns), WIDTHS[-1])
    return -(-n_columns // width), width
