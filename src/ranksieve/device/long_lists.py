"""Pairs of long lists by sorting: O(n log n) for each bit of the labels.

Two labels differ first in one of their bits, from the highest down. So the pairs are those of documents that
have the same bits above some bit, and 1 (the upper) or 0 (the lower) there. In the order of the scores, less
1 for uppers, the active partners of an upper are the lowers behind it, and those of a lower the uppers
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray
from ranksieve.device.kernels.scans import running_sums
from ranksieve.device.lists import Lists

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
