"""The page: self-contained, complete, escaped, written whole."""

from __future__ import annotations

import json
import os
import re
from html import escape, unescape
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest

from ranksieve.data import Dataset
from ranksieve.estimators import SparseRanker
from ranksieve.metrics import evaluate
from ranksieve.report import build_content, certificate, percent, write_report
from ranksieve.report.content import MAX_LINES, Planted, planted_features
from ranksieve.report.figures import PALETTE, path_figure
from tests.conftest import random_dataset

NASTY = ("<b>&", "</script><i>", "{{ 7 * 7 }}", '"quoted"', "plain")


@pytest.fixture(scope="module")
def fitted() -> tuple[SparseRanker, Dataset]:
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    data = Dataset(data.X, data.y, data.qid, NASTY)
    return SparseRanker(n_alphas=15, profile="standard").fit(data, valid=data), data


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory) -> str:
    ranker, data = fitted
    path = tmp_path_factory.mktemp("page") / "r.html"
    truth = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    means = {"test": evaluate(ranker.predict(data), data, ["ndcg@3", "map"], "standard")}
    write_report(build_content(ranker, choice="on old data", evaluations=means, truth=truth), path)
    return path.read_text(encoding="utf-8")


class Links(HTMLParser):
    """Everything a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


def without_scripts(page: str) -> str:
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def figures_of(page: str) -> dict:
    return json.loads(re.search(r"^const figures = (.*);$", page, flags=re.MULTILINE).group(1))


def test_page_needs_no_network(page):
    links = Links()
    links.feed(page)
    assert links.found == []
    assert {"link", "img", "iframe"}.isdisjoint(links.tags)
    assert links.tags.count("script") == 2  # plotly once, the figures once
    rest = without_scripts(page)
    assert "http://" not in rest
    assert "https://" not in rest
    assert "@import" not in rest
    assert "url(" not in rest


def test_page_names_every_chosen_feature_with_its_weight(fitted, page):
    ranker, _ = fitted
    text = unescape(re.sub(r"<[^>]+>", " ", without_scripts(page)))
    assert len(ranker.support_) >= 2
    for j in ranker.support_:
        assert NASTY[j] in text
        assert f"{ranker.coef_[j]:+.5g}" in text
    assert certificate(ranker.to_model().certificate["relative_gap"]) in text
    assert "on old data" in text
    assert f"{ranker.validation_.mean[ranker.chosen_]:.4f}" in text
    assert ranker.to_model().fingerprint in text


def test_names_are_escaped_in_html_and_in_the_figure(fitted, page):
    rest = without_scripts(page)
    for name in NASTY[:2]:
        assert name not in rest
    assert "&lt;b&gt;&amp;" in rest
    assert "{{ 7 * 7 }}" in rest  # a name is never a template
    traces = {trace.get("name") for trace in figures_of(page)["path"]["data"]}
    used = [NASTY[j] for j in np.flatnonzero(np.abs(fitted[0].path_.coefs).max(axis=0))]
    assert {escape(name, quote=False) for name in used} <= traces
    assert not any(name in traces for name in NASTY[:2])


def test_plotly_accepts_the_figure(page):
    figure = figures_of(page)["path"]
    built = go.Figure(figure)  # refuses unknown properties
    assert len(built.data) == len(figure["data"])
    assert built.layout.xaxis.type == "log"


def test_chosen_point_stands_where_the_path_has_it(fitted, page):
    ranker, _ = fitted
    layout = figures_of(page)["path"]["layout"]
    assert layout["shapes"][0]["x0"] == pytest.approx(ranker.alpha_)
    assert layout["annotations"][0]["x"] == pytest.approx(np.log10(ranker.alpha_))


def test_band_is_one_standard_error(fitted, page):
    ranker, _ = fitted
    band = next(t for t in figures_of(page)["path"]["data"] if t.get("fill") == "toself")
    shown = ranker.path_.n_nonzero > 0
    mean, error = ranker.validation_.mean[shown], ranker.validation_.standard_error[shown]
    np.testing.assert_allclose(band["y"], np.concatenate([mean - error, (mean + error)[::-1]]))


def test_planted_features(fitted):
    ranker, _ = fitted
    chosen = {NASTY[j] for j in ranker.support_}
    truth = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    planted = {"<b>&", "plain"}
    expected = Planted(
        [n for n in NASTY if n in planted & chosen],
        [n for n in NASTY if n in planted - chosen],
        [n for n in NASTY if n in chosen - planted],
    )
    assert planted_features(truth, ranker) == expected


def test_many_features_do_not_swell_the_page():
    data = random_dataset(seed=1, n_queries=30, n_features=90)
    ranker = SparseRanker(n_alphas=15, profile="standard", min_ratio=1e-4).fit(data, valid=data)
    content = build_content(ranker)
    assert np.count_nonzero(np.abs(ranker.path_.coefs).max(axis=0)) > MAX_LINES
    assert len(content.curves.weights) == MAX_LINES
    named = [term["name"] for term in content.terms]
    assert set(named[:MAX_LINES]) <= set(content.curves.weights)  # the chosen ones first
    lines = path_figure(content.curves, named)["data"]
    assert {line["line"]["color"] for line in lines if "line" in line and "color" in line["line"]} >= set(
        PALETTE
    )


def test_failed_write_keeps_the_old_page(fitted, tmp_path, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_report(build_content(fitted[0]), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_missing_extra_is_named(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.report.page.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "ranksieve\[report\]"'):
        write_report(build_content(fitted[0]), tmp_path / "r.html")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("share", "words"),
    [(9.2e-7, "0.000092 %"), (0.5, "50 %"), (1.234e-3, "0.12 %"), (2.7e-10, "0.000000027 %")],
)
def test_percent_has_no_exponent(share, words):
    assert percent(share) == words


def test_certificate_in_words():
    assert certificate(9.2e-7) == "within 0.000092 % of the best possible objective"
    assert certificate(0.0) == "equal to the best possible objective up to rounding"
