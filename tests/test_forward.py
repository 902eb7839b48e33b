"""Forward selection with swaps: against enumeration, budgets, folds."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.choice.families import FOLD_TOL
from ranksieve.choice.folds import Folds
from ranksieve.choice.forward import ForwardSearch, fit_set
from ranksieve.data.budget import Budget
from ranksieve.data.costs import make_costs
from ranksieve.objective import make_objective
from tests.pairs import sqrt_query_weight

DATA = rs.make_ranking(n_queries=40, n_features=9, n_informative=5, docs_per_query=12, random_state=5)
OBJECTIVE = make_objective(DATA)
ANY = Budget(must_not=~OBJECTIVE.varies)


def sets_of(path):
    return [np.flatnonzero(result.w).tolist() for result in path]


def sizes_of(path):
    return [len(chosen) for chosen in sets_of(path)]


def coefs_of(path):
    return np.array([result.w for result in path])


def objectives_of(path):
    return np.array([result.objective for result in path])


def any_of(n_features):
    return Budget(must_not=np.zeros(n_features, dtype=bool))


def search_of(budget=ANY, data=DATA):
    return ForwardSearch(make_objective(data), budget.usable)


def run(budget=ANY, most=5, data=DATA):
    return search_of(budget, data).path(most, budget)


def test_equals_enumeration_of_up_to_three_features():
    path, ridge = run(most=3), search_of().ridge
    for k, objective in enumerate(objectives_of(path), start=1):
        fits = (
            fit_set(OBJECTIVE, columns, np.zeros(9), ridge, None, 1e-10)
            for columns in combinations(range(9), k)
        )
        assert objective <= min(fit.objective for fit in fits) * (1 + 1e-6)


def test_sizes_objectives_and_gaps():
    path = run(most=9)
    assert sizes_of(path) == list(range(1, 10))
    assert (np.diff(objectives_of(path)) < 0).all()
    assert all(result.converged for result in path)
    assert all(result.gap <= 1e-6 * result.objective for result in path)


def test_a_swap_reverses_a_greedy_step():
    """x₂ is the best single feature, x₀ and x₁ together rank perfectly; greedy selection would keep x₂."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600))
    y = (a + b > 0.5).astype(float)
    X = np.column_stack([a, b, 0.8 * (a + b) + 0.7 * rng.normal(size=600)])
    data = rs.Dataset(X, y, np.repeat(np.arange(30), 20))
    assert sets_of(run(data=data, most=2, budget=any_of(3))) == [[2], [0, 1]]


def test_a_backward_pass_finds_features_that_are_good_only_together():
    """x₀ − 3x₁ − 3x₂ ranks perfectly; one or two of these are worse than one or two of x₃, x₄, x₅."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 600))
    noisy = a[:, None] + rng.normal(size=(600, 3))
    X = np.column_stack([a + 3 * b + 3 * c, b, c, noisy])
    data = rs.Dataset(X, (a > 0.5).astype(float), np.repeat(np.arange(30), 20))
    assert sets_of(run(data=data, most=3, budget=any_of(6)))[2] == [0, 1, 2]


def test_near_copies_are_not_selected_together():
    strongest = sets_of(run(most=1))[0][0]
    noise = 1e-3 * np.random.default_rng(1).normal(size=(3, DATA.n_docs))
    copies = DATA.X[:, strongest] + noise
    data = rs.Dataset(np.column_stack([DATA.X, copies.T]), DATA.y, DATA.qid)
    path = run(data=data, most=4, budget=any_of(12))
    for chosen in sets_of(path):
        assert len({strongest, 9, 10, 11} & set(chosen)) <= 1


def test_must_have_features_are_kept():
    path = run(replace(ANY, must_have=np.isin(np.arange(9), (1, 8))), most=4)
    assert sizes_of(path) == [2, 3, 4]
    assert all({1, 8} <= set(chosen) for chosen in sets_of(path))


def test_signs_and_forbidden_features():
    free = run(most=4)[-1].w
    usable = OBJECTIVE.varies.copy()
    usable[np.argmax(np.abs(free))] = False
    coefs = coefs_of(run(Budget(must_not=~usable, signs=-np.sign(free)), most=4))
    assert not coefs[:, ~usable].any()
    assert (coefs * np.sign(free) <= 0).all()


def test_cost_limits_are_respected():
    costs = make_costs({"features": {"*": 1.0}, "groups": {"g": {"cost": 3.0, "features": ["f1", "f2"]}}})
    prices = costs.columns(DATA.feature_names)
    path = run(replace(ANY, costs=prices, max_cost=4.0), most=9)
    assert (prices.of_models(coefs_of(path)) <= 4.0).all()
    assert len(path) >= 4


@pytest.mark.parametrize("most", [0, 1])
def test_no_usable_features(most):
    path = run(Budget(must_not=np.ones(9, dtype=bool)), most=most)
    assert len(path) == 0


def test_a_search_with_cached_sets_has_the_same_result():
    costs = make_costs({"features": {"*": 1.0}, "groups": {"g": {"cost": 3.0, "features": ["f1", "f2"]}}})
    prices = costs.columns(DATA.feature_names)
    search = ForwardSearch(OBJECTIVE, OBJECTIVE.varies)
    for limit in (2.0, 4.0, 5.0):
        for same_cost in (False, True):
            budget = replace(ANY, costs=prices, max_cost=limit, same_cost=same_cost)
            again, fresh = search.path(6, budget), run(budget, most=6)
            assert sets_of(again) == sets_of(fresh)
            np.testing.assert_allclose(coefs_of(again), coefs_of(fresh), rtol=1e-3, atol=1e-5)


def test_the_remaining_budget_is_used():
    """Cheaper features are added even if the best ones exceed the budget."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 30))
    y = (X[:, :26].sum(axis=1) + 0.3 * X[:, 26:].sum(axis=1) > 0).astype(float)
    data = rs.Dataset(X, y, np.repeat(np.arange(20), 20))
    prices = make_costs({f"f{j}": 5.0 if j <= 26 else 0.5 for j in range(1, 31)}).columns(data.feature_names)
    path = run(replace(any_of(30), costs=prices, max_cost=7.0), most=6, data=data)
    assert len(path) == 5
    assert (prices.of_models(coefs_of(path)) <= 7.0).all()


def test_each_fold_is_held_out_of_its_own_selection():
    """The weights without a fold are those of a forward selection on the data without its queries."""
    data = rs.make_ranking(
        n_queries=40, n_features=15, n_informative=5, docs_per_query=12, noise=1.5, random_state=8
    )
    ranker = rs.SparseRanker(5, families=("forward",), cv=4, normalise="none").fit(data)
    family, folds = ranker.choice_.families[0], Folds(data, 4, 6)
    budget, ridge = Budget(must_not=~folds.objective.varies), family.candidates[0].strength
    for k, fold in enumerate(folds.splits[0]):
        rest = data.select_queries(np.setdiff1d(np.arange(data.n_queries), folds.queries[fold]))
        objective = make_objective(rest, query_weight=sqrt_query_weight(rest))
        alone = ForwardSearch(objective, budget.usable, FOLD_TOL, ridge, first_tries=1)
        expected = coefs_of(alone.path(len(family), budget))
        np.testing.assert_allclose(family.fold_coefs[:, k], expected, rtol=1e-6, atol=1e-9)
    assert ((family.fold_coefs != 0) != (family.coefs != 0)[:, None]).any()
