"""The proof of a bound: a tree of regions, each with the weights whose dual point bounds it.

A node splits the sets of its region by one feature: those that hold it, those that lack it. Whoever has the
data can check the proof without searching: one evaluation of the loss per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import DataError
from ranksieve.subset.allowed import Region
from ranksieve.subset.relaxation import Bounds, Relaxation

HOLDS, LACKS, AGAIN = 0, 1, 0  # children of a node; without a split the first has the node's own region
TOLERANCE = 1e-10  # share of the bound by which other sums of the same terms may differ


@dataclass
class Node:
    """A region of the search, the weights that bound it, the feature that splits it, and its children."""

    columns: list[int]
    weights: list[float]
    split: int | None = None
    children: list[int | None] = field(default_factory=lambda: [None, None])


@dataclass
class Proof:
    """Nodes by their numbers; the first has all allowed sets."""

    nodes: list[Node] = field(default_factory=list)

    def add(self, w: FloatArray, parent: tuple[int, int] | None = None) -> int:
        """Enter a node that weights bound, as the child of (a node, side); its number."""
        used = np.flatnonzero(w)
        self.nodes.append(Node(used.tolist(), w[used].tolist()))
        if parent is not None:
            self.nodes[parent[0]].children[parent[1]] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def to_lines(self) -> list[str]:
        """One line per node: feature of the split, children that hold and lack it, then column:weight."""
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
                split, holds, lacks = (None if word == "-" else int(word) for word in tree)
                pairs = [entry.split(":") for entry in rest.split()]
                columns, weights = [int(j) for j, _ in pairs], [float(w) for _, w in pairs]
            except ValueError:
                reason = f"line {number + 1} of the proof is damaged: {line[:40]!r}"
                raise DataError(None, None, reason) from None
            proof.nodes.append(Node(columns, weights, split, [holds, lacks]))
        return proof


def proven_bound(proof: Proof, relaxation: Relaxation, region: Region, claimed: float) -> float:
    """The least bound that the proof gives over all allowed sets of a region, up to ``claimed``.

    At each node, features are dropped with which, and kept without which, a set cannot be below ``claimed``.
    """
    n_features, target, least = relaxation.objective.n_features, claimed * (1.0 - TOLERANCE), np.inf
    if any(not 0 <= j < n_features for node in proof.nodes for j in (*node.columns, node.split or 0)):
        return 0.0  # not of these data
    pending, seen = [(0, region, 0.0)], set()
    while pending:
        number, region, inherited = pending.pop()
        if number in seen or not 0 <= number < len(proof.nodes):
            return 0.0  # no tree
        seen.add(number)
        node, region = proof.nodes[number], relaxation.allowed.narrowed(region)
        w = np.zeros(n_features)
        w[node.columns] = node.weights
        bounds = relaxation.bounds(relaxation.objective.evaluate(w), region).at_least(inherited)
        left, closed = screened(region, bounds, target)
        parts = (
            [
                (HOLDS, left.holding(node.split), float(bounds.joined[node.split])),
                (LACKS, left.lacking(node.split), float(bounds.left[node.split])),
            ]
            if node.split is not None
            else [(AGAIN, left, bounds.least)]
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


def screened(region: Region, bounds: Bounds, target: float) -> tuple[Region, float]:
    """(the sets of a region that may be below ``target``, a bound of the others).

    Features leave with which no set is below it, and are held without which none is.
    """
    never, always = region.free & (bounds.joined >= target), region.free & (bounds.left >= target)
    closed = np.concatenate([bounds.joined[never], bounds.left[always]])
    return region.lacking(never).holding(always & ~never), float(np.min(closed, initial=np.inf))
