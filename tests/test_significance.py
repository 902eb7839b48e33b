"""Paired tests against scipy, enumeration and hand-computed values."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ranksieve.data.dataset import Dataset
from ranksieve.metrics import PROFILES, Evaluation, evaluate, significance
from ranksieve.metrics.significance import compare, holm, paired_t, randomisation
from tests.refusals import refused_as, refused_data, refused_parameter
from tests.tiers import examples

ALTERNATIVES = ("two-sided", "greater")
every_alternative = pytest.mark.parametrize("alternative", ALTERNATIVES)


def evaluation(*values, profile="letor", empty=0.0, **more):
    """An evaluation with these values of map (and other metrics) for queries 0, 1, …"""
    per_query = {name: np.array(v, dtype=float) for name, v in {"map": values, **more}.items()}
    mean = {name: float(np.nanmean(v)) for name, v in per_query.items()}
    return Evaluation(mean, per_query, np.arange(len(values)), PROFILES[profile], empty)


def two_samples(n, seed=0, shift=0.05):
    rng = np.random.default_rng(seed)
    b = rng.random(n)
    return b + rng.normal(shift, 0.2, n), b


# Holm


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.9, 0.8]), [1.0, 1.0])
    assert holm([0.02]).tolist() == [0.02]
    assert holm([]).shape == (0,)


@examples(60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_equals_the_step_down_procedure(p_values, level):
    rejected = set()
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if (len(p_values) - step) * p_values[index] > level:
            break
        rejected.add(index)
    assert set(np.flatnonzero(holm(p_values) <= level)) == rejected


# Paired t


@every_alternative
@pytest.mark.parametrize("n", [2, 5, 100])
def test_paired_t_equals_scipy(n, alternative):
    a, b = two_samples(n)
    expected = stats.ttest_rel(a, b, alternative=alternative).pvalue
    assert paired_t(a, b, alternative) == pytest.approx(expected, rel=1e-10)


def test_paired_t_by_hand():
    # Differences 1, 2, 3: t = 2 / (1/√3) = √12 with 2 degrees of freedom, p = 1 − t/√(2 + t²) = 1 − √(6/7).
    assert paired_t([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) == pytest.approx(1 - math.sqrt(6 / 7), rel=1e-12)
    assert paired_t([1.0, 2.0, 3.0], [0.0] * 3, "greater") == pytest.approx((1 - math.sqrt(6 / 7)) / 2)


@every_alternative
def test_without_differences_p_is_one(alternative):
    a = np.random.default_rng(0).random(50)
    assert paired_t(a, a, alternative) == 1.0
    assert randomisation(a, a.copy(), alternative=alternative) == 1.0


def test_rounding_errors_are_not_differences():
    a, b = np.full(8, 0.1 + 0.2), np.full(8, 0.3)
    a[-1] = b[-1] = 0.7
    assert (a > b).sum() == 7
    assert paired_t(a, b) == 1.0
    assert randomisation(a, b) == 1.0
    assert compare({"a": evaluation(*a), "b": evaluation(*b)}).rows[0].ties == 8


def test_constant_differences():
    b = np.random.default_rng(0).random(12)
    assert paired_t(b + 0.1, b) == 0.0
    assert paired_t(b + 0.1, b, "greater") == 0.0
    assert paired_t(b, b + 0.1, "greater") == 1.0
    assert randomisation(b + 0.1, b) == 2 / 2**12
    assert randomisation(b + 0.1, b, alternative="greater") == 1 / 2**12


def test_one_query_is_never_significant():
    assert paired_t([1.0], [0.0]) == 1.0
    assert randomisation([1.0], [0.0]) == 1.0
    assert randomisation([1.0], [0.0], alternative="greater") == 0.5


# Randomisation


def enumerated(a, b, alternative):
    difference = np.subtract(a, b)
    sums = [np.dot(signs, difference) for signs in product([1, -1], repeat=len(difference))]
    observed = difference.sum()
    if alternative == "two-sided":
        sums, observed = np.abs(sums), abs(observed)
    return np.mean(np.array(sums) >= observed - 1e-9)


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8),
    st.sampled_from(ALTERNATIVES),
)
def test_randomisation_is_exact_for_few_queries(pairs, alternative):
    a, b = np.array(pairs).T / 4
    assert randomisation(a, b, alternative=alternative) == enumerated(a, b, alternative)


@every_alternative
def test_randomisation_equals_scipy_when_exact(alternative):
    a, b = two_samples(12)
    expected = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
        alternative=alternative, vectorized=True, n_resamples=np.inf,
    ).pvalue  # fmt: skip
    assert randomisation(a, b, alternative=alternative) == pytest.approx(expected, rel=1e-12)


@every_alternative
def test_random_flips_approximate_the_exact_value(alternative):
    a, b = two_samples(14)
    exact = randomisation(a, b, 2**14, alternative=alternative)
    approximate = randomisation(a, b, 2**14 - 1, alternative=alternative)
    assert 0.05 < exact < 0.95
    # Four standard errors of a share of 16,383 draws.
    assert approximate != exact
    assert abs(approximate - exact) < 4 * math.sqrt(exact * (1 - exact) / (2**14 - 1))


def test_random_flips_follow_the_seed():
    a, b = two_samples(200, shift=0.01)
    p = [randomisation(a, b, 999, random_state=seed) for seed in (0, 0, 1)]
    assert p[0] == p[1] != p[2]


def test_p_values_are_never_zero():
    a, b = two_samples(300, shift=1.0)
    assert randomisation(a, b, 999) == 1 / 1000


def test_chunks_do_not_change_the_exact_value(monkeypatch):
    a, b = two_samples(10)
    whole = randomisation(a, b)
    monkeypatch.setattr(significance, "_CHUNK_CELLS", 70)
    assert randomisation(a, b) == whole


@every_alternative
def test_missing_pairs_are_dropped(alternative):
    a, b = two_samples(9)
    a_gap, b_gap = np.append(a, [np.nan, 0.3, np.nan]), np.append(b, [0.5, np.nan, np.nan])
    assert paired_t(a_gap, b_gap, alternative) == paired_t(a, b, alternative)
    assert randomisation(a_gap, b_gap, alternative=alternative) == randomisation(
        a, b, alternative=alternative
    )


def test_bad_arguments_of_the_tests():
    with refused_parameter("b"):
        paired_t([1.0, 2.0], [1.0, 2.0, 3.0])
    with refused_parameter("alternative", "less"):
        randomisation([1.0], [2.0], alternative="less")
    with refused_parameter("alternative", "less"):
        paired_t([1.0], [2.0], "less")
    with refused_parameter("n_permutations", 0):
        randomisation([1.0], [2.0], 0)


# Comparison


def test_one_row_by_hand():
    (row,) = compare({"new": evaluation(0.5, 0.5, 0.8, 0.2), "old": evaluation(0.25, 0.5, 0.4, 0.35)}).rows
    assert (row.metric, row.a, row.b, row.n_queries) == ("map", "new", "old", 4)
    assert (row.wins, row.ties, row.losses) == (2, 1, 1)
    assert row.mean_a == pytest.approx(0.5)
    assert row.mean_b == pytest.approx(0.375)
    assert row.difference == pytest.approx(0.125)
    assert row.relative_change == pytest.approx(1 / 3)
    assert row.p_randomisation == 4 / 8  # |±.25 ± .4 ± .15| ≥ .5 for four of the eight sign patterns
    assert row.p_t_holm == row.p_t == pytest.approx(stats.ttest_1samp([0.25, 0, 0.4, -0.15], 0).pvalue)


def test_all_pairs_in_order():
    systems = {name: evaluation(*two_samples(20, seed)[0]) for seed, name in enumerate("abc")}
    assert [(row.a, row.b) for row in compare(systems).rows] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_comparison_with_a_baseline():
    systems = {name: evaluation(*two_samples(20, seed)[0]) for seed, name in enumerate("abc")}
    result = compare(systems, baseline="b")
    assert [(row.a, row.b) for row in result.rows] == [("a", "b"), ("c", "b")]
    (forward, _), (backward, *_) = result.rows, compare(systems, baseline="a").rows
    assert forward.difference == -backward.difference
    assert (forward.wins, forward.losses) == (backward.losses, backward.wins)
    assert forward.p_t == pytest.approx(backward.p_t)


def test_holm_corrects_over_the_pairs_of_one_metric():
    systems = {
        name: evaluation(*two_samples(30, seed, 0.1 * seed)[0], **{"p@1": two_samples(30, seed + 9)[0]})
        for seed, name in enumerate("abc")
    }
    rows = compare(systems).rows
    assert [row.metric for row in rows] == ["map"] * 3 + ["p@1"] * 3
    for of_metric in (rows[:3], rows[3:]):
        np.testing.assert_array_equal([r.p_t_holm for r in of_metric], holm([r.p_t for r in of_metric]))
        expected = holm([r.p_randomisation for r in of_metric])
        np.testing.assert_array_equal([r.p_randomisation_holm for r in of_metric], expected)


def test_one_sided_comparison():
    systems = {"good": evaluation(*two_samples(50, shift=0.3)[0]), "bad": evaluation(*two_samples(50)[1])}
    (right,) = compare(systems, alternative="greater").rows
    (wrong,) = compare(systems, baseline="good", alternative="greater").rows
    assert right.p_t < 0.01 < 0.99 < wrong.p_t
    assert right.p_randomisation < 0.01 < 0.99 < wrong.p_randomisation
    assert right.p_t + wrong.p_t == pytest.approx(1)


def test_equal_systems():
    (row,) = compare({"a": evaluation(0.0, 0.0), "b": evaluation(0.0, 0.0)}).rows
    assert (row.difference, row.p_t, row.p_randomisation, row.p_t_holm) == (0.0, 1.0, 1.0, 1.0)
    assert (row.wins, row.ties, row.losses) == (0, 2, 0)
    assert math.isnan(row.relative_change)


def test_skipped_queries_are_excluded():
    nan = math.nan
    a, b = evaluation(0.5, nan, 0.7, 0.1, empty="skip"), evaluation(0.4, nan, 0.2, nan, empty="skip")
    (row,) = compare({"a": a, "b": b}).rows
    assert (row.n_queries, row.wins, row.ties, row.losses) == (2, 2, 0, 0)
    assert row.mean_a == pytest.approx(0.6)
    with refused_data() as info:
        compare({"a": evaluation(1.0, nan, empty="skip"), "b": evaluation(nan, 1.0, empty="skip")})
    assert "no query" in info.value.reason


def test_default_metrics_are_the_common_ones():
    a, b = evaluation(0.1, 0.2, mrr=[1, 1], err=[0, 1]), evaluation(0.1, 0.3, err=[1, 1])
    assert [row.metric for row in compare({"a": a, "b": b}).rows] == ["map", "err"]
    assert [row.metric for row in compare({"a": a, "b": b}, metrics="ERR").rows] == ["err"]
    with refused_parameter("metrics", "mrr"):
        compare({"a": a, "b": b}, metrics=["map", "mrr"])


def test_to_dict_is_json():
    result = compare({"a": evaluation(0.5, 0.1), "b": evaluation(0.0, 0.0)}, baseline="b", random_state=3)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (plain["baseline"], plain["alternative"], plain["random_state"]) == ("b", "two-sided", 3)
    assert plain["n_permutations"] == 10_000
    assert plain["rows"][0]["relative_change"] is None
    assert plain["rows"][0]["difference"] == pytest.approx(0.3)


def test_real_evaluations():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600).astype(float)
    data = Dataset(np.zeros((600, 1)), labels, np.repeat(np.arange(40), 15))
    scores = {noise: labels + rng.normal(0, noise, 600) for noise in (0.5, 3.0)}
    clear, vague = (evaluate(scores[noise], data, ["ndcg@10", "map"]) for noise in scores)
    result = compare({"clear": clear, "vague": vague}, alternative="greater")
    assert [row.metric for row in result.rows] == ["ndcg@10", "map"]
    assert all(row.p_t < 1e-4 and row.p_randomisation == 1 / 10_001 for row in result.rows)
    assert result.rows[1].mean_a == pytest.approx(clear.mean["map"])


@pytest.mark.parametrize(
    ("others", "options", "facts"),
    [
        ({}, {}, ("evaluations", ["a"])),
        ({"b": evaluation(1.0)}, {}, "2 and 1 queries"),
        ({"b": evaluation(1, 0, profile="mslr")}, {}, "'b' mslr"),
        ({"b": evaluation(1, 0, empty=1.0)}, {}, "`empty=1.0`"),
        ({"b": evaluation(1, 0)}, {"baseline": "c"}, ("baseline", "c")),
        ({"b": evaluation(1, 0)}, {"alternative": "less"}, ("alternative", "less")),
        ({"b": evaluation(1, 0)}, {"metrics": "mapp"}, ("metric", "mapp")),
    ],
)
def test_refusals_of_comparisons(others, options, facts):
    with refused_as(facts):
        compare({"a": evaluation(0.5, 0.5), **others}, **options)


def test_no_shared_metric():
    a = evaluation(1, 0)
    b = Evaluation({}, {"mrr": np.ones(2)}, a.query_ids, a.profile, a.empty)
    with refused_data() as info:
        compare({"a": a, "b": b})
    assert "no metric in common" in info.value.reason
