"""The modified Huber loss against its definition over pairs, with gains, discounts and weights."""

from __future__ import annotations

import numpy as np
import pytest

from ranksieve.baselines.modified_huber import ModifiedHuber
from tests.conftest import random_dataset
from tests.pairs import explicit_pairs


@pytest.mark.parametrize("weighted", [False, True])
def test_value_slack_and_gradient_on_explicit_pairs(weighted):
    data, rng = random_dataset(seed=31, n_queries=5, longest=9), np.random.default_rng(32)
    n = len(data.y)
    s, gain, discount = 1.5 * rng.normal(size=n), rng.uniform(0.0, 3.0, n), rng.uniform(0.0, 3.0, n)
    document_weight = rng.uniform(0.5, 2.0, n)
    bound = ModifiedHuber(gain, discount).bind(
        data.y, data.queries, None, document_weight if weighted else None
    )
    value, slack, gradient = 0.0, 0.0, np.zeros(n)
    for i, j in explicit_pairs(data.y, data.qid):
        omega = abs(gain[i] - gain[j]) * abs(discount[i] - discount[j])
        omega *= document_weight[i] * document_weight[j] if weighted else 1.0
        t = s[i] - s[j]
        psi, slope = (-4.0 * t, -4.0) if t < -1.0 else (max(0.0, 1.0 - t) ** 2, -2.0 * max(0.0, 1.0 - t))
        value += omega * psi
        slack += omega * (psi - t * slope)
        gradient[[i, j]] += omega * slope * np.array([1.0, -1.0])
    at = bound.evaluate(s)
    assert at.value == pytest.approx(value, rel=1e-13)
    assert at.slack == pytest.approx(slack, rel=1e-13)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-12, atol=1e-12)
