"""Small proof trees computed by hand: lines, remaining regions, and the bound of the tree."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ranksieve.subset.allowed import Region
from ranksieve.subset.proof import Node, Proof, proven_bound, screen
from ranksieve.subset.relaxation import Bounds
from tests.refusals import refused_data

ALL = Region(np.zeros(3, dtype=bool), np.ones(3, dtype=bool))
LINES = ["1 1 2 0:0.5 2:-2.0", "- - -", "- - - 1:1e-05"]


def relaxation_with(*by_node):
    """A relaxation whose bounds (total, with, without each feature) depend on the weight of feature 0."""
    return SimpleNamespace(
        objective=SimpleNamespace(n_features=3, evaluate=lambda w: w),
        allowed=SimpleNamespace(narrow=lambda region: region),
        bounds=lambda w, region: Bounds(*(np.array(part) for part in by_node[int(w[0])])),
    )


def proven(nodes, *by_node, claimed=10.0):
    return proven_bound(Proof(nodes), relaxation_with(*by_node), ALL, claimed)


def node(number, split=None, holds=None, lacks=None):
    return Node([0], [float(number)], split, [holds, lacks])


def test_round_trip_of_lines():
    proof = Proof()
    assert proof.add(np.array([0.5, 0.0, -2.0])) == 0
    assert proof.add(np.zeros(3), (0, 0)) == 1
    assert proof.add(np.array([0.0, 1e-5, 0.0]), (0, 1)) == 2
    proof.nodes[0].split = 1
    assert proof.to_lines() == LINES
    assert Proof.from_lines(LINES) == proof
    assert Proof.from_lines(["- - - 1:2.5"]).nodes == [Node([1], [2.5])]


@pytest.mark.parametrize("damaged", ["1 2", "1 1 2 3", "a 1 2", "1 1 2 0:x", "1 1 2 0:1:2"])
def test_a_damaged_line_is_named(damaged):
    with refused_data() as info:
        Proof.from_lines([LINES[0], damaged])
    assert f"line 2 of the proof is damaged: {damaged!r}" in info.value.reason


def test_screening_by_a_bound():
    """Feature 0 must be excluded, feature 1 included, and feature 2 is free."""
    left, closed = screen(ALL, Bounds(1.0, np.array([8.0, 2.0, 7.9]), np.array([2.0, 8.0, 1.0])), 8.0)
    assert left.inside.tolist() == [False, True, False]
    assert left.free.tolist() == [False, False, True]
    assert closed == 8.0
    _, closed = screen(ALL, Bounds(1.0, np.zeros(3), np.zeros(3)), 8.0)
    assert closed == np.inf
    both, closed = screen(ALL, Bounds(1.0, np.array([9.0, 0.0, 0.0]), np.array([12.0, 0.0, 0.0])), 8.0)
    assert (both.inside.tolist(), both.free.tolist(), closed) == ([False] * 3, [False, True, True], 9.0)


LOW = (1.0, [2.0, 3.0, 4.0], [5.0, 6.0, 7.0])
HIGH = (10.0, [10.0] * 3, [10.0] * 3)
SCREENS = (1.0, [11.0, 3.0, 4.0], [5.0, 6.0, 7.0])


@pytest.mark.parametrize(
    ("nodes", "by_node", "bound"),
    [
        ([node(0)], [LOW], 1.0),  # a single node has its own bound
        ([node(0)], [HIGH], 10.0),
        ([node(0)], [(12.0, [12.0] * 3, [12.0] * 3)], 10.0),  # at most the claimed bound
        ([node(0)], [(10.0 - 1e-10, [0.0] * 3, [0.0] * 3)], 10.0 - 1e-10),  # within the tolerance
        ([node(0, 1)], [(10.0 - 1e-10, [11.0] * 3, [12.0] * 3)], 10.0 - 1e-10),
        ([node(0, 1)], [LOW], 3.0),  # split without children: the lower bound of both sides
        ([node(0, 1, holds=1), node(1)], [LOW, HIGH], 6.0),
        ([node(0, 1, lacks=1), node(1)], [LOW, HIGH], 3.0),
        ([node(0, 1, 1, 2), node(1), node(2)], [LOW, HIGH, HIGH], 10.0),
        ([node(0, 1, 1, 2), node(1), node(2)], [LOW, HIGH, LOW], 6.0),  # bounds of the parent are inherited
        ([node(0, 1, 1, 2), node(1), node(2)], [LOW, (4.0, [4.0] * 3, [4.0] * 3), HIGH], 4.0),
        ([node(0, None, 1), node(1)], [LOW, HIGH], 10.0),  # the same region again
        ([node(0, None, None, 1), node(1)], [LOW, HIGH], 1.0),
        ([node(0, None, 1), node(1)], [SCREENS, (12.0, [12.0] * 3, [12.0] * 3)], 10.0),
        ([node(0, 0, 0, 0)], [LOW], 0.0),  # a cycle
        ([node(0, 1, 1, 1), node(1)], [LOW, HIGH], 0.0),  # not a tree
        ([node(0, 1, 1, 2), node(1)], [LOW, HIGH], 0.0),  # unknown node
        ([node(0, 1, 1, -1), node(1)], [LOW, HIGH], 0.0),
        ([], [], 0.0),
        ([node(0, 3)], [LOW], 0.0),  # unknown feature
        ([node(0, -1)], [LOW], 0.0),
        ([Node([3], [1.0])], [LOW], 0.0),
        ([Node([0, -1], [0.0, 1.0])], [LOW], 0.0),
    ],
)
def test_the_bound_of_a_tree(nodes, by_node, bound):
    assert proven(nodes, *by_node) == bound


def test_regions_of_children():
    """Feature 2 is excluded; the first child includes feature 1, the other one excludes it."""
    regions = []

    def bounds(w, region):
        regions.append((region.inside.tolist(), region.free.tolist()))
        values = (1.0, [2.0, 3.0, 11.0], [5.0, 6.0, 7.0]) if len(regions) == 1 else HIGH
        return Bounds(*(np.array(part) for part in values))

    relaxation = relaxation_with(LOW)
    relaxation.bounds = bounds
    tree = [node(0, 1, 1, 2), node(0), node(0)]
    assert proven_bound(Proof(tree), relaxation, ALL, 10.0) == 10.0
    no, yes = False, True
    assert regions[0] == ([no] * 3, [yes] * 3)
    assert sorted(regions[1:]) == [([no] * 3, [yes, no, no]), ([no, yes, no], [yes, no, no])]
