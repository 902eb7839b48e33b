"""The squared hinge of lists on a GPU: value, gradient and Hessian in the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray
from ranksieve.device.kernels import pairs as kernels
from ranksieve.device.lists import Lists, Tasks
from ranksieve.device.long_lists import LongLists

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
        self.long = None
        if len(lists.long):
            self.long = LongLists(lists, self.code, query_weight, document_weight)
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
        by_query = self.lists.of_queries(found) if found else self._nothing(3)
        if self.long is not None:
            self.long.evaluate(s, gradient, by_query)
        return gradient, by_query

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
            if self.long is not None:
                total += self.long.along(s + step * d, d)
            slope, curvature = total.tolist()
            return slope, curvature

        return along

    def product(self, at: DeviceValue, v: Any) -> Any:
        """Sv, S the (generalised) Hessian in the scores."""
        product = torch.zeros_like(v)
        for tasks in self.lists.tasks:
            self._run(kernels.hessian_product, tasks, (at.s, v), (product,))
        if self.long is not None:
            self.long.product(at.s, v, product)
        return product

    def part(self, lists: Lists, rows: Any, queries: Any) -> DeviceSquaredHinge:
        """The loss of some lists: their rows and their numbers."""
        mass = None if self.mass is None else self.mass[rows]
        return DeviceSquaredHinge(
            self.code[rows], lists, self.query_weight[queries], mass, self._level_weights
        )

    def _pairs(self) -> float:
        """The weight of all pairs."""
        total = 0.0
        for tasks in self.lists.tasks:
            sums = self._room(tasks, 1)
            self._run(kernels.total_weights, tasks, (), (sums,))
            total += float(sums.sum())
        return total if self.long is None else total + float(self.long.pairs().sum())

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
        """Which weights there are."""
        return {"HAS_MASS": self.mass is not None, "HAS_TABLE": self._has_table}

    def _room(self, tasks: Tasks, width: int) -> Any:
        return torch.empty((len(tasks), width), dtype=torch.float64, device=self.lists.device)

    def _nothing(self, width: int) -> Any:
        return torch.zeros((self.lists.n_queries, width), dtype=torch.float64, device=self.lists.device)
