"""The atoms of Frank–Wolfe and the moves between them, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.objective import make_objective
from ranksieve.penalties import L1Ball
from ranksieve.solvers.frank_wolfe import Atoms, away, classic, pairwise
from tests.conftest import random_dataset
from tests.solving import frank_wolfe


def atoms():
    """w = (1, −2, 0) in a ball of radius 4: weights ¼ and ½ of two atoms, and ¼ of the origin."""
    return Atoms.of(np.array([1.0, -2.0, 0.0]), 4.0)


def weights(of):
    return [*of.plus.tolist(), *of.minus.tolist(), of.origin]


def applied(move, step):
    """Weights of the atoms after a step."""
    after = atoms()
    move.apply(after, step)
    return weights(after)


def test_round_trip_of_atoms():
    assert weights(atoms()) == [0.25, 0.0, 0.0, 0.0, 0.5, 0.0, 0.25]
    np.testing.assert_array_equal(atoms().w, [1.0, -2.0, 0.0])
    assert Atoms.of(np.array([3.0, -1.0]), 4.0).origin == 0.0
    assert Atoms.of(np.array([3.0, -1.0 - 1e-9]), 4.0).origin == 0.0


@pytest.mark.parametrize(
    ("g", "worst"),
    [
        (
            [1.0, 1.0, 5.0],
            (0, 1.0, 0.25),
        ),  # slopes: 4 of +0, −4 of −1, 0 of the origin; feature 2 is not in use
        ([0.125, 1.0, 5.0], (0, 1.0, 0.25)),  # slope ½ of +0
        ([1.0, -2.0, 0.0], (1, -1.0, 0.5)),
        ([-1.0, 1.0, 0.0], (-1, 0.0, 0.25)),
        ([1.0, -1.0, 0.0], (0, 1.0, 0.25)),  # the first of two equal slopes
        ([1.0, -1.0 - 1e-12, 0.0], (0, 1.0, 0.25)),
        ([1.0, -1.0 - 1e-6, 0.0], (1, -1.0, 0.5)),
    ],
)
def test_the_worst_atom_in_use(g, worst):
    assert atoms().worst(np.array(g)) == worst


def test_an_origin_of_weight_zero_is_not_in_use():
    assert Atoms.of(np.array([3.0, -1.0]), 4.0).worst(np.array([-1.0, 2.0])) == (0, 1.0, 0.75)


def test_entries_of_atoms():
    assert atoms().vertex(2, -1.0) == {2: -4.0}
    assert atoms().vertex(1, 1.0, -1.0) == {1: -4.0}
    assert atoms().vertex(-1, 0.0) == {}


def test_atoms_with_weights_below_rounding_are_removed():
    of = atoms()
    of.add(0, 1.0, -0.25 + 1e-16)
    of.add(1, -1.0, -0.25)
    of.add(-1, 0.0, -0.25 + 2e-15)
    assert weights(of)[:6] == [0.0, 0.0, 0.0, 0.0, 0.25, 0.0]
    assert of.origin > 0.0


def test_the_classic_move():
    move = classic(atoms(), np.array([1.0, 1.0, 5.0]))
    assert (dict(move.amounts), move.share, move.limit) == ({2: -4.0}, -1.0, 1.0)
    np.testing.assert_array_equal(move.direction(atoms().w), [-1.0, 2.0, -4.0])
    assert applied(move, 0.5) == [0.125, 0.0, 0.0, 0.0, 0.25, 0.5, 0.125]
    up = classic(atoms(), np.array([1.0, -3.0, 3.0]))  # the first of two equal slopes
    assert dict(up.amounts) == {1: 4.0}


def test_the_pairwise_move():
    move = pairwise(atoms(), np.array([1.0, 1.0, 5.0]))
    assert (dict(move.amounts), move.share, move.limit) == ({2: -4.0, 0: -4.0}, 0.0, 0.25)
    assert applied(move, 0.125) == [0.125, 0.0, 0.0, 0.0, 0.5, 0.125, 0.25]
    across = pairwise(atoms(), np.array([3.0, 1.0, 0.0]))  # from +0 to −0
    assert dict(across.amounts) == {0: -8.0}
    assert applied(across, 0.25) == [0.0, 0.0, 0.0, 0.25, 0.5, 0.0, 0.25]


def test_the_away_move():
    g = np.array([0.0, -2.0, 1.0])  # slopes: towards +1 −8 − 4, away from −1 4 − 8; the first is steeper
    assert away(atoms(), g).share == -1.0
    g = np.array([2.0, -3.0, 0.0])  # slopes: towards +1 −12 + 9.5, away from +0 −9.5 − 8
    near = Atoms.of(np.array([0.5, 3.5, 0.0]), 4.0)
    move = away(near, g)
    assert (dict(move.amounts), move.share) == ({0: -4.0}, 1.0)
    assert move.limit == 0.125 / 0.875
    np.testing.assert_array_equal(move.direction(near.w), [-3.5, 3.5, 0.0])
    move.apply(near, 0.0625)
    assert weights(near) == [0.125 * 1.0625 - 0.0625, 0.875 * 1.0625, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_the_only_atom_has_no_away_move():
    """All weight is on feature 1; moving it to feature 0 would not decrease the objective."""
    only = Atoms.of(np.array([0.0, 4.0]), 4.0)
    move = away(only, np.array([-1.0, -1.0 - 1e-12]))
    assert (dict(move.amounts), move.share, move.limit) == ({0: 4.0}, -1.0, 1.0)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_a_start_outside_the_ball_is_projected(scale):
    begun, ball, start = [], L1Ball(2.0), scale * np.array([1.0, -2.0, 0.0, 0.5, 0.0])
    objective = make_objective(random_dataset(seed=3, n_queries=6))
    frank_wolfe(objective, ball, start, max_iter=1, callback=lambda n, w, *_: begun.append(w.copy()))
    np.testing.assert_allclose(begun[0], ball.prox(start, 1.0), rtol=1e-14)
