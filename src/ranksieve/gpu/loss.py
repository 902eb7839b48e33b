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
from ranksieve.gpu.features import DeviceFeatures, Lists, Tasks, parts_between, summed
from ranksieve.gpu.kernels import hessian_blocks

CELLS = 256  # of pairs that a warp has at a time
COLUMNS = 4  # documents that a program compares with its own at a time


@dataclass(frozen=True, eq=False)
class DeviceValue:
    """The loss at some scores: its sum and parts, and its gradient on the GPU; ``size`` is Σ |gradient|."""

    s: Any
    value: float
    slack: float
    size: float
    gradient: Any
    sums: Any

    @cached_property
    def by_query(self) -> FloatArray:
        """The share of each query in the sum."""
        return np.asarray(self.sums[:, 1].cpu().numpy())


class DeviceSquaredHinge:
    """Σ ω_ij max(0, 1 − (s_i − s_j))² over pairs of one list with y_i > y_j, and p = Σ ω_ij (``normaliser``).

    Scores, gradients and products are float64 on the GPU. ``level_weights`` is the table of the loss, for
    labels that are whole numbers from 0.
    """

    def __init__(
        self,
        y: Any,
        lists: Lists,
        query_weight: Any,
        document_weight: Any = None,
        level_weights: FloatArray | None = None,
    ) -> None:
        self.lists, self.query_weight, self.mass = lists, query_weight, document_weight
        table, self._n_levels = np.zeros((1, 1)), 1
        if level_weights is None:
            self.code = torch.unique(y, return_inverse=True)[1].to(torch.int32)
        else:
            self.code, self._n_levels = y.to(torch.int32), len(level_weights)
            lower = np.tril(level_weights, -1)
            table = lower + lower.T
        self._level_weights, self._has_table = level_weights, level_weights is not None
        self.table = lists.moved(table, np.float64)
        self.normaliser = self._pairs()

    def evaluate(self, s: Any) -> DeviceValue:
        """Sum and gradient at the scores ``s``."""
        gradient, by_query = self.sums(s)
        return self.value(s, gradient, by_query, by_query.sum(0).tolist())

    def value(self, s: Any, gradient: Any, by_query: Any, totals: Any) -> DeviceValue:
        """What :meth:`sums` found, with the totals of its second part."""
        slack, value, size = totals
        return DeviceValue(s, float(value), float(slack), float(size), gradient, by_query)

    def sums(self, s: Any) -> tuple[Any, Any]:
        """The gradient, and Σ ωξ, Σ ωξ² and Σ |gradient| of each query; nothing is waited for."""
        gradient, found = torch.zeros_like(s), []
        for tasks in self.lists.tasks:
            sums = self._room(tasks, 3)
            self._run(kernels.squared_hinge, tasks, (s,), (gradient, sums))
            found.append(sums)
        return gradient, self.lists.of_queries(found)

    def line(self, s: Any, d: Any) -> Callable[[float], tuple[float, float]]:
        """A function of μ: both derivatives of the loss along d at s + μd."""

        def along(step: float) -> tuple[float, float]:
            mu, found = torch.full((1,), step, dtype=torch.float64, device=s.device), []
            for tasks in self.lists.tasks:
                sums = self._room(tasks, 2)
                self._run(kernels.squared_hinge_along, tasks, (s, d, mu), (sums,))
                found.append(sums)
            total = torch.zeros(2, dtype=torch.float64, device=s.device)
            for sums in found:
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

    def part(self, lists: Lists, rows: Any, queries: Any) -> DeviceSquaredHinge:
        """The loss of some lists: their rows and their numbers."""
        mass = None if self.mass is None else self.mass[rows]
        return DeviceSquaredHinge(
            self.code[rows], lists, self.query_weight[queries], mass, self._level_weights
        )

    def _pairs(self) -> float:
        total = 0.0
        for tasks in self.lists.tasks:
            sums = self._room(tasks, 1)
            self._run(kernels.total_weights, tasks, (), (sums,))
            total += float(sums.sum())
        return total

    def _run(self, kernel: Any, tasks: Tasks, scores: tuple[Any, ...], out: tuple[Any, ...]) -> None:
        kernel[(len(tasks),)](
            *scores, *self.rows, tasks.query, tasks.row, *out,
            ROWS=tasks.rows, COLUMNS=COLUMNS, **self.options,
            num_warps=max(1, tasks.rows * COLUMNS // CELLS),
        )  # fmt: skip

    @property
    def rows(self) -> tuple[Any, ...]:
        """What kernels are told of the documents."""
        mass = self.query_weight if self.mass is None else self.mass
        return (self.code, mass, self.table, self._n_levels, self.lists.offsets, self.query_weight)

    @property
    def options(self) -> dict[str, bool]:
        return {"HAS_MASS": self.mass is not None, "HAS_TABLE": self._has_table}

    def _room(self, tasks: Tasks, width: int) -> Any:
        return torch.empty((len(tasks), width), dtype=torch.float64, device=self.lists.device)


WIDTHS = (16, 32, 64, 128)  # columns of a block
PROGRAMS = 1056  # sums of lists that are added up at the end: 8 for each multiprocessor of a large GPU
HESSIAN_COLUMNS = 32  # documents that a program compares with its own at a time, where it does not have all


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
        """The blocks (left, right) of ``width`` columns that the lists add (cuts × blocks × …)."""
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
            ROWS=tasks.rows, COLUMNS=HESSIAN_COLUMNS, WIDTH=width, WHOLE=tasks.whole, **loss.options,
            num_warps=8 if tasks.rows * width >= 8192 else 4,
            num_stages=1 if tasks.whole and width > 32 else 3,
        )  # fmt: skip
        return summed(out, [len(part) - 1 for part in edges])


def _shares(weights: Any) -> tuple[Any, float]:
    """Weights as shares of the largest, in float32, and that one; 1 if all are 0."""
    largest = float(weights.max()) or 1.0
    return (weights / largest).to(torch.float32), largest


def _blocks(n_columns: int) -> tuple[int, int]:
    """How many blocks of which width hold so many columns."""
    width = next((one for one in WIDTHS if one >= n_columns), WIDTHS[-1])
    return -(-n_columns // width), width
