"""Pictures with matplotlib, interactive figures in notebooks, and pages from Python."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.errors import DataError, ParameterError
from ranksieve.report import displays
from ranksieve.show.formats import by_range
from tests.test_shown import MAX_HTML


@pytest.fixture(scope="module", autouse=True)
def matplotlib():
    module = pytest.importorskip("matplotlib")
    module.use("Agg")
    yield module
    module.pyplot.close("all")


@pytest.fixture(scope="module")
def data():
    return rs.make_ranking(n_queries=40, n_features=20, n_informative=5, random_state=0)


@pytest.fixture(scope="module")
def ranker(data):
    return rs.SparseRanker(5).fit(data)


@pytest.fixture(scope="module")
def curved(data):
    return rs.SparseRanker(4, shape="curves").fit(data)


def test_the_picture_of_the_candidates_has_their_values(ranker):
    display = displays.ChoiceDisplay.from_estimator(ranker)
    lines = {one.get_label(): one for one in display.ax_.get_lines()}
    for family in ranker.choice_.families:
        name = {"l1": "ℓ1", "log": "log penalty", "forward": "forward selection"}[family.label]
        sizes = np.unique(family.n_nonzero[(family.n_nonzero > 0) & (family.n_nonzero <= 5)])
        of_size = [np.flatnonzero(family.n_nonzero == size) for size in sizes]
        top = [rows[np.argmax(family.validation.mean[rows])] for rows in of_size]
        best = family.validation.values[top].mean(axis=1)
        np.testing.assert_array_equal(lines[name].get_xdata(), sizes)
        np.testing.assert_allclose(lines[name].get_ydata(), best)
    star = display.ax_.collections[-1].get_offsets()[0]
    mean = ranker.choice_.confidence.mean
    np.testing.assert_allclose(star, [len(ranker.support_), mean])
    assert display.ax_.get_ylabel() == "held-out NDCG@10"


def test_the_picture_of_a_path_has_its_weights(data):
    path = rs.sparse_path(data, n_alphas=12)
    display = displays.PathDisplay.from_path(path)
    drawn = {one.get_label(): one for one in display.ax_.get_lines()}
    largest = int(np.argmax(np.abs(path.coefs).max(axis=0)))
    line = drawn[path.feature_names[largest]]
    np.testing.assert_allclose(line.get_xdata(), path.alphas)
    np.testing.assert_allclose(line.get_ydata(), path.coefs[:, largest])
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.xaxis_inverted()
    assert path.plot().get_xlabel() == "α, decreasing"


def test_the_picture_of_a_frontier_marks_the_best_of_each_size(data):
    frontier = rs.frontier(data)
    ax = frontier.plot()
    n_optimal = int(frontier.optimal.sum())
    beaten, *optimal = (len(one.get_offsets()) for one in ax.collections)
    assert beaten == np.count_nonzero(~frontier.optimal & (frontier.n_features > 0))
    assert sum(optimal) == n_optimal


def test_the_picture_of_curves_has_one_panel_per_feature(curved, data):
    display = displays.CurvesDisplay.from_estimator(curved)
    curves = curved.to_model().curves
    assert [ax.get_title() for ax in display.axes_] == sorted(curves, key=lambda name: -curves[name].range)
    first = curves[display.axes_[0].get_title()]
    np.testing.assert_allclose(display.axes_[0].patches[0].get_data().values, first.levels)
    assert len(displays.CurvesDisplay.from_estimator(curved, data).figure_.axes) >= 1
    with pytest.raises(DataError, match="shape='curves'"):
        displays.CurvesDisplay.from_estimator(rs.RankSVM().fit(data))


def test_bars_are_weights_or_contributions(ranker, data):
    model = ranker.to_model()
    heights = [bar.get_height() for bar in model.plot().patches]
    np.testing.assert_allclose(heights, sorted(model.weights, key=lambda w: -abs(w)))
    pair = rs.explain_pair(model, data, 0, 1)
    ax = pair.plot()
    assert [bar.get_height() for bar in ax.patches] == [part.contribution for part in pair.parts]
    assert ax.get_title() == f"{pair.a} minus {pair.b}"
    query = rs.explain_query(model, data, data.qid[0])
    total = sum(bar.get_height() for bar in query.plot().patches)
    assert total == pytest.approx(query.scores[0] - query.scores[1])
    named = displays.ExplanationDisplay.from_model(model, data, data.qid[0])
    assert sum(bar.get_height() for bar in named.ax_.patches) == pytest.approx(total)


def test_many_weights_are_added_up(data):
    wide = rs.make_ranking(n_queries=30, n_features=40, random_state=0)
    model = rs.RankSVM().fit(wide).to_model()
    bars = model.plot().patches
    assert len(bars) == displays.MAX_BARS + 1
    assert sum(bar.get_height() for bar in bars) == pytest.approx(model.weights.sum())


def test_names_are_neither_formulas_nor_hidden(data, matplotlib):
    names = ["$x_{", "_hidden", "</script><b>", *data.feature_names[3:]]
    named = rs.Dataset(data.X, data.y, data.qid, names)
    ranker = rs.RankSVM().fit(named)
    ax = ranker.to_model().plot()
    ax.figure.canvas.draw()
    assert {r"\$x_{", " _hidden"} <= {label.get_text() for label in ax.get_xticklabels()}
    path = rs.sparse_path(named, n_alphas=5).plot()
    path.figure.canvas.draw()
    shown = {text.get_text() for text in path.get_legend().get_texts()}
    assert len(shown) == 8
    page = ranker.to_model().plot(interactive=True).page
    assert "$x_{" in page
    assert "</script><b>" not in page


def test_plot_draws_on_the_axes_it_gets(ranker, matplotlib):
    _, ax = matplotlib.pyplot.subplots()
    assert ranker.plot(ax=ax) is ax
    for kind in ("path", "choice", "frontier", "weights"):
        assert ranker.plot(kind=kind).figure is not ax.figure
    with pytest.raises(ParameterError, match="choose one of path, choice, frontier, curves, weights"):
        ranker.plot(kind="paths")
    with pytest.raises(DataError, match="has no path"):
        rs.RankSVM().fit(rs.make_ranking(n_queries=5, random_state=0)).plot(kind="path")


def test_without_matplotlib_the_extra_is_named_and_interactive_figures_work(ranker, monkeypatch):
    monkeypatch.setattr("ranksieve.report.drawing.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape(".[plot]")):
        ranker.plot()
    assert "<iframe" in ranker.plot(interactive=True)._repr_html_()


def test_interactive_figures_fetch_nothing_and_hold_the_same_values(ranker, curved, data):
    path = rs.sparse_path(data)
    figures = [
        ranker.plot(interactive=True), path.plot(interactive=True), curved.plot(interactive=True),
        rs.frontier(data).plot(interactive=True), ranker.to_model().plot(interactive=True),
    ]  # fmt: skip
    for figure in figures:
        assert len(repr(figure)) < 100
        assert len(figure._repr_html_()) <= MAX_HTML
        assert "default-src 'none'" in figure.page
        assert not re.search(r"(src|href)=.https?:", figure.page)
        content = json.loads(re.search(r'id="figure-data">(.*?)</script>', figure.page, re.S)[1])
        assert [len(one["data"]) for one in content] == [len(one["data"]) for one in figure.figures.values()]
    assert list(figures[2].figures) == list(by_range(curved.to_model().curves))  # all curves
    (shown,) = json.loads(re.search(r'id="figure-data">(.*?)</script>', figures[1].page, re.S)[1])
    alphas = [float(one) for one in shown["lists"][0].split(",")]
    np.testing.assert_allclose(alphas, path.alphas, rtol=1e-4)


def test_every_page_of_the_command_line_has_a_call(ranker, data, tmp_path):
    pytest.importorskip("jinja2")
    model = ranker.to_model()
    test = data.select_queries(range(10))
    subsets = rs.BestSubset(max_nodes=5, time_limit=np.inf).fit_sizes([1, 2], data)
    results = rs.bench(
        {"toy": rs.deal_folds(data, 3)}, ["ranksvm-l1", "ranksvm"], out=tmp_path / "out", grid="fast"
    )
    pages = {
        "fit": (lambda path: ranker.report(path, train=data, valid=test, test=test), "the test data"),
        "fit alone": (ranker.report, "Held-out NDCG@10"),
        "card": (lambda path: rs.make_scorecard(model, data).report(path, title="My card"), "My card"),
        "frontier": (rs.frontier(data).report, "Best models"),
        "inspect": (lambda path: rs.inspect_features(data).report(path, data), "documents"),
        "explain": (lambda path: model.report_explanation(path, test), "Explanation"),
        "subset": (lambda path: subsets.report(path, data), "best 1 to 2 features"),
        "bench": (results.report, "RankSVM-Primal"),
    }
    for name, (write, text) in pages.items():
        path = tmp_path / f"{name}.html"
        write(path)
        assert text in path.read_text(encoding="utf-8"), name
    with pytest.raises(DataError, match="not a linear model"):
        rs.baselines.RankBoost(n_rounds=2).fit(data).report(tmp_path / "none.html")


def test_the_page_from_python_is_that_of_the_command_line(data, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    from tests.test_cli import run

    monkeypatch.chdir(tmp_path)
    rs.write_dataset(data, "train.txt")
    assert (
        run("fit", "train.txt", "--max-features", "5", "-o", "m.json", "--report", "cli.html").exit_code == 0
    )
    read = rs.read_dataset("train.txt")
    rs.SparseRanker(max_features=5).fit(read).report("python.html", train=read)
    assert (tmp_path / "python.html").read_text("utf-8") == (tmp_path / "cli.html").read_text("utf-8")
