"""Every loss on ranges of queries: parts add up to the whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranksieve.losses import SquaredHinge
from tests.conftest import random_dataset
from tests.rankers import LOSSES

KINDS = {**LOSSES, "squared_hinge of level weights": lambda: SquaredHinge(np.tri(3, k=-1) * [[1], [2], [5]])}


@pytest.fixture(params=KINDS)
def bound(request):
    data = random_dataset(seed=21, n_queries=7, longest=10)
    y = data.y if "level" in request.param else data.y * np.array([1.0, 2.0])[data.qid % 2]
    weight = np.random.default_rng(22).uniform(0.5, 2.0, data.n_queries)
    return KINDS[request.param]().bind(y, data.queries, weight)


def test_curvatures_of_ranges_add_up_to_the_whole(bound):
    rng = np.random.default_rng(23)
    n, offsets = bound.queries.n_rows, bound.queries.offsets
    at, V = bound.evaluate(rng.normal(size=n)), rng.normal(size=(n, 3))
    whole = bound.curvature_of(at, 0, bound.queries.n_queries, V).block()
    parts = [
        bound.curvature_of(at, a, b, V[offsets[a] : offsets[b]]).block()
        for a, b in itertools.pairwise([0, 2, 3, 5, 7])
    ]
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-11, atol=1e-11)
    if "hessian_product" in bound.offers:
        products = [
            bound.curvature(at, a, b, V[offsets[a] : offsets[b], 0].copy())
            for a, b in itertools.pairwise([0, 2, 3, 5, 7])
        ]
        np.testing.assert_allclose(V.T @ np.concatenate(products), whole[:, 0], rtol=1e-11, atol=1e-11)


def test_blocks_of_one_query_are_bit_identical_to_one_block(bound):
    s = np.random.default_rng(24).normal(size=bound.queries.n_rows)
    whole = bound.evaluate(s)
    bound.cuts = np.arange(bound.queries.n_queries + 1)
    by_query = bound.evaluate(s)
    assert by_query.value == pytest.approx(whole.value, rel=1e-14)
    np.testing.assert_array_equal(by_query.gradient, whole.gradient)
