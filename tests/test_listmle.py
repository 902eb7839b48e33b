"""Sparse cost-sensitive ListMLE against its formula over explicit pairs in long double."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import group_queries
from ranksieve.io.folds import load_letor_folds
from ranksieve.losses import CostSensitiveListMLE
from ranksieve.methods import parameter_grid
from ranksieve.model.linear import load_model
from ranksieve.objective import LocalObjective
from ranksieve.penalties import L1
from ranksieve.rankers import SparseListMLE
from ranksieve.rankers.linear import squared_radii
from ranksieve.synthetic import make_ranking
from tests.conftest import random_dataset
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples

CUTOFFS = (1, 3, 5, 8, 10)
LN2 = np.log(np.longdouble(2))


# ---------------------------------------------------------------- the formula, pair by pair


def pair_weights(y, k, gain=None):
    """α[j, t] for the pairs y_t < y_j, 0 elsewhere, and DCG@k."""
    y = np.asarray(y, dtype=np.longdouble)
    a = 2**y - 1 if gain is None else np.asarray(gain, dtype=np.longdouble)
    rank = np.array([1 + np.sum(y > y[j]) for j in range(len(y))], dtype=np.longdouble)
    slope = np.where(rank <= k, -LN2 / ((1 + rank) * np.log(1 + rank) ** 2), 0)
    alpha = np.zeros((len(y), len(y)), dtype=np.longdouble)
    for j in range(len(y)):
        for t in np.flatnonzero(y < y[j]):
            alpha[j, t] = a[t] * slope[t] - a[j] * slope[j]
    return alpha, np.sum(np.where(rank <= k, a / np.log2(1 + rank), 0))


def literal(s, y, k, gain=None):
    """(loss, gradient) of one query, with log-sum-exp to avoid overflow for scores of ±1e4."""
    s = np.asarray(s, dtype=np.longdouble)
    alpha, dcg = pair_weights(y, k, gain)
    value, gradient = np.longdouble(0), np.zeros(len(s), dtype=np.longdouble)
    for j in range(len(s)):
        beta, lower = alpha[j].sum(), np.flatnonzero(alpha[j])
        if dcg == 0 or beta == 0:
            continue
        exponents = np.log(alpha[j, lower] / beta) + s[lower] - s[j]
        log_inner = np.logaddexp.reduce(np.append(exponents, np.longdouble(0)))
        value += beta / dcg * log_inner / LN2
        pulls = beta / dcg / LN2 * np.exp(exponents - log_inner)
        gradient[lower] += pulls
        gradient[j] -= pulls.sum()
    return value, gradient


def literal_mean(s, y, qid, k, weight=None):
    """(mean over queries, gradient)."""
    value, gradient = np.longdouble(0), np.zeros(len(s), dtype=np.longdouble)
    ids = list(dict.fromkeys(qid.tolist()))
    weight = np.ones(len(ids)) if weight is None else weight
    for q, w in zip(ids, weight, strict=True):
        rows = qid == q
        part, slope = literal(s[rows], y[rows], k)
        value, gradient[rows] = value + w * part, w * slope
    return float(value / weight.sum()), (gradient / weight.sum()).astype(float)


@st.composite
def labelled_scores(draw):
    n = draw(st.integers(2, 24))
    labels = draw(
        st.sampled_from(
            [st.integers(0, 2).map(float), st.integers(0, 9).map(float), st.floats(0, 6, width=16)]
        )
    )
    y = draw(hnp.arrays(float, n, elements=labels))
    qid = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2)))
    scale = draw(st.sampled_from([0.1, 1.0, 30.0, 5e3]))
    return y, qid, scale * draw(hnp.arrays(float, n, elements=st.floats(-2, 2, width=32)))


@examples(200)
@given(labelled_scores(), st.sampled_from(CUTOFFS), st.booleans(), st.integers(0, 2**31))
def test_value_gradient_and_curvature(case, k, weighted, seed):
    y, qid, s = case
    rng, queries = np.random.default_rng(seed), group_queries(qid)
    weight = rng.uniform(0.1, 2, queries.n_queries) if weighted else None
    if all(len(np.unique(y[qid == q])) == 1 for q in qid):
        with refused_data() as info:
            CostSensitiveListMLE(k).bind(y, queries, weight)
        assert "pair" in info.value.reason
        return
    bound = CostSensitiveListMLE(k).bind(y, queries, weight)
    value, gradient = literal_mean(s, y, qid, k, weight)
    at = bound.evaluate(queries.group(s))
    tiny = 1e-13 * (1 + np.abs(gradient).sum()) * (1 + np.abs(s).max())
    assert bound.normaliser == pytest.approx(queries.n_queries if weight is None else weight.sum())
    assert at.value / bound.normaliser == pytest.approx(value, rel=1e-12, abs=1e-300)
    np.testing.assert_allclose(queries.restore(at.gradient) / bound.normaliser, gradient, atol=tiny)
    assert at.slack == pytest.approx(at.value - at.gradient @ queries.group(s), rel=1e-9, abs=1e3 * tiny)
    v = rng.normal(size=len(s))
    h = 1e-5
    _, after = literal_mean(s + h * v, y, qid, k, weight)
    _, before = literal_mean(s - h * v, y, qid, k, weight)
    V = queries.group(v)[:, None]
    curvature = float(bound.curvature_of(at, 0, queries.n_queries, V).diagonal().sum())
    assert curvature / bound.normaliser == pytest.approx(v @ (after - before) / (2 * h), rel=1e-5, abs=1e-5)


@examples(100)
@given(hnp.arrays(float, st.integers(1, 30), elements=st.floats(0, 8, width=16)), st.integers(1, 12))
def test_pair_weights_are_not_negative(y, k):
    """The weight of each pair is ≥ 0 for labels ≥ 0, so the loss is convex; it is 0 beyond position k."""
    alpha, _ = pair_weights(y, k)
    assert (alpha >= 0).all()
    beyond = np.array([np.sum(y > label) >= k for label in y])
    assert not alpha[beyond].any()


@pytest.mark.parametrize("k", CUTOFFS)
def test_large_scores(k):
    rng = np.random.default_rng(k)
    y, qid = rng.integers(0, 4, 60).astype(float), np.repeat([0, 1, 2], 20)
    s = 1e4 * rng.choice([-1.0, 1.0], 60) + rng.normal(size=60)
    at = CostSensitiveListMLE(k).bind(y, group_queries(qid)).evaluate(s)
    value, gradient = literal_mean(s, y, qid, k)
    assert np.isfinite(at.slack)
    assert at.value / 3 == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(at.gradient / 3, gradient, rtol=1e-10, atol=1e-12)


def test_a_nearly_perfect_ranking_is_computed_precisely():
    """log2(1 + 1e-30) is 1e-30/ln 2, not 0."""
    y, s = np.array([2.0, 1.0, 0.0]), np.array([140.0, 70.0, 0.0])
    at = CostSensitiveListMLE(3).bind(y, group_queries(np.zeros(3, dtype=int))).evaluate(s)
    value, gradient = literal(s, y, 3)
    assert 0 < at.value < 1e-29
    assert at.value == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(at.gradient, gradient.astype(float), rtol=1e-12)


def test_labels_whose_gain_would_overflow():
    y, s = np.array([2000.0, 1999.0, 1999.0, 0.0]), np.array([0.3, -1.0, 2.0, 0.5])
    at = CostSensitiveListMLE(3).bind(y, group_queries(np.zeros(4, dtype=int))).evaluate(s)
    value, gradient = literal(s, y, 3, gain=[1.0, 0.5, 0.5, 0.0])
    assert at.value == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(at.gradient, gradient.astype(float), rtol=1e-11)


def test_three_hundred_levels():
    rng = np.random.default_rng(0)
    y, s = np.round(5 * rng.random(600), 2), rng.normal(size=600)
    value, gradient = literal(s, y, 200)
    at = CostSensitiveListMLE(200).bind(y, group_queries(np.zeros(600, dtype=int))).evaluate(s)
    assert at.value == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(at.gradient, gradient.astype(float), rtol=1e-9, atol=1e-13)


def test_queries_without_pairs_are_part_of_the_mean():
    y, qid = np.array([1.0, 0.0, 0.0, 0.0, 3.0, 3.0, 2.0]), np.array([0, 0, 1, 1, 2, 2, 3])
    bound = CostSensitiveListMLE(2).bind(y, group_queries(qid))
    assert bound.normaliser == 4
    at = bound.evaluate(np.arange(7.0))
    assert at.value == pytest.approx(float(literal(np.arange(2.0), y[:2], 2)[0]))
    assert not at.gradient[2:].any()


# ---------------------------------------------------------------- Theorem 1


def hessian_norm(objective, w):
    return np.linalg.norm(objective.hessian(objective.evaluate(w), np.arange(objective.n_features)), 2)


@pytest.mark.parametrize("seed", range(4))
def test_lipschitz_bound_on_fits(seed):
    data = random_dataset(seed=seed, n_queries=12, longest=20)
    loss = CostSensitiveListMLE(5).bind(data.y, data.queries, np.linspace(0.5, 2, 12))
    objective, bound = LocalObjective(data.X, loss), loss.lipschitz_bound(squared_radii(data))
    fits = [SparseListMLE(alpha, 5).fit(data).coef_ for alpha in (1e-3, 1e-1, 1.0)]
    for w in (np.zeros(5), *fits, 10 * fits[0]):
        assert 0 < hessian_norm(objective, w) <= bound


def test_lipschitz_bound_is_attained():
    """Documents at −1 and 1: the bound β/(DCG ln 2) is attained at w = 0; a quarter of it would be wrong."""
    data = Dataset(np.array([[1.0], [-1.0]]), [1.0, 0.0], [0, 0])
    loss = CostSensitiveListMLE(1).bind(data.y, data.queries)
    norm = hessian_norm(LocalObjective(data.X, loss), np.zeros(1))
    assert norm == pytest.approx(loss.lipschitz_bound(squared_radii(data)), rel=1e-12)
    assert norm == pytest.approx(1 / (2 * np.log(2) ** 2), rel=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, lambda X: X.astype(np.float32), sp.csr_array])
def test_squared_radii(kind):
    data = random_dataset(seed=3, n_queries=7)
    rows = np.random.default_rng(0).permutation(data.n_docs)
    shuffled = Dataset(kind(data.X[rows]), data.y[rows], data.qid[rows])
    expected = [
        np.sum(np.ptp(data.X[data.qid == q], axis=0) ** 2) / 4 for q in dict.fromkeys(data.qid[rows].tolist())
    ]
    np.testing.assert_allclose(squared_radii(shuffled), expected, rtol=1e-5)
    for q, radius in zip(dict.fromkeys(data.qid[rows].tolist()), squared_radii(shuffled), strict=True):
        X = data.X[data.qid == q]
        middle = (X.max(axis=0) + X.min(axis=0)) / 2
        assert np.all(np.sum((X - middle) ** 2, axis=1) <= radius * (1 + 1e-5))


# ---------------------------------------------------------------- the estimator


def independent_minimum(data, alpha, k):
    """L-BFGS-B on w = u − v, u, v ≥ 0, with the literal loss."""
    d = data.n_features

    def split(uv):
        w = uv[:d] - uv[d:]
        value, slope = literal_mean(data.X @ w, data.y, data.qid, k)
        g = data.X.T @ slope
        return value + alpha * uv.sum(), np.concatenate([g + alpha, alpha - g])

    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-9}
    result = minimize(
        split, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options=options
    )
    return result.fun, result.x[:d] - result.x[d:]


@pytest.fixture(scope="module")
def noisy():
    return random_dataset(seed=8, n_queries=10, n_features=4, longest=14)


@pytest.fixture(scope="module", params=[0.02, 0.3])
def optimum(request, noisy):
    return request.param, *independent_minimum(noisy, request.param, 5)


@pytest.mark.parametrize("solver", ["proximal", "accelerated", "newton"])
def test_agrees_with_an_independent_solver(noisy, optimum, solver):
    alpha, minimum, w = optimum
    fitted = SparseListMLE(alpha, 5, solver=solver, tol=1e-8, max_iter=20_000).fit(noisy)
    assert fitted.converged_
    assert fitted.objective_ == pytest.approx(minimum, rel=1e-6)
    np.testing.assert_allclose(fitted.coef_, w, atol=2e-3)
    assert -1e-9 < fitted.gap_ < 1e-4 * minimum


@pytest.mark.parametrize("max_iter", [1, 3, 10, 100])
def test_the_gap_is_valid_and_better_than_the_level_set_bound(noisy, optimum, max_iter):
    """f convex, ≥ 0, ‖w*‖₁ ≤ F(w)/α: F* ≥ f − ⟨g,w⟩ − F/α·max(0, ‖g‖_∞ − α), at most the dual value."""
    alpha, minimum, _ = optimum
    fitted = SparseListMLE(alpha, 5, max_iter=max_iter).fit(noisy)
    w, F = fitted.coef_, fitted.objective_
    g = noisy.X.T @ literal_mean(noisy.X @ w, noisy.y, noisy.qid, 5)[1]
    level_set = alpha * np.abs(w).sum() + g @ w + F / alpha * max(0.0, np.abs(g).max() - alpha)
    assert F - minimum <= fitted.gap_ * (1 + 1e-9) + 1e-7 * minimum
    assert fitted.gap_ <= level_set * (1 + 1e-9) + 1e-12
    assert fitted.gap_ < F
    assert fitted.trace_.gap[-1] == fitted.gap_
    assert np.isnan(fitted.trace_.gap[:-1]).all()


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.1])
def test_every_step_of_the_paper_descends(alpha):
    data = make_ranking(n_queries=30, n_features=12, n_informative=4, random_state=2)
    fitted = SparseListMLE(alpha, max_iter=200).fit(data)
    assert len(fitted.trace_) - 1 == fitted.n_iter_ > 20
    assert np.all(np.diff(fitted.trace_.objective) <= 1e-13 * fitted.trace_.objective[0])
    assert fitted.trace_.objective[-1] < 0.9 * fitted.trace_.objective[0]


def test_stops_on_the_gradient_mapping():
    """At the end ‖gradient mapping‖ is at most 1e-3 of that at zero; a larger tol stops earlier."""
    data = make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=2)
    loose, tight = (SparseListMLE(0.1, tol=tol, max_iter=5000).fit(data) for tol in (1e-1, 1e-3))
    assert loose.converged_
    assert tight.converged_
    assert loose.n_iter_ < tight.n_iter_
    objective = LocalObjective(data.X, CostSensitiveListMLE().bind(data.y, data.queries))

    def mapping(w):
        g = objective.gradient(objective.evaluate(w))
        return np.linalg.norm(w - L1(0.1).prox(w - g, 1.0))  # with L = 1 ≤ L_k, at most the one with L_k

    assert mapping(tight.coef_) <= 1.5e-3 * mapping(np.zeros(8))
    assert mapping(loose.coef_) > mapping(tight.coef_)


def test_alpha_max_has_the_empty_model():
    data = make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=2)
    objective = LocalObjective(data.X, CostSensitiveListMLE().bind(data.y, data.queries))
    largest = np.abs(objective.gradient(objective.at_zero)).max()
    empty, one = (SparseListMLE(share * largest).fit(data) for share in (1.0001, 0.99))
    assert len(empty.support_) == 0
    assert empty.converged_
    assert empty.gap_ == pytest.approx(0, abs=1e-12)
    assert len(one.support_) >= 1


def test_a_dense_ranker_has_no_certificate_and_the_lowest_loss(tmp_path):
    data = make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=2)
    dense, sparse = (SparseListMLE(alpha, solver="accelerated").fit(data) for alpha in (0.0, 0.5))
    assert np.isnan(dense.gap_)
    dense.to_model().save(tmp_path / "dense.json")
    assert set(load_model(tmp_path / "dense.json").certificate) == {"objective"}
    assert len(sparse.support_) < len(dense.support_) == 8
    assert dense.objective_ < sparse.objective_ - 0.5 * np.abs(sparse.coef_).sum()


@pytest.mark.parametrize("solver", ["proximal", "accelerated", "newton"])
def test_a_warm_start_at_the_optimum_stops_at_once(solver):
    data = make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=2)
    ranker = SparseListMLE(0.1, solver=solver, warm_start=True, max_iter=5000).fit(data)
    cold, before = ranker.n_iter_, ranker.coef_
    ranker.fit(data)
    assert ranker.n_iter_ <= 2 < cold
    np.testing.assert_allclose(ranker.coef_, before, atol=5e-3)


def test_features_constant_within_queries():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 5, axis=0)
    fitted = SparseListMLE().fit(Dataset(X, np.tile([0.0, 1, 2, 0, 1], 4), np.repeat(range(4), 5)))
    assert not fitted.coef_.any()
    assert fitted.gap_ == pytest.approx(0, abs=1e-12)


def test_query_weights_and_callback(noisy):
    weight = np.linspace(0.2, 2, noisy.n_queries)
    calls = []
    fitted = SparseListMLE(0.05, 5, max_iter=7).fit(
        noisy, query_weight=weight, callback=lambda n, w, objective, gap: calls.append((n, objective))
    )
    value, _ = literal_mean(noisy.X @ fitted.coef_, noisy.y, noisy.qid, 5, weight)
    assert fitted.objective_ == pytest.approx(value + 0.05 * np.abs(fitted.coef_).sum(), rel=1e-12)
    assert calls == list(enumerate(fitted.trace_.objective))


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0},
        {"k": 2.5},
        {"alpha": -1e-3},
        {"alpha": np.nan},
        {"tol": 0.0},
        {"max_iter": 0},
        {"solver": "adam"},
        {"alpha": 0.0, "solver": "newton"},
    ],
)
def test_bad_parameters(small, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        SparseListMLE(**parameters).fit(small)


@pytest.mark.parametrize(
    ("y", "word"),
    [
        ([1.0, 1.0, 2.0, 2.0], "pair"),
        ([0.0, 0.0, 0.0, 0.0], "pair"),
        ([1.0, 0.0, -1.0, 0.0], "label of row 2"),
    ],
)
def test_bad_labels(y, word):
    with refused_data() as info:
        SparseListMLE().fit(np.eye(4), y, qid=[0, 0, 1, 1])
    assert word in info.value.reason


def test_pairs_only_in_queries_of_weight_zero():
    queries = group_queries(np.array([0, 0, 1, 1]))
    with refused_data() as info:
        CostSensitiveListMLE().bind(np.array([1.0, 0.0, 1.0, 1.0]), queries, np.array([0.0, 1.0]))
    assert "pair" in info.value.reason


# ---------------------------------------------------------------- LETOR


@pytest.mark.letor
@pytest.mark.parametrize(
    ("name", "ndcg", "mean_ap"), [("OHSUMED", 0.4404, 0.4402), ("MQ2008", 0.2308, 0.4843)]
)
def test_sparse_beats_dense_with_fewer_features(letor_root, name, ndcg, mean_ap):
    folds = load_letor_folds(name, letor_root)
    sparse, dense = (
        five_fold(SparseListMLE, parameter_grid(alpha=grid), folds).to_row()
        for grid in ([10.0**-e for e in range(1, 8)], [0.0])
    )
    assert sparse["ndcg@10"] >= max(ndcg - 5e-5, dense["ndcg@10"])
    assert sparse["map"] >= mean_ap - 5e-5
    assert sparse["sparsity"] < dense["sparsity"]


@pytest.mark.letor
def test_lipschitz_bound_on_ohsumed(letor_root):
    """Theorem 1 as printed, with ‖x‖_∞ ≤ 1, is below the Hessian's norm; the corrected bound holds."""
    data = load_letor_folds("OHSUMED", letor_root)[0].train
    loss = CostSensitiveListMLE().bind(data.y, data.queries)
    norm = hessian_norm(LocalObjective(data.X, loss), np.zeros(data.n_features))
    printed = loss.lipschitz_bound(0.25) * np.log(2)
    assert printed < norm <= loss.lipschitz_bound(squared_radii(data))
