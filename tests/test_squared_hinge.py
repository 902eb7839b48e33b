"""The squared hinge against explicit pairs."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ranksieve.data.queries import group_queries
from ranksieve.losses import SquaredHinge
from tests.pairs import explicit_pairs, pair_weights, squared_hinge
from tests.refusals import refused_as, refused_data, refused_parameter
from tests.tiers import examples


@st.composite
def labelled_scores(draw):
    n = draw(st.integers(2, 40))
    elements = draw(st.sampled_from([st.integers(0, 3).map(float), st.floats(-5, 5)]))
    y = draw(hnp.arrays(float, n, elements=elements))
    qid = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    scale = draw(st.sampled_from([0.1, 1.0, 100.0]))
    return y, qid, scale * draw(hnp.arrays(float, n, elements=st.floats(-2, 2)))


@examples(150)
@given(labelled_scores(), st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_value_gradient_hessian(case, with_queries, with_levels, seed):
    y, qid, s = case
    rng = np.random.default_rng(seed)
    pairs = explicit_pairs(y, qid)
    all_integers = np.all(y == y.astype(int)) and y.min() >= 0 and y.max() < 4
    table = rng.uniform(0.1, 2, (4, 4)) if with_levels and all_integers else None
    queries = group_queries(qid)
    weight = rng.uniform(0.1, 2, queries.n_queries) if with_queries else None
    by_id = None if weight is None else dict(zip(queries.ids, weight, strict=True))
    omega = pair_weights(pairs, y, qid, by_id, table)
    if len(pairs) == 0:
        with refused_data() as info:
            SquaredHinge(table).bind(y, queries, weight)
        assert "pair" in info.value.reason
        return
    bound = SquaredHinge(table).bind(y, queries, weight)
    value, gradient, hessian, slack = squared_hinge(s, pairs, omega)
    at = bound.evaluate(queries.group(s))
    scale = 1 + np.abs(s).max()
    assert bound.normaliser == pytest.approx(omega.sum())
    assert at.value == pytest.approx(value, rel=1e-10, abs=1e-10 * scale)
    assert at.slack == pytest.approx(slack, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(queries.restore(at.gradient), gradient, rtol=1e-9, atol=1e-9 * scale)
    slack_of_pairs = 1 - (s[pairs[:, 0]] - s[pairs[:, 1]])
    if np.any(np.abs(slack_of_pairs) < 1e-9):
        return  # the second derivative is not unique at a kink
    V = rng.normal(size=(len(s), 2))
    parts = bound.curvature_of(at, 0, queries.n_queries, queries.group(V))
    np.testing.assert_allclose(parts.block(), V.T @ hessian @ V, atol=1e-9)
    np.testing.assert_allclose(parts.diagonal(), np.diag(V.T @ hessian @ V), atol=1e-9)


def test_the_value_is_precise_for_large_scores():
    """Scores near 1e6 with differences near 1: no catastrophic cancellation."""
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 3, 60).astype(float), np.repeat([0, 1], 30)
    s = rng.normal(size=60)
    s = (s + 1e6) - 1e6  # s rounded as in s + 1e6
    queries = group_queries(qid)
    near = SquaredHinge().bind(y, queries).evaluate(s).value
    far = SquaredHinge().bind(y, queries).evaluate(s + 1e6).value
    assert far == pytest.approx(near, rel=1e-13)


def test_many_levels():
    rng = np.random.default_rng(1)
    y, qid, s = rng.normal(size=300), np.repeat([0, 1, 2], 100), rng.normal(size=300)
    queries = group_queries(qid)
    pairs = explicit_pairs(y, qid)
    value, gradient, _, _ = squared_hinge(s, pairs, np.ones(len(pairs)))
    at = SquaredHinge().bind(y, queries).evaluate(s)
    assert at.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("table", "facts"),
    [
        (np.ones((2, 3)), ("level_weights", np.ones((2, 3)))),
        (np.full((3, 3), -1.0), ("level_weights", -1.0)),
        (np.ones((2, 2)), "labels 0 to 1"),
    ],
)
def test_bad_level_weights(small, table, facts):
    with refused_as(facts):
        SquaredHinge(table).bind(small.y, small.queries)


def test_bad_query_weights(small):
    with refused_parameter("query_weight"):
        SquaredHinge().bind(small.y, small.queries, np.ones(2))
    with refused_parameter("query_weight"):
        SquaredHinge().bind(small.y, small.queries, -np.ones(6))


def test_a_line_search_does_not_modify_its_start():
    rng = np.random.default_rng(3)
    y, queries = rng.integers(0, 3, 40).astype(float), group_queries(np.repeat([0, 1], 20))
    bound = SquaredHinge().bind(y, queries)
    s = rng.normal(size=40)
    at = bound.evaluate(s)
    before = deepcopy(at.state)
    slopes = bound.line(at, s, rng.normal(size=40))
    slopes(5.0)
    for name in ("better", "active_better", "active_pairs"):
        np.testing.assert_array_equal(getattr(at.state, name), getattr(before, name))


@pytest.mark.parametrize("n_labels", [3, 20])  # with lists of better documents, and with sorting
def test_overflowing_scores_do_not_hang(n_labels):
    """Centring ±1e308 overflows: the value is not finite, and all accesses are within bounds."""
    rng = np.random.default_rng(0)
    y, queries = rng.permutation(60) % n_labels * 1.0, group_queries(np.repeat([0, 1], 30))
    bound = SquaredHinge().bind(y, queries)
    near = bound.evaluate(rng.normal(size=60))
    with np.errstate(all="ignore"):
        for s in (rng.choice([-1.7e308, 1.7e308], 60), np.where(rng.random(60) < 0.5, 1.7e308, 0.0)):
            assert not bound.evaluate(s).value < 1e100
    assert bound.evaluate(rng.normal(size=60)).value < 1e4
    assert near.value < 1e4
