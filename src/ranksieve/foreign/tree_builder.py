"""Build trees node by node."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ranksieve.foreign.parts import LEAF, Tree


@dataclass
class TreeBuilder:
    """Nodes in the order they are added; the first is the root."""

    feature: list[int] = field(default_factory=list)
    number: list[float] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)

    def node(self, parent: int | None) -> int:
        """Add a node below ``parent``, left before right."""
        self.feature.append(LEAF)
        self.number.append(math.nan)
        self.children.append([])
        if parent is not None:
            self.children[parent].append(len(self.feature) - 1)
        return len(self.feature) - 1

    def tree(self) -> Tree:
        """The finished tree: ``number`` is the threshold of a split and the value of a leaf."""
        number = np.array(self.number)
        pairs = np.array([children or [0, 0] for children in self.children], dtype=np.int64)
        return Tree(np.array(self.feature), number, pairs[:, 0], pairs[:, 1], number)
