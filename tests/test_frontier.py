"""The frontier of accuracy, number of features and cost, and its figure."""

from __future__ import annotations

import html
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.rankers.frontier import frontier, pareto_front, pareto_optimal
from ranksieve.report.frontier_page import frontier_figure, frontier_page
from ranksieve.report.page import FAMILY_COLOURS
from tests.conftest import COSTS, QUICK
from tests.figures import assert_drawable
from tests.test_report import data_of, text_of


@pytest.fixture(scope="module")
def front(halves):
    train, valid = halves
    options = {"normalise": "none", "cv": 0, "smoothing": 1}
    return frontier(train, valid, feature_costs=COSTS, **options, **QUICK)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_pareto_optimal_against_brute_force(rows):
    burdens = np.array(rows, dtype=float)
    optimal = pareto_optimal(burdens)
    for k, row in enumerate(burdens):
        dominated = any(np.all(other <= row) and np.any(other < row) for other in burdens)
        twin_before = any(optimal[j] and np.array_equal(burdens[j], row) for j in range(k))
        assert optimal[k] == (not dominated and not twin_before)


def test_the_frontier_has_the_true_values_of_its_models(halves, front):
    train, valid = halves
    assert front.optimal.any()
    assert not front.optimal.all()
    for k in np.flatnonzero(front.optimal):
        w = front.coefs[k]
        assert front.n_features[k] == np.count_nonzero(w) >= 1
        assert front.costs[k] == make_costs(COSTS).of(np.array(train.feature_names)[w != 0])
        value = evaluate(valid.X @ w, valid, "ndcg@5", "standard").mean["ndcg@5"]
        assert front.mean[k] == pytest.approx(value)


def test_the_frontier_as_json(front):
    content = json.loads(json.dumps(front.to_dict(), allow_nan=False))
    assert content["metric"] == "ndcg@5"
    assert len(content["points"]) == len(front)
    for k, point in enumerate(content["points"]):
        assert point["cost"] == front.costs[k]
        assert ("features" in point) == point["optimal"] == front.optimal[k]
        assert not point["optimal"] or len(point["features"]) == point["n_features"]


def test_budgets_limit_the_frontier(halves):
    train, valid = halves
    cut = frontier(train, valid, feature_costs=COSTS, max_cost=4, max_features=3, **QUICK)
    assert cut.costs.max() <= 4
    assert cut.n_features.max() <= 3


def test_a_frontier_without_costs_counts_features(halves):
    train, valid = halves
    without_costs = frontier(train, valid, **QUICK)
    assert without_costs.costs is None
    figure = frontier_figure(without_costs.to_dict())
    assert figure["layout"]["xaxis"]["title"] == "features"
    assert {x for trace in figure["data"][2:] for x in trace["x"]} <= set(range(1, 9))


def test_the_figure(front):
    figure = frontier_figure(front.to_dict())
    assert_drawable(figure)
    beaten, steps, *optimal = figure["data"]
    assert len(beaten["x"]) == np.count_nonzero(~front.optimal & (front.n_features > 0))
    assert sum(len(trace["x"]) for trace in optimal) == front.optimal.sum()
    colours = [trace["marker"]["color"] for trace in optimal]
    assert len(set(colours)) == len(colours)
    assert set(colours) <= set(FAMILY_COLOURS.values())
    assert f"Best held-out NDCG@5: {front.mean.max():.4f}" in figure["layout"]["alt"]
    for line in (steps["x"], steps["y"]):
        assert all(a < b for a, b in pairwise(line))
    assert max(steps["y"]) == pytest.approx(front.mean.max())
    assert beaten["name"].startswith("dominated")


def test_the_page_has_a_title_a_table_of_steps_and_the_figure(front):
    plain = front.to_dict()
    page = frontier_page(plain)
    assert page == frontier_page(plain)  # reproducible
    assert len(page) < 200_000
    assert data_of(page)["figures"].keys() == {"frontier"}
    text = text_of(page)
    best = max((p for p in plain["points"] if p["optimal"]), key=lambda p: p["mean"])
    assert "Accuracy against features and cost" in text
    assert f"Best held-out NDCG@5: {best['mean']:.4f}, with" in text
    rows = [f"{p['cost']:g} {p['n_features']} {p['mean']:.4f}" for p in plain["points"] if p["optimal"]]
    assert sum(row in text for row in rows) == len(frontier_figure(plain)["data"][1]["x"])
    assert "--max-cost" in text


def test_names_are_escaped(halves):
    train, valid = halves
    names = [f"<b>{j}" for j in range(8)]
    nasty = [Dataset(d.X, d.y, d.qid, names) for d in (train, valid)]
    plain = frontier(*nasty, **QUICK).to_dict()
    texts = [text for trace in frontier_figure(plain)["data"][2:] for text in trace["text"]]
    page = frontier_page(plain)
    assert not any(name in page for name in names)
    assert any(html.escape(name) in page for name in names)
    assert any("<b>" in text for text in texts)  # the page shows them as text


def test_the_pareto_front_is_increasing():
    points = [{"cost": c, "mean": m} for c, m in ((3, 0.5), (1, 0.2), (2, 0.1), (3, 0.6), (4, 0.6))]
    assert [(p["cost"], p["mean"]) for p in pareto_front(points, "cost")] == [(1, 0.2), (3, 0.6)]
