"""Curves as balanced binary trees, one per feature, which every engine with tree models can run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ranksieve._types import AnyArray
from ranksieve.errors import printable, warn_caller
from ranksieve.export.base import float32, not_exportable

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel, Term

MISSING = float(np.finfo(np.float32).max)
"""Stands for a missing value in trees; the largest float32, so it is on the right of every threshold."""


@dataclass(frozen=True)
class Split:
    """Values below the threshold go left, the others and NaN right."""

    threshold: float
    left: Node
    right: Node

    @property
    def last_left(self) -> float:
        """The largest float32 that goes left, for engines that compare by ≤."""
        return float(str(np.nextafter(np.float32(self.threshold), np.float32(-np.inf))))


Node: TypeAlias = Split | float
"""A split, or the level of a leaf."""


def curve_trees(model: LinearModel, engine: str, *, single: bool) -> list[Node]:
    """A tree for each term of a model of curves; ``single``: with numbers rounded to float32.

    Missing values, NaN or ``MISSING``, lead to a leaf of their own on the right, unless the last level is
    the same.
    """
    lines = [term.name for term in model.terms if term.curve is None]
    if lines or model.preparation.changes_features:
        what = f"the line of {printable(lines[0])}" if lines else "normalisation or filled missing values"
        raise not_exportable(
            f"the model has curves and {what}, and {engine} supports both only in separate models; export to "
            "python or json"
        )
    trees = []
    for term in model.terms:
        assert term.curve is not None
        thresholds = list(term.curve.thresholds)
        levels = [term.weight * level for level in term.curve.levels]
        missing = term.weight * term.curve.missing
        if missing != levels[-1]:
            thresholds.append(MISSING)
            levels.append(missing)
        if single:
            name = printable(term.name)
            thresholds = [float32(threshold, f"a threshold of {name}") for threshold in thresholds]
            levels = [float32(level, f"a level of {name}") for level in levels]
        for low, high in pairwise(thresholds):
            if low >= high:
                raise not_exportable(
                    f"two thresholds of {printable(term.name)} are {low:.9g} in 32-bit numbers; rescale the "
                    "feature"
                )
        trees.append(_balanced(thresholds, levels))
    return trees


def _balanced(thresholds: list[float], levels: list[float]) -> Node:
    """Tree of depth ⌈log₂(number of levels)⌉."""
    if not thresholds:
        return levels[0]
    k = len(thresholds) // 2
    left = _balanced(thresholds[:k], levels[: k + 1])
    return Split(thresholds[k], left, _balanced(thresholds[k + 1 :], levels[k + 1 :]))


def tree_values(node: Node, x: AnyArray) -> AnyArray:
    """Levels of float32 values, compared in float32."""
    if not isinstance(node, Split):
        return np.full(len(x), node)
    left = x < np.float32(node.threshold)
    return np.where(left, tree_values(node.left, x), tree_values(node.right, x))


LEAF = -1


def flattened(root: Node) -> list[tuple[Node, int, int]]:
    """Nodes breadth first, each with the indices of its children, ``LEAF`` if it has none."""
    nodes, children = [root], []
    for node in nodes:  # which grows
        n = len(nodes)
        children.append((n, n + 1) if isinstance(node, Split) else (LEAF, LEAF))
        nodes += [node.left, node.right] if isinstance(node, Split) else []
    return [(node, *pair) for node, pair in zip(nodes, children, strict=True)]


def lowest_score(model: LinearModel) -> float:
    """Lowest score of a model of curves."""
    lowest = model.intercept
    for term in model.terms:
        if term.curve is not None:
            lowest += min(term.weight * level for level in (*term.curve.levels, term.curve.missing))
    return lowest


def notes_on_missing(model: LinearModel, engine: str, reads: str = "reads") -> tuple[str, ...]:
    """Warn, or note, that the engine reads missing values as 0 where that changes the score.

    A warning if the model learned a level for missing values; else the model adds nothing for them.
    """
    differing = [(term.name, term.curve) for term in model.terms if term.curve and differs_from_zero(term)]
    learned = [printable(name) for name, curve in differing if curve.missing]
    if learned:
        warn_caller(
            f"the model learned levels for missing values of {', '.join(learned)}, but {engine} {reads} them "
            f"as 0; give these features the default value {MISSING:.8g}, which leads to their levels"
        )
    unseen = [printable(name) for name, curve in differing if not curve.missing]
    if not unseen:
        return ()
    return (
        f"A missing value of {', '.join(unseen)} adds nothing to the model's score, but {engine} {reads} it "
        "as 0.",
    )


def differs_from_zero(term: Term) -> bool:
    """Whether the level for missing values is not that of 0."""
    curve = term.curve
    return curve is not None and bool(curve(np.zeros(1))[0] != curve.missing)
