"""RankSVMStruct: the hinge loss, the quadratic programme, cutting planes and their gap."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from ranksieve.baselines import RankSVMStruct
from ranksieve.baselines.losses import Hinge
from ranksieve.baselines.solvers import minimise_on_simplex
from ranksieve.data.queries import group_queries
from ranksieve.io.folds import load_letor_folds
from ranksieve.losses import SquaredHinge
from ranksieve.methods import parameter_grid
from ranksieve.objective import LocalObjective
from ranksieve.penalties.l1 import Ridge
from ranksieve.rankers import RankSVM
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, pair_weights
from tests.protocol import five_fold
from tests.refusals import refused_data, refused_parameter
from tests.solving import cutting_plane, newton
from tests.tiers import examples


def differences(data):
    pairs = explicit_pairs(data.y, data.qid)
    return data.X[pairs[:, 0]] - data.X[pairs[:, 1]]


def mean_hinge(data, C, w):
    """The objective of RankSVMStruct divided by C, computed on explicit pairs."""
    return np.mean(np.maximum(0, 1 - differences(data) @ w)) + w @ w / (2 * C)


def linear_svc_hinge(data, C):
    K = differences(data)
    sign = np.where(np.arange(len(K)) % 2, 1, -1)
    svc = LinearSVC(C=C / len(K), loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    return svc.fit(K * sign[:, None], sign).coef_[0]


@examples(60)
@given(st.integers(0, 2**31), st.booleans())
def test_hinge_on_explicit_pairs(seed, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    qid, y = rng.integers(0, 4, n), rng.integers(0, 4, n).astype(float)
    s = np.where(rng.uniform(size=n) < 0.5, rng.integers(-8, 9, n) / 4, rng.normal(size=n))
    queries, pairs = group_queries(qid), explicit_pairs(y, qid)
    weight = rng.uniform(0.5, 2, queries.n_queries) if weighted else None
    if len(pairs) == 0:
        with refused_data() as info:
            Hinge().bind(y, queries, weight)
        assert "pair" in info.value.reason
        return
    omega = pair_weights(
        pairs, y, qid, None if weight is None else dict(zip(queries.ids, weight, strict=True))
    )
    xi = np.maximum(0, 1 - (s[pairs[:, 0]] - s[pairs[:, 1]]))
    bound = Hinge().bind(y, queries, weight)
    at = bound.evaluate(queries.group(s))
    assert bound.normaliser == pytest.approx(omega.sum())
    assert at.value == pytest.approx(omega @ xi, abs=1e-10)
    # The subgradient inequality holds everywhere, also at kinks.
    gradient = queries.restore(at.gradient)
    for _ in range(5):
        z = s + rng.normal(size=n)
        there = omega @ np.maximum(0, 1 - (z[pairs[:, 0]] - z[pairs[:, 1]]))
        assert there >= at.value + gradient @ (z - s) - 1e-9
    # Elsewhere the subgradient is the gradient.
    if np.all(np.abs(1 - (s[pairs[:, 0]] - s[pairs[:, 1]])) > 1e-9):
        expected = np.zeros(n)
        np.add.at(expected, pairs[:, 0], -omega * (xi > 0))
        np.add.at(expected, pairs[:, 1], omega * (xi > 0))
        np.testing.assert_allclose(gradient, expected, atol=1e-10)
        assert at.slack == pytest.approx(omega @ (xi > 0))


def quadratic(Q, b, beta):
    return beta @ Q @ beta / 2 - b @ beta


@pytest.mark.parametrize("rank", [1, 3, 12])
@pytest.mark.parametrize("seed", range(8))
def test_simplex_programme_against_scipy(rank, seed):
    rng = np.random.default_rng(seed)
    m = 12
    A = rng.normal(size=(rank, m)) * 10.0 ** rng.uniform(-1, 1)
    Q, b, start = A.T @ A, rng.normal(size=m), np.zeros(m)
    start[rng.integers(m)] = 1.0
    beta = minimise_on_simplex(Q, b, start, 1e-12)
    assert np.all(beta >= 0)
    assert beta.sum() == pytest.approx(1.0, abs=1e-12)
    r = Q @ beta - b
    assert r @ beta - r.min() <= 1e-6  # bounds the distance from the minimum
    other = minimize(
        lambda z: quadratic(Q, b, z),
        np.full(m, 1 / m),
        jac=lambda z: Q @ z - b,
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1, "jac": lambda z: np.ones(m)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert quadratic(Q, b, beta) <= other.fun + 1e-7
    assert quadratic(Q, b, beta) == pytest.approx(other.fun, abs=1e-4)


def test_simplex_programme_with_equal_planes():
    """Two equal coordinates make the system singular; the minimum is the same."""
    Q, b = np.full((2, 2), 2.0), np.array([1.0, 1.0])
    beta = minimise_on_simplex(Q, b, np.array([1.0, 0.0]), 1e-12)
    assert quadratic(Q, b, beta) == pytest.approx(0.0)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("epsilon", [1e-1, 1e-3, 1e-5])
def test_the_gap_is_at_most_epsilon_and_valid(C, epsilon):
    data = random_dataset(seed=1, n_queries=10)
    fitted = RankSVMStruct(C, epsilon).fit(data)
    assert fitted.converged_
    assert 0 <= fitted.gap_ <= epsilon
    assert fitted.objective_ == pytest.approx(mean_hinge(data, C, fitted.coef_), rel=1e-10)
    tight = RankSVMStruct(C, 1e-9).fit(data)
    assert fitted.objective_ - tight.objective_ <= fitted.gap_ + 1e-9


@pytest.mark.parametrize("C", [0.1, 10.0, 300.0])
def test_objective_agrees_with_linear_svc(C):
    data = random_dataset(seed=2, n_queries=10)
    fitted = RankSVMStruct(C, 1e-8).fit(data)
    other = linear_svc_hinge(data, C)
    assert fitted.objective_ == pytest.approx(mean_hinge(data, C, other), abs=1e-6)
    np.testing.assert_allclose(fitted.coef_, other, atol=1e-2)


def test_cutting_planes_with_another_convex_loss():
    """The squared hinge by cutting planes and by Newton steps has the same minimum."""
    data = random_dataset(seed=3, n_queries=12)
    objective = LocalObjective(data.X, SquaredHinge().bind(data.y, data.queries))
    planes = cutting_plane(objective, Ridge(0.1), tol=1e-7)
    steps = newton(objective, Ridge(0.1), tol=1e-12)
    assert planes.converged
    assert steps.objective <= planes.objective + 1e-12
    assert planes.objective - steps.objective <= planes.gap <= 1e-7


def test_the_trace_never_increases_and_its_bound_never_decreases():
    data = random_dataset(seed=4, n_queries=10)
    trace = RankSVMStruct(100.0, 1e-6).fit(data).trace_
    assert len(trace) > 5
    assert np.all(np.diff(trace.objective) <= 0)
    assert np.all(np.diff(np.array(trace.objective) - trace.gap) >= -1e-12)


def test_an_early_stop_is_not_converged_and_has_a_valid_gap():
    data = random_dataset(seed=4, n_queries=10)
    early = RankSVMStruct(100.0, 1e-6, max_iter=4).fit(data)
    assert not early.converged_
    assert early.n_iter_ == 4
    best = RankSVMStruct(100.0, 1e-8).fit(data).objective_
    assert 1e-6 < early.objective_ - best <= early.gap_


def test_weight_two_equals_two_copies_of_the_query():
    data = random_dataset(seed=5, n_queries=8)
    weight = np.where(np.arange(8) == 3, 2.0, 1.0)
    rows = np.concatenate([np.arange(data.n_docs), np.flatnonzero(data.qid == 3)])
    twice = data.select_rows(rows)
    twice.qid = np.concatenate([data.qid, np.full(len(rows) - data.n_docs, 99)])
    weighted = RankSVMStruct(10.0, 1e-8).fit(data, query_weight=weight)
    doubled = RankSVMStruct(10.0, 1e-8).fit(twice)
    assert weighted.objective_ == pytest.approx(doubled.objective_, abs=1e-7)


@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array])
def test_features_constant_within_queries_have_weight_zero(matrix):
    data = random_dataset(seed=6, n_queries=20)
    X = np.column_stack([data.X, np.random.default_rng(0).normal(size=20)[data.qid]])
    fitted = RankSVMStruct(10.0).fit(data.replace_features(matrix(X), [f"f{j}" for j in range(6)]))
    np.testing.assert_array_equal(fitted.support_, np.arange(5))


def test_warm_start_needs_fewer_planes():
    data = random_dataset(seed=7, n_queries=20)
    ranker = RankSVMStruct(100.0, 1e-4, warm_start=True).fit(data)
    cold = ranker.n_iter_
    assert ranker.fit(data).n_iter_ < cold
    assert ranker.gap_ <= 1e-4


def test_the_dual_of_the_hinge_is_a_lower_bound():
    data = random_dataset(seed=8)
    objective = LocalObjective(data.X, Hinge().bind(data.y, data.queries))
    best = cutting_plane(objective, Ridge(0.1), tol=1e-7)
    point = objective.evaluate(best.w)
    g = objective.gradient(point)
    assert objective.dual(point, 1.0) - g @ g / 0.2 <= best.objective


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": -1.0},
        {"tol": 0.0},
        {"max_iter": 0},
    ],
)
def test_bad_parameters(parameters, small):
    with refused_parameter(*next(iter(parameters.items()))):
        RankSVMStruct(**parameters).fit(small)


PUBLISHED = {
    ("OHSUMED", RankSVM): (0.4504, 0.4446, 36 / 45),
    ("OHSUMED", RankSVMStruct): (0.4523, 0.4478, 36 / 45),
    ("MQ2008", RankSVM): (0.2309, 0.4744, 40 / 46),
    ("MQ2008", RankSVMStruct): (0.2279, 0.4696, 40 / 46),
}
TOLERANCE = {RankSVM: 0.01, RankSVMStruct: 0.012}


@pytest.mark.letor
@pytest.mark.parametrize(("data_set", "kind"), PUBLISHED)
def test_letor_baselines(letor_root, data_set, kind):
    options = {"average": True} if kind is RankSVM else {}
    grid = parameter_grid(C=[10.0**k for k in range(-3, 4)])
    row = five_fold(partial(kind, **options), grid, load_letor_folds(data_set, letor_root)).to_row()
    ndcg, average_precision, sparsity = PUBLISHED[data_set, kind]
    assert row["ndcg@10"] == pytest.approx(ndcg, abs=TOLERANCE[kind])
    assert row["map"] == pytest.approx(average_precision, abs=TOLERANCE[kind])
    assert row["sparsity"] == pytest.approx(sparsity, abs=1e-12)
