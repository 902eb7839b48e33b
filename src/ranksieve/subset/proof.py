"""The proof of a bound: a tree of regions, each with the weights whose dual point bounds it.

A node splits the sets of its region by one feature: those that hold it, those that lack it. Whoever has the
data can check the proof without searching: one evaluation of the loss per node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.subset.limits import Region
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "columns": [node.columns for node in self.nodes],
            "weights": [node.weights for node in self.nodes],
            "splits": [node.split for node in self.nodes],
            "children": [node.children for node in self.nodes],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Proof:
        """The inverse of :meth:`to_dict`."""
        lists = (content["columns"], content["weights"], content["splits"], content["children"])
        return cls([Node(*entries) for entries in zip(*lists, strict=True)])


def proven_bound(proof: Proof, relaxation: Relaxation, region: Region, claimed: float) -> float:
    """The least bound that the proof gives over all allowed sets of a region, up to ``claimed``.

    At each node, features are dropped with which, and kept without which, a set cannot be below ``claimed``.
    """
    target, least = claimed * (1.0 - TOLERANCE), np.inf
    pending, seen = [(0, region, 0.0)], set()
    while pending:
        number, region, inherited = pending.pop()
        if number in seen or not 0 <= number < len(proof.nodes):
            return 0.0  # no tree
        seen.add(number)
        node, region = proof.nodes[number], relaxation.limits.narrowed(region)
        w = np.zeros(relaxation.objective.n_features)
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
