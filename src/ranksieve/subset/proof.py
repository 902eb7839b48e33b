"""The proof of a bound: a tree of regions, each with the weights whose dual point bounds it.

A node splits the sets of its region by one feature into those with it and those without it. Given the data,
the proof can be checked without a search: one evaluation of the loss per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.short_repr import ShortRepr
from ranksieve.errors import DataError
from ranksieve.subset.allowed import Region
from ranksieve.subset.relaxation import Bounds, Relaxation

WITH, WITHOUT, SAME = 0, 1, 0  # children of a node; without a split, the first one has the region of the node
BOUND_ROUNDING = 1e-10  # relative difference between bounds summed in different orders


@dataclass
class Node:
    """A region of the search: the weights that bound it, the feature that splits it, and its children."""

    columns: list[int]
    weights: list[float]
    split: int | None = None
    children: list[int | None] = field(default_factory=lambda: [None, None])


@dataclass(repr=False)
class Proof(ShortRepr):
    """The nodes of the tree; the region of the first one is all allowed sets."""

    nodes: list[Node] = field(default_factory=list)

    def add(self, w: FloatArray, parent: tuple[int, int] | None = None) -> int:
        """Add a node bounded by the weights w as a child of (node, side); return its number."""
        used = np.flatnonzero(w)
        self.nodes.append(Node(used.tolist(), w[used].tolist()))
        if parent is not None:
            self.nodes[parent[0]].children[parent[1]] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def to_lines(self) -> list[str]:
        """One line per node: feature of the split, children with and without it, then column:weight."""
        return [
            " ".join(
                [
                    *("-" if number is None else str(number) for number in (node.split, *node.children)),
                    *(f"{j}:{w!r}" for j, w in zip(node.columns, node.weights, strict=True)),
                ]
            )
            for node in self.nodes
        ]

    @classmethod
    def from_lines(cls, lines: Sequence[str]) -> Proof:
        """The inverse of :meth:`to_lines`."""
        proof = cls()
        for number, line in enumerate(lines):
            try:
                *tree, rest = line.split(" ", 3) if line.count(" ") > 2 else [*line.split(" "), ""]
                split, with_it, without_it = (None if word == "-" else int(word) for word in tree)
                pairs = [entry.split(":") for entry in rest.split()]
                columns, weights = [int(j) for j, _ in pairs], [float(w) for _, w in pairs]
            except ValueError:
                reason = f"line {number + 1} of the proof is damaged: {line[:40]!r}"
                raise DataError(None, None, reason) from None
            proof.nodes.append(Node(columns, weights, split, [with_it, without_it]))
        return proof


def proven_bound(proof: Proof, relaxation: Relaxation, region: Region, claimed: float) -> float:
    """Lower bound over all allowed sets of a region according to the proof, at most ``claimed``.

    At each node, a feature is excluded if no set with it, and included if no set without it, can be below
    ``claimed``.
    """
    n_features, target, least = relaxation.objective.n_features, claimed * (1.0 - BOUND_ROUNDING), np.inf
    if any(not 0 <= j < n_features for node in proof.nodes for j in (*node.columns, node.split or 0)):
        return 0.0  # a proof for other data
    pending, seen = [(0, region, 0.0)], set()
    while pending:
        number, region, inherited = pending.pop()
        if number in seen or not 0 <= number < len(proof.nodes):
            return 0.0  # not a tree
        seen.add(number)
        node, region = proof.nodes[number], relaxation.allowed.narrow(region)
        w = np.zeros(n_features)
        w[node.columns] = node.weights
        bounds = relaxation.bounds(relaxation.objective.evaluate(w), region).at_least(inherited)
        remaining, closed = screen(region, bounds, target)
        parts = (
            [
                (WITH, remaining.with_features(node.split), float(bounds.with_each[node.split])),
                (WITHOUT, remaining.without_features(node.split), float(bounds.without_each[node.split])),
            ]
            if node.split is not None
            else [(SAME, remaining, bounds.least)]
        )
        if bounds.least >= target:
            closed, parts = bounds.least, []
        least = min(least, closed)
        for side, part, bound in parts:
            child = node.children[side]
            if child is None or bound >= target:
                least = min(least, bound)
            else:
                pending.append((child, part, bound))
    return float(min(least, claimed))


def screen(region: Region, bounds: Bounds, target: float) -> tuple[Region, float]:
    """(the sets of a region that may be below ``target``, a lower bound of the others).

    A feature is excluded if no set with it, and included if no set without it, is below ``target``.
    """
    never, always = region.free & (bounds.with_each >= target), region.free & (bounds.without_each >= target)
    closed = np.concatenate([bounds.with_each[never], bounds.without_each[always]])
    remaining = region.without_features(never).with_features(always & ~never)
    return remaining, float(np.min(closed, initial=np.inf))
