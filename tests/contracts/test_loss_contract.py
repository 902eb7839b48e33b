"""Every loss: gradient and curvature against finite differences, weights, blocks and threads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ranksieve._parallel import use_threads
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.data.dataset import Dataset
from ranksieve.losses import SquaredHinge
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs, pair_weights, squared_hinge
from tests.rankers import LOSSES
from tests.refusals import refused_parameter


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]()


@pytest.fixture
def data():
    return random_dataset(seed=3, n_queries=8, longest=12)


def test_gradient_against_differences(loss, data):
    bound = loss.bind(data.y, data.queries)
    s = np.random.default_rng(0).normal(size=data.n_docs)
    gradient = bound.evaluate(s).gradient
    h = 1e-6
    for i in range(data.n_docs):
        e = np.zeros(data.n_docs)
        e[i] = h
        difference = (bound.evaluate(s + e).value - bound.evaluate(s - e).value) / (2 * h)
        assert gradient[i] == pytest.approx(difference, abs=1e-6)


def test_curvature_against_differences(loss, data):
    bound = loss.bind(data.y, data.queries)
    rng = np.random.default_rng(1)
    s, V = rng.normal(size=data.n_docs), rng.normal(size=(data.n_docs, 3))
    at = bound.evaluate(s)
    parts = bound.curvature_of(at, 0, data.n_queries, V)
    h = 1e-7
    SV = np.column_stack(
        [(bound.evaluate(s + h * v).gradient - bound.evaluate(s - h * v).gradient) / (2 * h) for v in V.T]
    )
    np.testing.assert_allclose(parts.block(), V.T @ SV, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(parts.diagonal(), np.diag(parts.block()), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(parts.times(3.0).block(), 3.0 * parts.block(), rtol=1e-12)


def test_gradient_sums_to_zero_within_each_query(loss, data):
    bound = loss.bind(data.y, data.queries)
    gradient = bound.evaluate(np.random.default_rng(2).normal(size=data.n_docs)).gradient
    np.testing.assert_allclose(np.add.reduceat(gradient, data.queries.offsets[:-1]), 0, atol=1e-10)


def test_a_constant_added_to_a_query_changes_nothing(loss, data):
    bound = loss.bind(data.y, data.queries)
    s = np.random.default_rng(2).normal(size=data.n_docs)
    shift = np.repeat(1e6 * np.random.default_rng(3).normal(size=data.n_queries), data.queries.sizes)
    a, b = bound.evaluate(s), bound.evaluate(s + shift)
    assert a.value == pytest.approx(b.value, rel=1e-7)


def test_weight_two_equals_two_copies_of_the_query(loss, data):
    s = np.random.default_rng(4).normal(size=data.n_docs)
    weight = np.ones(data.n_queries)
    weight[1] = 2.0
    weighted = loss.bind(data.y, data.queries, weight)
    rows = np.concatenate([np.arange(data.n_docs), data.queries.rows(np.array([1]))])
    twice = data.select_rows(rows)
    twice.qid = np.concatenate([data.qid, np.full(len(rows) - data.n_docs, -1)])
    doubled = loss.bind(twice.y, twice.queries)
    assert weighted.normaliser == pytest.approx(doubled.normaliser)
    assert weighted.evaluate(s).value == pytest.approx(doubled.evaluate(twice.queries.group(s[rows])).value)


def test_evaluations_are_independent(loss, data):
    bound = loss.bind(data.y, data.queries)
    rng = np.random.default_rng(5)
    s, other = np.round(rng.normal(size=data.n_docs), 1), rng.normal(size=data.n_docs)
    first = bound.evaluate(s)
    bound.evaluate(other)
    again = bound.evaluate(s)
    assert first.value == again.value
    np.testing.assert_array_equal(first.gradient, again.gradient)


def test_bit_identical_for_any_number_of_threads(loss, small_blocks):
    data = random_dataset(seed=6, n_queries=600, longest=30)
    bound = loss.bind(data.y, data.queries)
    assert len(bound.cuts) > 3
    s = np.random.default_rng(7).normal(size=data.n_docs)
    results = []
    for n in (1, 2, 3):
        with use_threads(n):
            results.append(bound.evaluate(s))
    for other in results[1:]:
        assert other.value == results[0].value
        np.testing.assert_array_equal(other.gradient, results[0].gradient)


def test_pickle(loss):
    assert pickle.loads(pickle.dumps(loss)).name == loss.name


# --- Weights of documents -----------------------------------------------------------------------------------

LEVELS = np.array([[0, 0, 0], [1, 0, 0], [4, 2, 0]], dtype=float)
WEIGHING = {
    **{name: make for name, make in LOSSES.items() if name != "average_precision"},
    "squared_hinge of level weights": lambda: SquaredHinge(LEVELS),
    "squared_hinge of many labels": SquaredHinge,
    "modified_huber of gains": lambda: ModifiedHuber(gain=np.arange(200.0) % 7),
}
MANY = "squared_hinge of many labels"


@pytest.fixture(params=WEIGHING)
def weighed(request, data):
    """(loss, data with document weights, some of them 0); queries and labels are in random order."""
    mixed = data.select_rows(np.random.default_rng(8).permutation(data.n_docs))
    weight = np.random.default_rng(9).choice([0.0, 0.3, 1.0, 2.5], mixed.n_docs)
    weight[mixed.qid == mixed.qid[0]] = 0.0  # a query whose documents all have weight 0
    y = mixed.y + 0.01 * np.arange(mixed.n_docs) if request.param == MANY else mixed.y
    loss = WEIGHING[request.param]()
    if getattr(loss, "gain", None) is not None:
        loss = ModifiedHuber(gain=loss.gain[: mixed.n_docs])
    return loss, Dataset(mixed.X, y, mixed.qid, document_weight=weight)


def bound_to(loss, data, weight=None, query_weight=None):
    weight = data.document_weight if weight is None else weight
    return loss.bind(data.y, data.queries, query_weight, weight)


def test_weighted_gradient_and_curvature_against_differences(weighed):
    loss, data = weighed
    bound, rng, h = bound_to(loss, data), np.random.default_rng(1), 1e-6
    s, V = rng.normal(size=data.n_docs), rng.normal(size=(data.n_docs, 3))
    at = bound.evaluate(s)
    steps = h * np.eye(data.n_docs)
    slopes = [(bound.evaluate(s + e).value - bound.evaluate(s - e).value) / (2 * h) for e in steps]
    np.testing.assert_allclose(at.gradient, slopes, atol=2e-6)
    bends = [(bound.evaluate(s + h * v).gradient - bound.evaluate(s - h * v).gradient) / (2 * h) for v in V.T]
    SV = np.column_stack(bends)
    parts = bound.curvature_of(at, 0, data.n_queries, V)
    np.testing.assert_allclose(parts.block(), V.T @ SV, rtol=1e-5, atol=1e-5)
    if "hessian_product" in bound.offers:
        product = bound.curvature(at, 0, data.n_queries, V[:, 0].copy())
        np.testing.assert_allclose(product, SV[:, 0], rtol=1e-5, atol=1e-5)
    if "line" in bound.offers:
        slope, bend = bound.line(at, s - 0.3 * V[:, 0], V[:, 0])(0.3)
        assert slope == pytest.approx(at.gradient @ V[:, 0])
        assert bend == pytest.approx(V[:, 0] @ SV[:, 0], rel=1e-5)


def test_document_weight_two_equals_two_copies_and_zero_equals_absence(weighed):
    loss, data = weighed
    times = np.random.default_rng(10).integers(0, 4, data.n_docs)
    times[data.qid == data.qid[0]] = 0
    rows = np.repeat(np.arange(data.n_docs), times)
    copies = data.select_rows(rows)
    s = np.random.default_rng(11).normal(size=data.n_docs)
    queries, order = data.queries, copies.queries
    gains = getattr(loss, "gain", None)
    one = bound_to(loss, data, times)
    other = bound_to(loss if gains is None else ModifiedHuber(gains[rows]), copies, np.ones(len(rows)))
    ours, theirs = one.evaluate(queries.group(s)), other.evaluate(order.group(s[rows]))
    assert one.normaliser == pytest.approx(other.normaliser, rel=1e-13)
    assert ours.value == pytest.approx(theirs.value, rel=1e-12)
    assert ours.slack == pytest.approx(theirs.slack, rel=1e-12)
    of_copies = np.bincount(rows, order.restore(theirs.gradient), minlength=data.n_docs)
    np.testing.assert_allclose(queries.restore(ours.gradient), of_copies, atol=1e-11)
    V = np.random.default_rng(12).normal(size=(data.n_docs, 3))
    block = one.curvature_of(ours, 0, queries.n_queries, queries.group(V)).block()
    expected = other.curvature_of(theirs, 0, order.n_queries, order.group(V[rows])).block()
    np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-10)


def test_weights_that_are_all_one_change_nothing(loss, data):
    if loss.name == "average_precision":
        with refused_parameter("document_weight"):
            loss.bind(data.y, data.queries, None, np.ones(data.n_docs))
        return
    s = np.random.default_rng(13).normal(size=data.n_docs)
    plain, ones = loss.bind(data.y, data.queries), loss.bind(data.y, data.queries, None, np.ones(data.n_docs))
    assert plain.evaluate(s).value == ones.evaluate(s).value
    tripled = loss.bind(data.y, data.queries, None, np.full(data.n_docs, 3.0))
    if loss.name != "cost_sensitive_listmle":  # its positions depend on the weights
        mean = plain.evaluate(s).value / plain.normaliser
        assert tripled.evaluate(s).value / tripled.normaliser == pytest.approx(mean, rel=1e-13)


def test_a_weighted_dual_is_never_above_a_weighted_value(weighed):
    """f(v) ≥ D(c) + c⟨∇f(s), v⟩ for all scores v, the inequality behind every certificate."""
    loss, data = weighed
    bound, rng = bound_to(loss, data), np.random.default_rng(14)
    for spread in (0.1, 1.0, 5.0):
        at = bound.evaluate(spread * rng.normal(size=data.n_docs))
        value, slack = at.value / bound.normaliser, at.slack / bound.normaliser
        for scale in (0.2, 0.9, 1.0):
            v = spread * rng.normal(size=data.n_docs)
            least = bound.dual(value, slack, scale) + scale * float(at.gradient @ v) / bound.normaliser
            if loss.name == "listnet":  # its dual may use a smaller scale
                least = scale * slack + scale * float(at.gradient @ v) / bound.normaliser
            assert bound.evaluate(v).value / bound.normaliser >= least - 1e-12


def test_weighted_losses_are_bit_identical_for_any_number_of_threads(loss, small_blocks):
    if loss.name == "average_precision":
        return
    data = random_dataset(seed=6, n_queries=600, longest=30)
    weight = np.random.default_rng(15).random(data.n_docs)
    bound = loss.bind(data.y, data.queries, None, weight)
    s, results = np.random.default_rng(7).normal(size=data.n_docs), []
    for n in (1, 2):
        with use_threads(n):
            results.append(bound.evaluate(s))
    assert results[0].value == results[1].value
    np.testing.assert_array_equal(results[0].gradient, results[1].gradient)


@pytest.mark.parametrize("name", ["squared_hinge", MANY, "squared_hinge of level weights"])
def test_weighted_squared_hinge_against_explicit_pairs(name, data):
    y = data.y + 0.01 * np.arange(data.n_docs) if name == MANY else data.y
    rng = np.random.default_rng(16)
    weight, of_query = rng.random(data.n_docs), rng.random(data.n_queries)
    s, pairs = rng.normal(size=data.n_docs), explicit_pairs(y, data.qid)
    levels = LEVELS if "level" in name else None
    omega = pair_weights(pairs, y, data.qid, of_query, levels) * weight[pairs[:, 0]] * weight[pairs[:, 1]]
    value, gradient, hessian, slack = squared_hinge(s, pairs, omega)
    bound = SquaredHinge(levels).bind(y, data.queries, of_query, weight)
    at, V = bound.evaluate(s), rng.normal(size=(data.n_docs, 2))
    assert bound.normaliser == pytest.approx(omega.sum(), rel=1e-13)
    assert (at.value, at.slack) == (pytest.approx(value, rel=1e-12), pytest.approx(slack, rel=1e-12))
    np.testing.assert_allclose(at.gradient, gradient, atol=1e-12)
    np.testing.assert_allclose(
        bound.curvature_of(at, 0, data.n_queries, V).block(), V.T @ hessian @ V, rtol=1e-11, atol=1e-11
    )
