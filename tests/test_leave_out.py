"""Batched cross-validation against fits without the queries of a fold."""

import numpy as np
import pytest
import scipy.sparse as sp

import ranksieve as rs
from ranksieve import objective as objective_module
from ranksieve._parallel import use_threads
from ranksieve.choice import folds as choice_folds
from ranksieve.choice.folds import Folds
from ranksieve.objective import make_objective
from ranksieve.penalties import L1
from ranksieve.solvers import Problem, ProxNewton

DATA = rs.make_ranking(n_queries=30, n_features=12, n_informative=4, docs_per_query=15, random_state=3)
WEIGHT = np.random.default_rng(0).integers(0, 3, DATA.n_queries).astype(float)


def optimum(data, alpha, query_weight=None):
    problem = Problem(make_objective(data, query_weight=query_weight), L1(alpha))
    return ProxNewton(1e-12, 200).solve(problem)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_parts_add_up_to_the_whole(weight):
    folds = Folds(DATA, 4, 2, query_weight=weight)
    objective, cuts, columns = folds.objective, folds.all_folds.cuts, np.array([0, 3, 7])
    point = objective.evaluate(np.linspace(-0.2, 0.3, 12))
    sums = objective.gradients(point, cuts).sum(axis=0), objective.hessians(point, columns, cuts).sum(axis=0)
    whole = make_objective(DATA, query_weight=weight)
    same = whole.evaluate(point.w)
    assert np.allclose(sums[0] / objective.loss.normaliser, whole.gradient(same), rtol=1e-12, atol=1e-14)
    assert np.allclose(sums[1] / objective.loss.normaliser, whole.hessian(same, columns), rtol=1e-12)


def test_cached_hessians_have_the_right_columns():
    objective = Folds(DATA, 5).objective
    point = objective.evaluate(np.full(12, 0.1))
    fresh = objective.hessian(point, np.array([2, 5]))
    objective.hessians(point, np.array([1, 2, 5, 8]), np.array([0, 10, 30]))
    assert np.allclose(objective.hessian(point, np.array([2, 5])), fresh, rtol=1e-12)
    other = objective.evaluate(np.full(12, 0.2))
    assert not np.allclose(objective.hessian(other, np.array([2, 5])), fresh, rtol=1e-3)


def test_every_query_is_held_out_once_in_each_split():
    folds = Folds(DATA, 5, 3, random_state=1)
    assert len(folds) == 15
    assert len(folds.splits) == 3
    for split in folds.splits:
        held_out = np.concatenate([folds.queries[fold] for fold in split])
        assert sorted(held_out.tolist()) == list(range(DATA.n_queries))


def test_few_queries_have_few_folds():
    few = DATA.select_queries(np.arange(4))
    assert len(Folds(few, 5, 6)) == 4
    assert len(Folds(few, 2, 6)) == 4  # two splits into two folds


def test_folds_have_pairs_if_most_queries_have_none():
    y = np.where(np.isin(DATA.queries.query_of_grouped, [3, 11, 20]), DATA.y, 0.0)
    folds = Folds(rs.Dataset(DATA.X, y, DATA.qid), 5, 6)
    assert len(folds) == 3


@pytest.mark.parametrize(("share", "tolerance"), [(0.5, 0.002), (0.1, 0.03)])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_one_step_is_near_the_fit_without_the_fold(share, tolerance, weight):
    """Near w = 0 every pair is active, so the step is exact; otherwise active pairs change."""
    folds = Folds(DATA, 5, 2, query_weight=weight)
    alpha = share * L1().alpha_max(folds.objective.gradient(folds.objective.at_zero))
    whole = ProxNewton(1e-12, 200).solve(Problem(folds.objective, L1(alpha)))
    slopes = [L1(alpha).slopes(12)] * len(folds)
    for queries, w in zip(folds.queries, folds.minima(whole.point, slopes), strict=True):
        rest = np.setdiff1d(np.arange(DATA.n_queries), queries)
        exact = optimum(DATA.select_queries(rest), alpha, None if weight is None else weight[rest]).w
        assert np.abs(w - exact).sum() <= tolerance * np.abs(exact).sum()
        assert np.abs(w - whole.w).sum() > 0  # not just the model of all data


def test_one_step_by_products_equals_the_one_with_formed_hessians(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((DATA.n_docs, 60), density=0.06, rng=rng, format="csr")
    folds = Folds(rs.Dataset(X, DATA.y, DATA.qid), 5, 2, query_weight=WEIGHT)
    alpha = 0.2 * L1().alpha_max(folds.objective.gradient(folds.objective.at_zero))
    whole = ProxNewton(1e-12, 200).solve(Problem(folds.objective, L1(alpha)))
    slopes = [L1(alpha).slopes(60)] * len(folds)
    monkeypatch.setattr(choice_folds, "VIOLATION_TOL", 1e-8)
    formed = folds.minima(whole.point, slopes)
    monkeypatch.setattr(objective_module, "MAX_FORMED_COLUMNS", 5)
    monkeypatch.setattr(folds.objective, "hessians", None)  # is not called
    by_threads = []
    for n_threads in (1, 3):
        with use_threads(n_threads):
            by_threads.append(folds.minima(whole.point, slopes))
    np.testing.assert_array_equal(*by_threads)
    np.testing.assert_allclose(by_threads[0], formed, atol=1e-6 * np.abs(formed).max())
    assert np.ptp(formed, axis=0).max() > 0.01 * np.abs(formed).max()


def test_the_objective_without_a_fold():
    folds = Folds(DATA, 5, 2, query_weight=WEIGHT)
    w = np.linspace(-0.1, 0.2, 12)
    for fold, queries in enumerate(folds.queries):
        rest = np.setdiff1d(np.arange(DATA.n_queries), queries)
        direct = make_objective(DATA.select_queries(rest), query_weight=WEIGHT[rest])
        assert folds.objective_without(fold).evaluate(w).value == pytest.approx(
            direct.evaluate(w).value, rel=1e-14
        )


def test_second_order_models_without_each_fold():
    folds = Folds(DATA, 5, 3, query_weight=WEIGHT)
    w, columns = np.linspace(-0.1, 0.2, 12), np.array([1, 4, 9])
    point = folds.objective.evaluate(w)
    for fold, model in enumerate(folds.second_order(point, columns)):
        left = folds.objective_without(fold)
        there = left.evaluate(w)
        np.testing.assert_allclose(model.gradient, left.gradient(there), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(model.hessian, left.hessian(there, columns), rtol=1e-10)
