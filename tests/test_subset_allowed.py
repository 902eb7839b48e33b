"""Sets within limits: small examples computed by hand, and largest sums against all sets of a region."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from ranksieve.data.budget import Budget
from ranksieve.data.costs import ColumnCosts
from ranksieve.subset.allowed import AllowedSets, Region, _golden


class ExactBudget(Budget):
    """A budget without tolerance for rounding; the costs in these tests are exact."""

    @property
    def limit(self):
        return np.inf if self.max_cost is None else self.max_cost


def sets_of(max_features, costs=None, max_cost=None):
    return AllowedSets(ExactBudget(max_features, max_cost, costs))


COSTS = ColumnCosts(np.array([0, 0, 1, 2, 3]), np.array([2.0, 1.0, 4.0, 0.0]), ("pair", "b", "c", "free"))
DEAR = sets_of(3, COSTS, 5.0)


def region(inside="", free="01234"):
    return Region(*(np.isin(np.arange(5), [int(j) for j in part]) for part in (inside, free)))


def test_regions_by_hand():
    here = region("0", "1234")
    for actual, inside, free in (
        (here.with_features(2), "02", "134"),
        (here.without_features([1, 2]), "0", "34"),
    ):
        np.testing.assert_array_equal(actual.inside, region(inside).inside)
        np.testing.assert_array_equal(actual.free, region(free=free).free)
    np.testing.assert_array_equal(here.free, region(free="1234").free)  # not modified


def test_slots_and_costs_by_hand():
    here = region("0", "1234")
    assert (DEAR.slots(here), DEAR.remaining_cost(here)) == (2, 3.0)
    np.testing.assert_array_equal(DEAR.added_costs(here), [0.0, 0.0, 1.0, 4.0, 0.0])
    assert sets_of(3).remaining_cost(here) == np.inf
    np.testing.assert_array_equal(sets_of(3).added_costs(here), np.zeros(5))


@pytest.mark.parametrize(
    ("allowed", "inside", "free", "left"),
    [
        (sets_of(3, COSTS, 3.0), "0", "1234", "124"),  # 1 is already paid, 3 is too expensive
        (sets_of(3, COSTS, 6.0), "0", "1234", "1234"),  # all are affordable
        (sets_of(1, COSTS, 9.0), "0", "1234", ""),  # the set is full
        (sets_of(2), "0", "1234", "1234"),
        (sets_of(1), "0", "1234", ""),
    ],
)
def test_narrowing_regions(allowed, inside, free, left):
    narrowed = allowed.narrow(region(inside, free))
    np.testing.assert_array_equal(narrowed.free, region(free=left).free)
    np.testing.assert_array_equal(narrowed.inside, region(inside).inside)


@pytest.mark.parametrize(
    ("allowed", "inside", "free", "possible", "fit"),
    [
        (sets_of(2), "01", "", True, True),
        (sets_of(2), "012", "", False, False),
        (sets_of(2), "0", "1", True, True),
        (sets_of(2), "0", "12", True, False),
        (sets_of(5, COSTS, 7.0), "0123", "4", True, True),  # 2 + 1 + 4, exactly the limit
        (sets_of(5, COSTS, 6.9), "0", "1234", True, False),
        (sets_of(5, COSTS, 6.9), "023", "", False, False),
        (sets_of(3, COSTS, 7.0), "023", "", True, True),
    ],
)
def test_feasible_regions_and_regions_where_all_fit(allowed, inside, free, possible, fit):
    assert allowed.is_feasible(region(inside, free)) == possible
    assert allowed.all_fit(region(inside, free)) == fit


def test_sets_are_filled_by_value():
    worth = np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    assert sets_of(3).fill(region("0", "124"), worth).tolist() == [0, 2, 4]
    assert sets_of(5).fill(region("0", "12"), worth).tolist() == [0, 1, 2]
    assert DEAR.fill(region(), worth).tolist() == [2, 3, 4]
    assert sets_of(3, COSTS, 4.0).fill(region(), worth).tolist() == [
        3,
        4,
    ]  # neither 2 nor 1 fits in addition to 3
    assert sets_of(3, COSTS, 6.0).fill(region("0", "1234"), worth).tolist() == [0, 3, 4]


def sums(allowed, here, a):
    """(set, sum) of all allowed sets of a region."""
    inside, free = np.flatnonzero(here.inside), np.flatnonzero(here.free)
    for size in range(len(free) + 1):
        for more in itertools.combinations(free, size):
            chosen = np.array([*inside, *more], dtype=int)
            if len(chosen) <= allowed.max_features and (
                allowed.budget.costs is None or allowed.budget.costs.of(chosen) <= allowed.budget.max_cost
            ):
                yield chosen, float(a[chosen].sum())


@pytest.mark.parametrize("allowed", [sets_of(3), sets_of(2), sets_of(5), sets_of(5, COSTS, 9.0), DEAR])
@pytest.mark.parametrize(("inside", "free"), [("", "01234"), ("1", "0234"), ("13", "024"), ("4", "12")])
def test_the_largest_sums(allowed, inside, free):
    """Exact without costs; with costs upper bounds, which are exact if all features fit."""
    here = allowed.narrow(region(inside, free))
    exact = allowed.budget.costs is None or allowed.all_fit(here)
    for a in np.random.default_rng(7).integers(1, 64, (6, 5)) / 8.0:
        bound, all_sums = allowed.max_sums(a, here), list(sums(allowed, here, a))
        with_each = [max((s for chosen, s in all_sums if j in chosen), default=-np.inf) for j in range(5)]
        without = [max((s for chosen, s in all_sums if j not in chosen), default=-np.inf) for j in range(5)]
        true = np.array([max((s for _, s in all_sums), default=-np.inf), *with_each, *without])
        bounds = np.array([bound.total, *bound.with_each, *bound.without_each])
        assert np.all(bounds >= true - 1e-12)
        if exact:
            np.testing.assert_array_equal(bounds, true)


def test_bounds_within_costs_by_hand():
    """The units {0, 1}, {2}, {3}, {4} have values 6, 1, 8, 1 and costs 2, 1, 4, 0; no limit on features."""
    bound = sets_of(4, COSTS, 5.0).max_sums(np.array([2.0, 4.0, 1.0, 8.0, 1.0]), region())
    assert bound.total == 1.0 + 6.0 + 0.75 * 8.0  # 4, the pair, and the remaining ¾ of 3
    np.testing.assert_array_equal(bound.with_each, [13.0, 13.0, 12.0, 13.0, 13.0])
    np.testing.assert_array_equal(bound.without_each, [11.0, 11.0, 13.0, 13.0, 12.0])


def least_lagrangian(allowed, a):
    """min νk + λB + Σ_u z_u, all ≥ 0, with y_j ≥ a_j − ν and z_u ≥ Σ_{j of u} y_j − λ·price_u."""
    costs, n, m = allowed.budget.costs, len(a), len(allowed.budget.costs.prices)
    worths, units = np.zeros((n, 2 + n + m)), np.zeros((m, 2 + n + m))
    worths[:, 0], worths[:, 2 : 2 + n] = -1.0, -np.eye(n)
    units[:, 1], units[costs.unit, 2 + np.arange(n)], units[:, 2 + n :] = -costs.prices, 1.0, -np.eye(m)
    price = np.concatenate([[allowed.max_features, allowed.budget.max_cost], np.zeros(n), np.ones(m)])
    return linprog(price, np.vstack([worths, units]), np.concatenate([-a, np.zeros(m)])).fun


@pytest.mark.parametrize("max_cost", [3.0, 5.0, 6.0, 9.0])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_bounds_within_costs_are_the_best_lagrangian_bounds(size, max_cost):
    allowed = sets_of(size, COSTS, max_cost)
    everything = region()
    for a in np.random.default_rng(8).exponential(size=(2, 5)):
        assert allowed.max_sums(a, everything).total == pytest.approx(least_lagrangian(allowed, a), rel=1e-7)


def test_infeasible_regions_contain_no_set():
    bound = sets_of(1).max_sums(np.ones(5), region("01", "2"))
    assert bound.total == -np.inf
    np.testing.assert_array_equal((bound.with_each, bound.without_each), np.full((2, 5), -np.inf))


def test_minimum_of_a_convex_function():
    assert _golden(lambda x: (x - 1.25) ** 2, 0.0, 4.0) == pytest.approx(1.25, abs=1e-6)
    assert _golden(lambda x: x, 1.0, 4.0) == pytest.approx(1.0, abs=1e-6)
    assert _golden(lambda x: -x, 1.0, 4.0) == pytest.approx(4.0, abs=1e-6)
