"""ListNet against its literal formula and scipy; CS-ListMLE against sparse ListMLE without a penalty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ranksieve.baselines import CSListMLE, ListNet
from ranksieve.baselines.losses import ListNetLoss
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import group_queries
from ranksieve.io.folds import load_letor_folds
from ranksieve.methods import parameter_grid
from ranksieve.objective import LocalObjective
from ranksieve.penalties import L1
from ranksieve.rankers import SparseListMLE
from ranksieve.rankers.linear import squared_radii
from tests.conftest import random_dataset
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter
from tests.tiers import examples

LONG = np.longdouble


@pytest.fixture(scope="module")
def data():
    return random_dataset(seed=64, n_queries=20, n_features=6, longest=14)


# ---------------------------------------------------------------- the formula, query by query


def softmax(s):
    e = np.exp(np.asarray(s, dtype=LONG) - np.max(s))
    return e / e.sum()


def log_softmax(s):
    s = np.asarray(s, dtype=LONG)
    return s - s.max() - np.log(np.sum(np.exp(s - s.max())))


def literal(s, y):
    """(cross entropy of one query minus the entropy of the target, gradient)."""
    p = softmax(y)
    cross_entropy, entropy = -np.sum(p * log_softmax(s)), -np.sum(p * log_softmax(y))
    return cross_entropy - entropy, softmax(s) - p


def literal_mean(s, y, qid, weight=None):
    ids = list(dict.fromkeys(qid.tolist()))
    weight = np.ones(len(ids)) if weight is None else weight
    value, gradient = LONG(0), np.zeros(len(s), dtype=LONG)
    for q, w in zip(ids, weight, strict=True):
        rows = qid == q
        part, slope = literal(s[rows], y[rows])
        value, gradient[rows] = value + w * part, w * slope
    return float(value / weight.sum()), (gradient / weight.sum()).astype(float)


@examples(80)
@given(st.integers(0, 2**31), st.sampled_from([0.1, 1.0, 30.0, 1e4]), st.booleans())
def test_value_gradient_and_curvature(seed, scale, weighted):
    rng = np.random.default_rng(seed)
    qid, y = rng.integers(0, 4, 20), np.append(rng.integers(0, 3, 18), [0.0, 1.0])
    qid[-2:] = 0
    queries, s, v = group_queries(qid), scale * rng.normal(size=20), rng.normal(size=20)
    weight = rng.uniform(0.1, 2, queries.n_queries) if weighted else None
    bound = ListNetLoss().bind(y, queries, weight)
    at = bound.evaluate(queries.group(s))
    value, gradient = literal_mean(s, y, qid, weight)
    assert at.value / bound.normaliser == pytest.approx(value, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(queries.restore(at.gradient) / bound.normaliser, gradient, atol=1e-14)
    assert at.slack == pytest.approx(at.value - at.gradient @ queries.group(s), rel=1e-9, abs=1e-9 * scale)
    V, per_query = queries.group(v)[:, None], np.ones(queries.n_queries) if weight is None else weight
    curvature = float(bound.curvature_of(at, 0, queries.n_queries, V).diagonal().sum())
    shares = [(softmax(s[qid == q]), v[qid == q]) for q in queries.ids]
    variances = [float(share @ u**2 - (share @ u) ** 2) for share, u in shares]
    assert curvature == pytest.approx(per_query @ variances, rel=1e-9, abs=1e-13)


def test_large_scores():
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 4, 60).astype(float), np.repeat([0, 1, 2], 20)
    s = 1e4 * rng.choice([-1.0, 1.0], 60) + rng.normal(size=60)
    at = ListNetLoss().bind(y, group_queries(qid)).evaluate(s)
    value, gradient = literal_mean(s, y, qid)
    assert np.isfinite(at.slack)
    assert at.value / 3 == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(at.gradient / 3, gradient, atol=1e-15)


def test_large_labels():
    y, queries = np.array([1000.0, 0.0, -1000.0]), group_queries(np.zeros(3, dtype=int))
    at = ListNetLoss().bind(y, queries).evaluate(np.zeros(3))
    assert at.value == pytest.approx(np.log(3))
    np.testing.assert_allclose(at.gradient, [-2 / 3, 1 / 3, 1 / 3])


def test_the_minimum_is_zero_where_scores_equal_labels(data):
    bound = ListNetLoss().bind(data.y, data.queries)
    at = bound.evaluate(data.queries.group(data.y + 5.0))
    assert 0 <= at.value < 1e-13
    np.testing.assert_allclose(at.gradient, 0, atol=1e-14)
    assert bound.evaluate(np.zeros(data.n_docs)).value > 1e-3


def test_lipschitz_bound(data):
    loss = ListNetLoss().bind(data.y, data.queries, np.linspace(0.5, 2, data.n_queries))
    objective, bound = LocalObjective(data.X, loss), loss.lipschitz_bound(squared_radii(data))
    for scale in (0.0, 0.3, 3.0):
        w = scale * np.random.default_rng(1).normal(size=6)
        assert 0 < np.linalg.norm(objective.hessian(objective.evaluate(w), np.arange(6)), 2) <= bound


# ---------------------------------------------------------------- the estimator


def independent_minimum(data, alpha, weight=None):
    """L-BFGS-B on w = u − v, u, v ≥ 0, with the literal loss."""
    d = data.n_features

    def split(uv):
        value, slope = literal_mean(data.X @ (uv[:d] - uv[d:]), data.y, data.qid, weight)
        g = data.X.T @ slope
        return value + alpha * uv.sum(), np.concatenate([g + alpha, alpha - g])

    options = {"maxiter": 3000, "maxfun": 10_000, "ftol": 1e-16, "gtol": 1e-10}
    result = minimize(
        split, np.zeros(2 * d), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * d, options=options
    )
    return result.fun, result.x[:d] - result.x[d:]


@pytest.fixture(scope="module")
def minima(data):
    return {alpha: independent_minimum(data, alpha) for alpha in (0.0, 0.03)}


@pytest.mark.parametrize(
    ("alpha", "solver"), [(0.0, "gradient"), (0.0, "lbfgs"), (0.03, "gradient"), (0.03, "newton")]
)
def test_agrees_with_an_independent_solver(data, minima, alpha, solver):
    fitted = ListNet(alpha, solver=solver, tol=1e-8, max_iter=20_000).fit(data)
    minimum, w = minima[alpha]
    assert fitted.converged_
    assert fitted.objective_ == pytest.approx(minimum, rel=1e-7)
    np.testing.assert_allclose(fitted.coef_, w, atol=1e-4)


@pytest.mark.parametrize("max_iter", [1, 3, 10, 100])
def test_the_gap_bounds_the_distance(data, minima, max_iter):
    fitted = ListNet(0.03, max_iter=max_iter).fit(data)
    minimum, _ = minima[0.03]
    assert fitted.objective_ - minimum <= fitted.gap_ + 1e-9
    assert fitted.gap_ <= fitted.objective_
    assert fitted.trace_.gap[-1] == fitted.gap_


def test_newton_certifies_its_optimum_in_few_steps(data):
    fitted = ListNet(0.03, solver="newton", tol=1e-6).fit(data)
    assert fitted.gap_ <= 1e-6 * fitted.objective_
    assert fitted.n_iter_ < 20


def test_without_a_penalty_there_is_no_gap(data):
    for solver in ("gradient", "lbfgs"):
        fitted = ListNet(solver=solver).fit(data)
        assert np.isnan(fitted.gap_)
        assert set(fitted.to_model().certificate) == {"objective"}


@pytest.mark.parametrize("solver", ["gradient", "lbfgs"])
def test_max_iter_stops_the_solver(data, solver):
    early, late = (ListNet(solver=solver, max_iter=n, tol=1e-9).fit(data) for n in (2, 200))
    assert early.n_iter_ == len(early.trace_) - 1 == 2
    assert not early.converged_
    assert late.objective_ < early.objective_
    assert np.all(np.diff(late.trace_.objective) <= 1e-14)
    assert np.linalg.norm(early.coef_) < np.linalg.norm(late.coef_)


@pytest.mark.parametrize("solver", ["gradient", "lbfgs"])
def test_max_iter_returns_that_iterate(data, solver):
    iterates = []
    ListNet(solver=solver, max_iter=12, tol=1e-12).fit(
        data, callback=lambda n, w, *_: iterates.append(w.copy())
    )
    for n in (1, 2, 5, 12):
        fitted = ListNet(solver=solver, max_iter=n, tol=1e-12).fit(data)
        assert fitted.n_iter_ == n
        np.testing.assert_array_equal(fitted.coef_, iterates[n])


def test_alpha_max_has_the_empty_model(data):
    objective = LocalObjective(data.X, ListNetLoss().bind(data.y, data.queries))
    largest = L1().alpha_max(objective.gradient(objective.at_zero))
    assert len(ListNet(1.001 * largest).fit(data).support_) == 0
    assert len(ListNet(0.9 * largest).fit(data).support_) >= 1


@pytest.mark.parametrize("ranker", [ListNet(), ListNet(solver="lbfgs"), CSListMLE()])
def test_constant_features_get_no_weight(data, ranker):
    per_query = np.random.default_rng(0).normal(size=(data.n_queries, 2))[data.qid]
    fitted = ranker.fit(Dataset(np.hstack([per_query, data.X]), data.y, data.qid))
    assert list(fitted.support_) == list(range(2, 8))


@pytest.mark.parametrize("ranker", [ListNet(), ListNet(solver="lbfgs"), CSListMLE()])
def test_no_feature_varies(ranker):
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 5, axis=0)
    fitted = ranker.fit(Dataset(X, np.tile([0.0, 1, 2, 0, 1], 4), np.repeat(range(4), 5)))
    assert not fitted.coef_.any()


@pytest.mark.parametrize("solver", ["gradient", "lbfgs"])
def test_query_weights_callback_and_warm_start(data, solver):
    weight, calls = np.linspace(0.2, 2, data.n_queries), []
    ranker = ListNet(solver=solver, tol=1e-6, max_iter=5000, warm_start=True)
    ranker.fit(data, query_weight=weight, callback=lambda n, w, objective, gap: calls.append((n, objective)))
    assert calls == list(enumerate(ranker.trace_.objective))
    assert ranker.objective_ == pytest.approx(independent_minimum(data, 0.0, weight)[0], rel=1e-6)
    cold = ranker.n_iter_
    assert ranker.fit(data, query_weight=weight).n_iter_ <= 2 < cold


@pytest.mark.parametrize(
    "parameters",
    [
        {"alpha": -1.0},
        {"tol": 0.0},
        {"max_iter": 0},
        {"solver": "adam"},
        {"alpha": 0.0, "solver": "newton"},
        {"alpha": 0.5, "solver": "lbfgs"},
    ],
)
def test_bad_parameters(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        ListNet(**parameters).fit(data)


def test_pairs_only_in_queries_of_weight_zero():
    queries = group_queries(np.array([0, 0, 1, 1]))
    with refused_data() as info:
        ListNetLoss().bind(np.array([1.0, 0.0, 1.0, 1.0]), queries, np.array([0.0, 1.0]))
    assert "pair" in info.value.reason


# ---------------------------------------------------------------- CS-ListMLE


@pytest.mark.parametrize("solver", ["proximal", "accelerated"])
def test_cslistmle_equals_listmle_without_penalty(data, solver):
    dense = CSListMLE(5, solver=solver, max_iter=200).fit(data)
    same = SparseListMLE(0.0, 5, solver=solver, max_iter=200).fit(data)
    np.testing.assert_array_equal(dense.coef_, same.coef_)
    assert np.isnan(dense.gap_)
    assert "alpha" not in dense.get_params()
    assert dense.to_model().method == "CSListMLE"


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0},
        {"solver": "newton"},
    ],
)
def test_bad_parameters_of_cslistmle(data, parameters):
    with refused_parameter(*next(iter(parameters.items()))):
        CSListMLE(**parameters).fit(data)


# ---------------------------------------------------------------- LETOR


@pytest.mark.letor
@pytest.mark.parametrize(
    ("name", "ndcg", "mean_ap", "sparsity"),
    [("OHSUMED", 0.4410, 0.4457, 36 / 45), ("MQ2008", 0.2303, 0.4775, 40 / 46)],
)
def test_published_numbers(letor_root, name, ndcg, mean_ap, sparsity):
    grid = parameter_grid(max_iter=[3, 10, 30, 100, 300, 1000])
    row = five_fold(ListNet, grid, load_letor_folds(name, letor_root)).to_row()
    assert row["ndcg@10"] == pytest.approx(ndcg, abs=0.012)
    assert row["map"] == pytest.approx(mean_ap, abs=0.012)
    assert row["sparsity"] == pytest.approx(sparsity)
