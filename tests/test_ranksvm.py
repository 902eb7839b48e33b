"""RankSVM and CSRankSVM: Hessian products, Newton steps, and LinearSVC on explicit pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from ranksieve._parallel import use_threads
from ranksieve.baselines import CSRankSVM, RankSVMStruct
from ranksieve.baselines.losses import Hinge
from ranksieve.baselines.svm import balance, ndcg_losses
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.data.queries import group_queries
from ranksieve.losses import SquaredHinge
from ranksieve.objective import LocalObjective
from ranksieve.penalties.l1 import Ridge
from ranksieve.rankers import RankSVM
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, pair_weights, squared_hinge
from tests.refusals import refused_data, refused_parameter
from tests.solving import newton, prox_newton


def linear_svc(data, C, weight=None):
    """LinearSVC on explicit pairs; every second pair is negated, because it needs two classes."""
    pairs = explicit_pairs(data.y, data.qid)
    K = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
    sign = np.where(np.arange(len(K)) % 2, 1, -1)
    svc = LinearSVC(C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-12, max_iter=100_000)
    return svc.fit(K * sign[:, None], sign, sample_weight=weight).coef_[0]


def objective_of(data, X=None, table=None, weight=None):
    loss = SquaredHinge(table).bind(data.y, data.queries, weight)
    return LocalObjective(data.X if X is None else X, loss)


@pytest.mark.parametrize("weighted", [False, True])
def test_curvature_is_the_hessian_on_explicit_pairs(weighted):
    data = random_dataset(seed=2, n_queries=7)
    rng = np.random.default_rng(0)
    table = rng.uniform(0.5, 2, size=(3, 3)) if weighted else None
    weight = rng.uniform(0.5, 2, data.n_queries) if weighted else None
    s, v = rng.normal(size=(2, data.n_docs))
    pairs = explicit_pairs(data.y, data.qid)
    hessian = squared_hinge(s, pairs, pair_weights(pairs, data.y, data.qid, weight, table))[2]
    bound = SquaredHinge(table).bind(data.y, data.queries, weight)
    at = bound.evaluate(s)
    np.testing.assert_allclose(bound.curvature(at, 0, data.n_queries, v), hessian @ v, atol=1e-10)
    rows = slice(data.queries.offsets[2], data.queries.offsets[5])
    np.testing.assert_allclose(bound.curvature(at, 2, 5, v[rows]), (hessian @ v)[rows], atol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scattered", [False, True])
def test_hessian_product_is_the_hessian_block_and_the_gradients_slope(kind, scattered):
    data = random_dataset(seed=3, n_queries=9)
    if scattered:
        data = data.select_rows(np.random.default_rng(0).permutation(data.n_docs))
    objective = objective_of(data, kind(data.X))
    w, v = np.random.default_rng(1).normal(size=(2, 5))
    point = objective.evaluate(w)
    product = objective.hessian_product(point, v)
    np.testing.assert_allclose(product, objective.hessian(point, np.arange(5)) @ v, atol=1e-12)
    ahead, behind = (objective.gradient(objective.evaluate(w + h * v)) for h in (1e-7, -1e-7))
    np.testing.assert_allclose(product, (ahead - behind) / 2e-7, atol=1e-6)


def test_hessian_products_are_bit_identical_for_any_number_of_threads(small_blocks):
    data = random_dataset(seed=5, n_queries=500, n_features=20, longest=30)
    objective = objective_of(data)
    assert len(objective.loss.cuts) > 3
    w, v = np.random.default_rng(1).normal(size=(2, 20))
    products = []
    for n in (1, 2, 4):
        with use_threads(n):
            products.append(objective.hessian_product(objective.evaluate(w), v))
    np.testing.assert_array_equal(products[0], products[1])
    np.testing.assert_array_equal(products[0], products[2])


@pytest.mark.parametrize("mu", [1e-6, 1e-2, 10.0])
def test_newton_agrees_with_proximal_newton_and_certifies_itself(mu):
    objective = objective_of(random_dataset(seed=6, n_queries=12))
    exact = prox_newton(objective, Ridge(mu), tol=1e-13)
    loose, tight = (newton(objective, Ridge(mu), tol=tol) for tol in (1e-2, 1e-12))
    np.testing.assert_allclose(tight.w, exact.w, atol=1e-6)
    assert tight.converged
    assert tight.gap <= 1e-12 * tight.objective
    assert loose.objective - exact.objective <= loose.gap <= 1e-2 * loose.objective
    assert np.all(np.diff(tight.trace.objective) < 0)
    assert len(tight.trace) == tight.n_iter + 1


def test_the_gap_is_the_smaller_of_the_gradient_bound_and_the_objective():
    objective, gaps = objective_of(random_dataset(seed=6)), []

    def check(n_iter, w, value, gap):
        g = objective.gradient(objective.evaluate(w)) + 0.3 * w
        gaps.append((gap, min(value, g @ g / 0.6)))

    newton(objective, Ridge(0.3), tol=1e-6, callback=check)
    assert len(gaps) > 1
    for reported, expected in gaps:
        assert reported == pytest.approx(expected, abs=1e-12)


def test_newton_stops_at_max_iter_without_convergence():
    result = newton(objective_of(random_dataset(seed=6)), Ridge(1e-4), tol=1e-14, max_iter=1)
    assert not result.converged
    assert result.n_iter == 1


@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_ranksvm_equals_linear_svc_on_explicit_pairs(C):
    data = random_dataset(seed=8, n_queries=10, n_features=6)
    fitted = RankSVM(C, tol=1e-13).fit(data)
    np.testing.assert_allclose(fitted.coef_, linear_svc(data, C), atol=1e-6)


def test_query_weights_equal_sample_weights_of_pairs():
    data = random_dataset(seed=9, n_queries=8)
    weight = np.random.default_rng(0).uniform(0.2, 3, data.n_queries)
    pairs = explicit_pairs(data.y, data.qid)
    expected = linear_svc(data, 0.5, pair_weights(pairs, data.y, data.qid, weight))
    fitted = RankSVM(0.5, tol=1e-13).fit(data, query_weight=weight)
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-6)


@pytest.mark.parametrize("kind", [RankSVM, CSRankSVM])
def test_average_uses_c_per_pair(kind):
    data = random_dataset(seed=9, n_queries=8)
    mean = kind(20.0, average=True, tol=1e-13).fit(data)
    weight = mean._problem(data, None).objective.loss.normaliser
    np.testing.assert_allclose(mean.coef_, kind(20.0 / weight, tol=1e-13).fit(data).coef_, atol=1e-9)


def test_objective_is_on_the_scale_of_the_mean_loss():
    data = random_dataset(seed=10)
    fitted = RankSVM(0.7).fit(data)
    pairs = explicit_pairs(data.y, data.qid)
    xi = np.maximum(0, 1 - (data.X[pairs[:, 0]] - data.X[pairs[:, 1]]) @ fitted.coef_)
    total = fitted.coef_ @ fitted.coef_ / 2 + 0.7 * xi @ xi
    assert fitted.objective_ * 0.7 * len(pairs) == pytest.approx(total, rel=1e-10)
    assert fitted.gap_ <= 1e-6 * fitted.objective_


@pytest.mark.parametrize("ranker", [RankSVM(1e-12), CSRankSVM(1e-12), RankSVMStruct(1e-9)])
def test_with_a_tiny_c_weights_follow_the_gradient(ranker):
    data = random_dataset(seed=10)
    squared = SquaredHinge(ndcg_losses(data.y, data.queries, np.ones(data.n_queries))[1])
    losses = {
        "RankSVM": SquaredHinge().bind(data.y, data.queries),
        "CSRankSVM": squared.bind(data.y, data.queries, balance(data)),
        "RankSVMStruct": Hinge().bind(data.y, data.queries),
    }
    objective = LocalObjective(data.X, losses[type(ranker).__name__])
    downhill = -objective.gradient(objective.at_zero)
    w = ranker.fit(data).coef_
    np.testing.assert_allclose(w / np.linalg.norm(w), downhill / np.linalg.norm(downhill), atol=1e-6)


@pytest.mark.parametrize("kind", [RankSVM, CSRankSVM])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_array])
def test_features_constant_within_queries_have_weight_zero(kind, matrix):
    data = random_dataset(seed=11, n_queries=20)
    of_query = np.random.default_rng(0).normal(size=20)[data.qid]
    X = np.column_stack([data.X, of_query, np.full(data.n_docs, 0.1)])
    wide = data.replace_features(matrix(X), [f"f{j}" for j in range(7)])
    np.testing.assert_array_equal(varying_columns(wide), [True] * 5 + [False] * 2)
    fitted = kind(0.1, tol=1e-12).fit(wide)
    np.testing.assert_array_equal(fitted.support_, np.arange(5))
    np.testing.assert_allclose(fitted.coef_[:5], kind(0.1, tol=1e-12).fit(data).coef_, atol=1e-7)


def test_warm_start_begins_at_the_last_fit():
    data = random_dataset(seed=12, n_queries=15)
    ranker = RankSVM(1.0, warm_start=True, tol=1e-10).fit(data)
    assert ranker.n_iter_ > 1
    assert ranker.fit(data).n_iter_ == 0


def test_cost_sensitive_ranksvm_on_explicit_pairs():
    data = random_dataset(seed=13, n_queries=9)
    table = np.array([[0, 0, 0], [0.5, 0, 0], [2.0, 1.0, 0]])
    pairs = explicit_pairs(data.y, data.qid)
    counts = np.bincount(data.qid[pairs[:, 0]], minlength=9)
    weight = np.where(counts > 0, counts.max() / np.maximum(counts, 1), 1.0)
    expected = linear_svc(data, 0.02, pair_weights(pairs, data.y, data.qid, weight, table))
    fitted = CSRankSVM(0.02, table, tol=1e-13).fit(data)
    np.testing.assert_allclose(fitted.coef_, expected, atol=1e-6)
    np.testing.assert_array_equal(fitted.level_weights_, table)


def test_balance_gives_every_query_the_same_number_of_pairs():
    data = Dataset(np.ones((7, 1)), [1, 0, 0, 1, 0, 2, 2], [0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(balance(data), [1.0, 2.0, 1.0])


def ndcg1_losses_by_swapping(y, qid):
    """Mean loss of NDCG@1 by swapping a pair of the perfect ranking, over all pairs of all queries."""
    labels = np.unique(y)
    sums, counts = np.zeros((2, len(labels), len(labels)))
    gain = 2.0 ** (y - y.min()) - 1.0
    for q in np.unique(qid):
        ranking = [int(i) for i in sorted(np.flatnonzero(qid == q), key=lambda i: -y[i])]
        for a, b in itertools.product(range(len(labels)), repeat=2):
            lost = []
            for i, j in itertools.product(ranking, repeat=2):
                if y[i] == labels[a] and y[j] == labels[b] and a > b:
                    first = {i: j, j: i}.get(ranking[0], ranking[0])
                    lost.append(1.0 - gain[first] / gain[ranking[0]])
            if lost:
                sums[a, b] += np.mean(lost)
                counts[a, b] += 1
    return sums / np.maximum(counts, 1)


@pytest.mark.parametrize("labels", [[0, 1, 2, 4], [-1.5, 0, 0.25, 3]])
def test_default_level_weights_are_the_mean_ndcg_lost_by_a_swap(labels):
    rng = np.random.default_rng(3)
    qid = rng.integers(0, 12, 60)
    y = rng.choice(labels, size=60)
    queries = group_queries(qid)
    level, table = ndcg_losses(y.astype(float), queries, np.ones(queries.n_queries))
    np.testing.assert_array_equal(np.unique(y)[level.astype(int)], y)
    np.testing.assert_allclose(table, ndcg1_losses_by_swapping(y, qid), atol=1e-12)
    assert table.sum() > 0


def test_level_weights_of_large_labels_are_finite():
    table = ndcg_losses(np.array([0.0, 2000.0, 5000.0]), group_queries([0, 0, 0]), np.ones(1))[1]
    np.testing.assert_array_equal(table[2], [1.0, 1.0, 0.0])


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0.0},
        {"C": np.inf},
        {"tol": -1.0},
        {"max_iter": 0},
    ],
)
def test_parameters_of_wrong_types(parameters, small):
    with refused_parameter(*next(iter(parameters.items()))):
        RankSVM(**parameters).fit(small)


@pytest.mark.parametrize("table", [np.ones((3, 2)), -np.ones((3, 3))])
def test_bad_parameters(table, small):
    with refused_parameter("level_weights", table):
        CSRankSVM(level_weights=table).fit(small)


def test_labels_outside_the_table(small):
    with refused_data() as info:
        CSRankSVM(level_weights=np.ones((2, 2))).fit(small)
    assert "integer labels 0 to 1" in info.value.reason


def test_too_many_labels_for_a_table():
    data = Dataset(np.random.default_rng(0).normal(size=(300, 2)), np.arange(300.0), np.zeros(300))
    with refused_data() as info:
        CSRankSVM().fit(data)
    assert "300 distinct labels" in info.value.reason
    assert len(RankSVM().fit(data).support_) == 2


def test_bad_query_weight(small):
    with refused_parameter("query_weight"):
        CSRankSVM().fit(small, query_weight=np.ones(3))


def test_without_varying_features_weights_are_zero():
    data = Dataset(np.full((4, 2), 0.1), [0, 1, 0, 1], [0, 0, 1, 1])
    fitted = RankSVM().fit(data)
    np.testing.assert_array_equal(fitted.coef_, 0.0)
    assert fitted.gap_ == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("scattered", [False, True])
def test_a_sample_is_the_loss_of_its_queries(scattered):
    data = random_dataset(seed=9, n_queries=30)
    if scattered:
        data = data.select_rows(np.random.default_rng(0).permutation(data.n_docs))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, data.n_queries)
    sample = objective_of(data, weight=weight).sample(4)
    part = data.select_queries(np.arange(0, data.n_queries, 4))
    alone = objective_of(part, weight=weight[::4])
    w = np.random.default_rng(2).normal(size=data.n_features)
    assert sample.evaluate(w).value == pytest.approx(alone.evaluate(w).value, rel=1e-12)
    np.testing.assert_allclose(
        sample.gradient(sample.evaluate(w)), alone.gradient(alone.evaluate(w)), atol=1e-13
    )


def test_queries_without_pairs_and_weighted_pairs_are_not_sampled():
    y = np.array([1.0, 1.0, 0.0, 1.0])
    data = Dataset(np.arange(8.0).reshape(4, 2), y, [0, 0, 1, 1])
    assert objective_of(data).sample(2) is None
    assert objective_of(data, table=np.tril(np.ones((2, 2)), -1)).sample(1) is None


@pytest.mark.parametrize("whole", [0, 1000])  # conjugate gradients, and the full Hessian
def test_newton_from_a_sample_and_from_zero_reach_the_same_optimum(whole, monkeypatch):
    data = random_dataset(seed=6, n_queries=60)
    monkeypatch.setattr("ranksieve.solvers.newton.MAX_HESSIAN_FEATURES", whole)
    expected = newton(objective_of(data), Ridge(1e-3), tol=1e-12)
    monkeypatch.setattr("ranksieve.solvers.base.SAMPLE_MIN_DOCUMENTS", data.n_docs)
    result = newton(objective_of(data), Ridge(1e-3), tol=1e-12)
    assert result.converged
    assert result.trace.objective[0] < expected.trace.objective[0]
    np.testing.assert_allclose(result.w, expected.w, atol=1e-6)
