"""Many features, long lists, many queries: the same results, without quadratic time or memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.kernels.concordance import concordances
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import L1, Ridge
from ranksieve.rankers import measures
from ranksieve.rankers.measures import feature_similarity
from ranksieve.solvers import Problem, ProxNewton, TruncatedNewton, prox_newton
from ranksieve.solvers import base as sample
from tests.refusals import refused_data

WIDE = 4000  # features


@pytest.fixture(scope="module")
def wide():
    """Many features, few documents."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, WIDE))
    scores = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.standard_normal(60)
    return rs.Dataset(X, np.digitize(scores, [-1.0, 0.0, 1.0]).astype(float), np.repeat(np.arange(6), 10))


def long_list(n, n_levels, seed=0):
    """Data of one query."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    scores = X @ [1.0, -0.5, 0.2, 0.0] + rng.standard_normal(n)
    return rs.Dataset(X, np.argsort(np.argsort(scores)) * n_levels // n * 1.0, np.zeros(n, dtype=int))


def largest_blocks(monkeypatch):
    """A list that records the widths of all Hessian blocks computed from now on."""
    widths, hessian, hessians = [0], Objective.hessian, Objective.hessians

    def counted(self, point, columns):
        widths.append(len(columns))
        return hessian(self, point, columns)

    def counted_parts(self, point, columns, cuts):
        widths.append(len(columns))
        return hessians(self, point, columns, cuts)

    monkeypatch.setattr(Objective, "hessian", counted)
    monkeypatch.setattr(Objective, "hessians", counted_parts)
    return widths


def peak(work):
    """(peak memory, result) of a call."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("penalty", ["l1", "log", "mcp", "lp", "scad"])
def test_no_penalty_computes_a_hessian_of_all_features(penalty, wide, monkeypatch):
    widths = largest_blocks(monkeypatch)
    rs.SparseRankSVM(penalty, alpha=0.5).fit(wide)  # compile first
    memory, model = peak(lambda: rs.SparseRankSVM(penalty, alpha=0.02).fit(wide))
    assert 0 < len(model.support_) <= wide.n_docs
    assert max(widths) <= 2 * prox_newton.MIN_SET_LIMIT
    assert memory < 8 * wide.X.nbytes  # a matrix of all features would be 66 times X


def test_a_small_working_set_reaches_the_same_optimum(wide, monkeypatch):
    some = rs.Dataset(wide.X[:, :1000], wide.y, wide.qid)
    problem = Problem(make_objective(some), L1(0.02))
    whole = ProxNewton(1e-9).solve(problem)
    monkeypatch.setattr(prox_newton, "MIN_SET_LIMIT", 16)
    monkeypatch.setattr(prox_newton, "MAX_SET_LIMIT", 16)
    small = ProxNewton(1e-9).solve(problem)
    assert whole.converged
    assert small.converged
    assert abs(small.objective - whole.objective) <= small.gap + whole.gap  # by the certificates


def test_working_sets_have_the_features_in_use_and_the_steepest_others():
    g = np.linspace(1.0, 2.0, 1000)
    w = np.zeros(1000)
    w[:3] = 1.0
    slopes = L1(1.0).slopes(1000)
    few = prox_newton.working_set(slopes, w, g, 0.8, 10)
    np.testing.assert_array_equal(few, [0, 1, 2, *range(993, 1000)])
    np.testing.assert_array_equal(prox_newton.working_set(slopes, w, g, 0.8, 1000), np.arange(1000))
    usable = np.arange(1000) < 500
    assert prox_newton.working_set(slopes, w, g, 0.8, 10, usable).tolist() == [0, 1, 2, *range(493, 500)]


def test_limit_of_working_sets(wide):
    long = make_objective(long_list(3000, 3))
    assert prox_newton.working_set_limit(long) == prox_newton.MAX_SET_LIMIT
    assert prox_newton.working_set_limit(make_objective(wide)) == prox_newton.MIN_SET_LIMIT


@pytest.mark.full
def test_model_selection_computes_no_hessian_of_all_features(wide, monkeypatch):
    ranker = rs.SparseRanker(max_features=5, n_alphas=15, metric="map").fit(wide)  # compiled once
    widths = largest_blocks(monkeypatch)
    memory, model = peak(lambda: ranker.fit(wide))
    assert 0 < len(model.support_) <= 5
    assert max(widths) <= 2 * prox_newton.MIN_SET_LIMIT
    assert memory < 8 * WIDE**2 / 2  # half of one matrix of all features


def test_rankrls_by_documents_equals_rankrls_by_features(wide):
    few = rs.Dataset(wide.X[:, :200], wide.y, wide.qid, document_weight=np.linspace(0.5, 2.0, 60))
    by_documents = rs.baselines.RankRLS(alpha=0.1).fit(few, query_weight=np.arange(1.0, 7.0))
    twice = np.concatenate([wide.X[:, :200]] * 4)  # the same problem with more documents than features
    repeated = rs.Dataset(
        twice, np.tile(wide.y, 4), np.concatenate([wide.qid + 10 * k for k in range(4)]),
        document_weight=np.tile(few.document_weight, 4),
    )  # fmt: skip
    by_features = rs.baselines.RankRLS(alpha=0.1).fit(repeated, query_weight=np.tile(np.arange(1.0, 7.0), 4))
    np.testing.assert_allclose(by_documents.coef_, by_features.coef_, rtol=1e-9, atol=1e-12)
    assert by_documents.objective_ == pytest.approx(by_features.objective_, rel=1e-10)
    assert by_documents.gap_ < 1e-12  # only rounding


def test_rankrls_with_many_features_needs_little_memory(wide):
    memory, model = peak(lambda: rs.baselines.RankRLS().fit(wide))
    assert np.all(model.coef_ != 0)
    assert memory < 8 * wide.X.nbytes


def test_copies_of_selected_features_are_found_among_many(wide, monkeypatch):
    X = wide.X.copy()
    X[:, -1] = -3.0 * X[:, 0]
    widths = largest_blocks(monkeypatch)
    model = rs.BestSubset(1, max_nodes=1).fit(rs.Dataset(X, wide.y, wide.qid))
    assert set(model.ties_) | {name for names in model.ties_.values() for name in names} == {"f1", "f4000"}
    assert max(widths) <= 1001


@pytest.mark.parametrize(
    "kind",
    [
        rs.baselines.GAS,
        rs.FSMRank,
        rs.baselines.FBPCRank,
        rs.baselines.HierarchicalBEM,
        rs.baselines.HierarchicalILTR,
    ],
)
def test_too_many_features_for_similarities_are_refused(kind):
    X = np.random.default_rng(0).standard_normal((20, 5001))
    data = rs.Dataset(X, np.arange(20) % 2.0, np.repeat([0, 1], 10))
    with refused_data() as info:
        kind().fit(data)
    assert "5,001 features" in info.value.reason


@pytest.mark.parametrize("kind", [rs.baselines.RankFilter, rs.baselines.RankWrapper])
def test_too_many_documents_for_relief_are_refused(kind):
    X = np.random.default_rng(0).standard_normal((10_004, 2))
    data = rs.Dataset(X, np.arange(10_004) % 2.0, np.repeat(["short", "long"], [3, 10_001]))
    with refused_data() as info:
        kind(max_features=1).fit(data)
    assert "query long has 10,001 documents" in info.value.reason


def test_without_similarity_the_number_of_features_is_not_limited():
    X = np.random.default_rng(0).standard_normal((20, 5001))
    data = rs.Dataset(X, np.arange(20) % 2.0, np.repeat([0, 1], 10))
    assert rs.FSMRank(similarity_weight=0.0, max_iter=3, tol=1.0).fit(data).similarity_ is None


# --- Long lists --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 64, 333])
def test_counting_by_sorting_equals_all_pairs(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 7))
    x[:, 1], x[:, 2], x[:, 5] = np.round(x[:, 1]), 0.0, rng.integers(0, 3, n)
    x[:, 3], x[:, 4] = x[:, 0], -x[:, 1]
    ranks, total = measures._ranks(x), np.zeros((7, 7))
    concordances(np.ascontiguousarray(ranks.T, dtype=np.int32), total)
    np.testing.assert_array_equal(total, measures._concordance(ranks))


def test_similarities_of_long_lists_are_bit_identical_without_memory_for_pairs(monkeypatch):
    data = long_list(1200, 5)
    feature_similarity("kendall", long_list(1200, 2))  # compile first
    memory, sorted_ = peak(lambda: feature_similarity("kendall", data))
    assert memory < 20 * data.X.nbytes  # the signs of all pairs would be 300 times X
    monkeypatch.setattr(measures, "MAX_PAIRWISE_DOCUMENTS", 2000)
    np.testing.assert_array_equal(sorted_, feature_similarity("kendall", data))


@pytest.mark.parametrize("solver", [ProxNewton(), TruncatedNewton()])
def test_a_single_query_is_not_sampled(solver, monkeypatch):
    problem = Problem(make_objective(long_list(300, 3)), Ridge(0.1))
    whole = solver.solve(problem)
    monkeypatch.setattr(sample, "SAMPLE_MIN_DOCUMENTS", 100)
    assert sample.minimum_of_sample(problem, solver) is None
    np.testing.assert_array_equal(solver.solve(problem).w, whole.w)


# --- Many queries of two documents -------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_many_queries_of_one_pair(weighted):
    rng = np.random.default_rng(0)
    s, y = rng.standard_normal(200), np.tile([1.0, 0.0, 0.0, 1.0], 50)
    document_weight = rng.uniform(0.5, 2.0, 200) if weighted else None
    pairs = rs.Dataset(s[:, None], y, np.repeat(np.arange(100), 2), document_weight=document_weight)
    point = make_objective(pairs).evaluate(np.ones(1))
    difference = s.reshape(-1, 2) @ [1.0, -1.0] * np.tile([1.0, -1.0], 50)
    xi, omega = (
        np.maximum(0.0, 1.0 - difference),
        np.ones(100) if document_weight is None else document_weight.reshape(-1, 2).prod(axis=1),
    )
    assert point.value == pytest.approx(omega @ xi**2 / omega.sum(), rel=1e-13)
    assert point.slack == pytest.approx(omega @ xi / omega.sum(), rel=1e-13)
    upper = point.at.gradient.reshape(-1, 2)[np.arange(100), np.arange(100) % 2]
    np.testing.assert_allclose(upper, -2.0 * omega * xi, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(point.at.gradient.reshape(-1, 2).sum(axis=1), 0.0, atol=1e-14)
    active = point.at.state.active_pairs.reshape(-1, 2)
    np.testing.assert_allclose(active, ((xi > 0) * omega)[:, None] * [1.0, 1.0])
