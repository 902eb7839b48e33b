"""Formatting of numbers, differences between rankers, the table of features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ranksieve.errors import short_list
from ranksieve.report.page import MAX_ROWS, Column, difference, feature_table, significance_answer
from ranksieve.show.formats import (
    certificate,
    join_names,
    p_value,
    percent,
    percent_text,
    plural,
    share_text,
    signed,
    weight_text,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (9.2e-7, "9.2e-5 %"), (0.5, "50 %"), (1.234e-3, "0.12 %"), (2.7e-10, "2.7e-8 %"),
        (1.2e-5, "0.0012 %"), (0.0, "0 %"), (1e-9, "1.0e-7 %"),
    ],
)  # fmt: skip
def test_percent_has_two_digits(share, text):
    assert percent(share) == text


def test_text_of_certificates():
    assert certificate(9.2e-7) == "within 9.2e-5 % of the optimum"
    assert certificate(0.0) == "optimal up to rounding"
    assert certificate(0.37) == "not proven to be close to optimal (gap 37 %)"
    assert certificate(None).startswith("without a proof")


def test_formats_of_numbers():
    assert [p_value(p) for p in (0.0, 9e-5, 0.0123, 1.0)] == [
        "p < 0.0001", "p < 0.0001", "p = 0.012", "p = 1",
    ]  # fmt: skip
    assert [signed(v) for v in (0.5, -0.25, -1e-9, 0.0)] == ["+0.5000", "−0.2500", "0.0000", "0.0000"]
    assert [plural(1, "query", "queries"), plural(2, "query", "queries")] == ["1 query", "2 queries"]
    assert [join_names([]), join_names(["a"]), join_names(["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert join_names(["a", "b", "c", "d"], most=3) == "a, b and 2 more"
    assert [short_list([], 2), short_list(["a", "b"], 2)] == ["", "a, b"]
    assert short_list(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert [weight_text(0.0), weight_text(-0.5), share_text(0.25), percent_text(0.5)] == [
        "0", "−0.5", "+0.2500", "50 %",
    ]  # fmt: skip


def test_difference_agrees_with_scipy():
    rng = np.random.default_rng(0)
    theirs = rng.random(30)
    ours = theirs + rng.normal(0.05, 0.1, 30)
    ours[:4] = theirs[:4]
    result = difference(ours, theirs)
    test = stats.ttest_rel(ours, theirs)
    interval = test.confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high))
    assert result.p_t == pytest.approx(test.pvalue)
    assert (result.wins, result.ties, result.losses) == (
        np.sum(ours > theirs), 4, np.sum(ours < theirs),
    )  # fmt: skip
    assert result.mean == pytest.approx(np.mean(ours - theirs))


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [(0.2, "significantly better"), (-0.2, "significantly worse"), (0.0, "within noise")],
)
def test_verdict_follows_the_interval(shift, verdict):
    theirs = np.linspace(0.2, 0.7, 40)
    noise = 0.1 * np.resize([1.0, -1.0], 40)
    assert difference(theirs + shift + noise, theirs).verdict == verdict


def test_one_query_is_never_significant():
    result = difference(np.array([0.9]), np.array([0.1]))
    assert result.verdict == "within noise"
    assert result.low == -np.inf


def test_queries_used_for_selection_give_no_fair_test():
    theirs = np.linspace(0.2, 0.7, 40)
    better = difference(theirs + 0.2 + 0.1 * np.resize([1.0, -1.0], 40), theirs)
    assert significance_answer(better).short == "significantly better"
    guided = significance_answer(better, guided=True)
    assert guided.short == "no fair test"
    assert "model was selected on these queries" in guided.details


def test_rows_are_sorted_and_limited():
    columns = (Column("weight", "weight", weight_text, ""), Column("lacking", "lacking", weight_text, ""))
    weights = np.linspace(-1.0, 0.5, MAX_ROWS + 5)
    table = feature_table(columns, [f"f{j}" for j in range(len(weights))], {"weight": weights})
    assert [column.key for column in table.columns] == ["weight"]
    assert len(table.rows) == MAX_ROWS
    assert table.n_features == MAX_ROWS + 5
    sizes = [abs(values["weight"]) for _, values in table.rows]
    assert sizes == sorted(sizes, reverse=True)
    assert table.largest_weight == 1.0
