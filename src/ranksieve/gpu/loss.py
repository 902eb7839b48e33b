"""The squared hinge on a GPU: short and long lists, and its Hessians."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray, IntArray
from ranksieve.gpu import kernels
from ranksieve.gpu.features import DeviceFeatures, Lists, Tasks, parts_between, summed
from ranksieve.gpu.kernels import hessian_blocks, running_sums

BLOCK = 1024  # entries that a running sum takes at a time


@dataclass(frozen=True)
class Bit:
    """The documents in groups that agree above a bit: which are uppers, their groups, and where these start.

    ``before`` puts the documents in the order in which ties are to stand: lowers before uppers.
    """

    before: Any
    upper: Any
    group: Any
    starts: Any


class LongLists:
    """The lists that are too long for a look at every pair."""

    def __init__(self, lists: Lists, code: Any, query_weight: Any, mass: Any) -> None:
        self.device, self._n_queries = lists.device, lists.n_queries
        sizes, starts = lists.sizes[lists.long], lists.host_offsets[lists.long]
        self.rows = lists.moved(np.repeat(starts, sizes) + _counted(sizes))
        self._query = lists.moved(np.repeat(np.arange(len(sizes)), sizes))
        self.number = lists.moved(lists.long)
        self._lengths = lists.moved(sizes)
        self.mass = None if mass is None else mass[self.rows]
        self._weight = query_weight[self.number]
        self.row_weight = self._weight[self._query]
        if self.mass is not None:
            self.row_weight = self.row_weight * self.mass
        codes = code[self.rows].long()
        self._codes = codes.cpu().numpy()
        n_bits = int(self._codes.max()).bit_length()
        self.bits = [self._bit(codes, bit, n_bits) for bit in range(n_bits)]

    def _bit(self, codes: Any, bit: int, n_bits: int) -> Bit:
        upper = ((codes >> bit) & 1).bool()
        group = (self._query << n_bits) + (codes >> (bit + 1))
        _, group, counts = torch.unique(group, return_inverse=True, return_counts=True)
        starts = torch.zeros(len(counts) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(counts, 0, out=starts[1:])
        before = torch.sort(upper.to(torch.uint8), stable=True)[1]
        return Bit(before, upper, group, starts)

    def evaluate(self, s: Any, gradient: Any, by_query: Any) -> None:
        """Put the gradient, and Σ ωξ, Σ ωξ² and Σ |gradient| of each list."""
        t = self._centred(s[self.rows])
        g, slack = torch.zeros_like(t), torch.zeros_like(t)
        ones = self._masses(t)
        for bit, order in self._orders(t):
            (count, sum_t) = self._partners(bit, order, torch.stack([ones, ones * t]))
            sign = torch.where(bit.upper, 1.0, -1.0)
            # Σ_j ξ: of an upper 1 − t_i + t_j, of a lower 1 + t_i − t_j
            of_rows = count * (1.0 - sign * t) + sign * sum_t
            g -= 2.0 * sign * of_rows
            slack += torch.where(bit.upper, of_rows, 0.0)
        g, slack = self.row_weight * g, self.row_weight * slack
        gradient[self.rows] = g
        found = torch.stack([slack, slack + 0.5 * t * g, g.abs()], 1)  # Σ ξ² = Σ ξ − Σ ξ(t_i − t_j)
        sums = torch.segment_reduce(found, "sum", lengths=self._lengths, unsafe=True)
        sums[:, 1].clamp_(min=0.0)
        by_query[self.number] = sums

    def product(self, s: Any, v: Any, product: Any) -> None:
        """Put Sv."""
        product[self.rows] = self.products(s, v[self.rows][None, :])[0]

    def products(self, s: Any, V: Any) -> Any:
        """S times each row of V, whose entries are the documents of long lists."""
        t = self._centred(s[self.rows])
        ones, total = self._masses(t), torch.zeros_like(V)
        for bit, order in self._orders(t):
            count, *sums = self._partners(bit, order, torch.cat([ones[None, :], ones * V]))
            total += count * V - torch.stack(sums)
        return 2.0 * self.row_weight * total

    def along(self, s: Any, d: Any) -> Any:
        """Both derivatives along d, at the scores s."""
        gradient = torch.zeros_like(s)
        self.evaluate(s, gradient, torch.zeros((self._n_queries, 3), dtype=s.dtype, device=s.device))
        moved = d[self.rows]
        curved = self.products(s, moved[None, :])[0]
        return torch.stack([gradient[self.rows] @ moved, moved @ curved])

    def first_of(self, V: Any) -> Any:
        """What the first document of its list has, for each document; V has a column for each of them."""
        return V[:, torch.cumsum(self._lengths, 0) - self._lengths][:, self._query]

    def pairs(self) -> FloatArray:
        """The weight of the pairs of each list."""
        query, mass = self._query.cpu().numpy(), None if self.mass is None else self.mass.cpu().numpy()
        counts = np.zeros((len(self._weight), int(self._codes.max()) + 1))
        np.add.at(counts, (query, self._codes), 1.0 if mass is None else mass)
        pairs = (counts[:, 1:] * np.cumsum(counts, axis=1)[:, :-1]).sum(axis=1)
        return np.asarray(pairs * self._weight.cpu().numpy())

    def _centred(self, s: Any) -> Any:
        """Scores less the mean of their list, so that their sums keep their digits."""
        means = torch.segment_reduce(s, "mean", lengths=self._lengths, unsafe=True)
        return s - means[self._query]

    def _masses(self, t: Any) -> Any:
        return torch.ones_like(t) if self.mass is None else self.mass

    def _orders(self, t: Any) -> Iterator[tuple[Bit, Any]]:
        """For each bit the documents, group by group, in the order of their scores, less 1 for uppers."""
        for bit in self.bits:
            keys = (t - bit.upper.to(t.dtype))[bit.before]
            order = bit.before[torch.sort(keys, stable=True)[1]]
            yield bit, order[torch.sort(bit.group[order], stable=True)[1]]

    def _partners(self, bit: Bit, order: Any, values: Any) -> Any:
        """Of each row of values the sums over the active partners of each document."""
        upper, sorted_values = bit.upper[order], values[:, order].contiguous()
        of_lowers, of_uppers = (torch.where(side, sorted_values, 0.0) for side in (~upper, upper))
        before, down_to = self._running(of_uppers, bit.starts), self._running(of_lowers, bit.starts)
        group = bit.group[order]
        behind = down_to[:, bit.starts[1:] - 1][:, group] - down_to
        sums = torch.empty_like(values)
        sums[:, order] = torch.where(upper, behind, before)
        return sums

    def _running(self, values: Any, starts: Any) -> Any:
        out = torch.empty_like(values)
        running_sums[(len(starts) - 1, len(values))](values, starts, out, values.shape[1], BLOCK=BLOCK)
        return out


def _counted(sizes: Any) -> Any:
    """0, 1, 2, … for each of several lengths."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


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


WIDTHS = (16, 32, 64, 128)  # columns of a block
PROGRAMS = 1056  # sums of lists that are added up at the end: 8 for each multiprocessor of a large GPU
HESSIAN_COLUMNS = 32  # documents that a program compares with its own at a time, where it does not have all
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
            ROWS=tasks.rows, COLUMNS=HESSIAN_COLUMNS, WIDTH=width, WHOLE=tasks.whole, **loss.options,
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
