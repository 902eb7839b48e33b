"""The quality benchmark: fixed splits, stored rows, and the page made of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks import harness
from benchmarks.quality import page, results
from benchmarks.quality.data_sets import SOURCES, split
from benchmarks.quality.methods import FITS, FLAGSHIP, LINES, best_feature, quality
from benchmarks.quality.results import Row
from scipy import stats

import ranksieve as rs


def rows_of(values):
    """Rows of a method with these values on each data set."""
    return {(data, k): Row(data, k, value, 5, 0.5, "1") for data in SOURCES for k, value in enumerate(values)}


def test_splits_never_change():
    data = rs.make_ranking(n_queries=10, random_state=0)
    parts = [[int(query) for query in part.query_ids] for part in split(data, 3)]
    ids = [int(query) for query in data.query_ids]
    assert [[ids.index(query) for query in part] for part in parts] == [[0, 1, 2, 7, 8, 9], [5, 6], [3, 4]]


def test_the_metric_is_the_mean_over_orders_of_equal_scores():
    data = rs.Dataset(np.zeros((3, 1)), [2.0, 0.0, 1.0], [7, 7, 7])
    orders = ([2, 0, 1], [2, 1, 0], [0, 2, 1], [0, 1, 2], [1, 2, 0], [1, 0, 2])
    expected = np.mean([rs.evaluate(-np.array(order, float), data).mean["ndcg@10"] for order in orders])
    assert quality(lambda part: np.zeros(len(part)), data, "standard") == pytest.approx(expected, rel=1e-12)


def test_rows_are_read_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    rows = {
        ("films", 1): Row("films", 1, 0.25, 3, 1.5, "1"),
        ("OHSUMED", 0): Row("OHSUMED", 0, 0.5, 2, 2.0, "1"),
    }
    results.save_rows("RankSVM-ℓ1", rows)
    assert results.read_rows("RankSVM-ℓ1") == rows
    assert results.read_rows("RankSVM") == {}
    assert len({results.file_of(name) for name in FITS}) == len(FITS)


def test_differences_have_the_corrected_p_value():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 0.01, (2, 20))
    one = page.against(rows_of(a), rows_of(b), "films")
    t = one.mean / np.sqrt(np.var(a - b, ddof=1) * (1 / 20 + 0.2 / 0.6))
    assert one.mean == pytest.approx(np.mean(a - b))
    assert one.error == pytest.approx(stats.sem(a - b))
    assert one.p == pytest.approx(2 * stats.t.sf(abs(t), 19))
    assert page.against(rows_of(a[:1]), rows_of(b), "films") is None


def test_the_page_counts_significant_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    noise = np.random.default_rng(1).normal(0, 1e-3, 20)
    for name, mean in ((FLAGSHIP, 0.5), (LINES, 0.5), ("RankSVM", 0.4), ("LightGBM trees", 0.5)):
        results.save_rows(name, rows_of(mean + (noise if name == "RankSVM" else noise[::-1])))
    page.write_page(tmp_path)
    text = (tmp_path / "quality.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| RankSVM |"))
    assert line.endswith("| 0 / 0 / 9 |")
    assert re.search(r"\| -0\.1000 ± 0\.000\d \|", line)
    assert "| 0 / 9 / 0 |" in text
    assert (tmp_path / "images" / "quality.svg").read_text().count("<g ") == len(SOURCES)


def test_the_best_single_feature_may_have_a_negative_sign():
    X, y = np.array([[1.0, 3.0], [0.0, 1.0], [0.0, 2.0]] * 4), [0.0, 1.0, 0.0] * 4
    data = rs.Dataset(X, y, np.repeat(np.arange(4), 3))
    fitted = best_feature(data, data, "standard")
    np.testing.assert_array_equal(fitted.predict(data), -X[:, 1])
