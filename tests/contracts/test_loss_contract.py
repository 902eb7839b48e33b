"""Every loss of the table: gradient and curvature against differences, block and thread independence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ranksieve._parallel import use_threads
from ranksieve.losses import LOSSES
from tests.conftest import random_dataset


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


def test_weight_two_is_the_query_twice(loss, data):
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


def test_the_previous_evaluation_leaves_no_trace(loss, data):
    bound = loss.bind(data.y, data.queries)
    rng = np.random.default_rng(5)
    s, other = np.round(rng.normal(size=data.n_docs), 1), rng.normal(size=data.n_docs)
    first = bound.evaluate(s)
    bound.evaluate(other)
    again = bound.evaluate(s)
    assert first.value == again.value
    np.testing.assert_array_equal(first.gradient, again.gradient)


def test_same_bits_for_any_number_of_threads(loss, small_blocks):
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
