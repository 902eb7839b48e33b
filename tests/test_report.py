"""The page of a fit: self-contained, complete, escaped, written atomically."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from scipy import stats

import ranksieve as rs
from ranksieve.data.dataset import Dataset
from ranksieve.metrics import evaluate
from ranksieve.rankers import FenchelRank, SparseRanker
from ranksieve.report import ModelTest, Support, build_content, content_of_model, write_report
from ranksieve.report.calls import feature_strength
from ranksieve.report.fit_page import (
    MAX_LINES,
    Planted,
    curves_of_ranker,
    path_explorer,
    planted_features,
    render,
)
from ranksieve.report.page import FAMILY_COLOURS, MORE_COLOURS, OTHER, PALETTE, mean_with_interval, size_axis
from ranksieve.show.formats import percent
from ranksieve.show.sentences import choice_sentences, optimality
from ranksieve.synthetic import make_ranking
from tests.conftest import COSTS, QUICK, random_dataset
from tests.figures import assert_drawable

NASTY = ("<b>&", "</script><i>", "{{ 7 * 7 }}", '"quoted"', "plain")


@pytest.fixture(scope="module")
def fitted() -> tuple[SparseRanker, Dataset]:
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    data = Dataset(data.X, data.y, data.qid, NASTY)
    return SparseRanker(n_alphas=15, profile="standard", families=["l1"], cv=3).fit(data), data


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory) -> str:
    ranker, data = fitted
    path = tmp_path_factory.mktemp("page") / "r.html"
    truth = np.array([1.0, 0.0, 0.0, 0.0, -1.0])
    means = {"test": evaluate(ranker.predict(data), data, ["ndcg@3", "map"], "standard")}
    support = Support(np.array([0.5, 0.4, 0.3, 0.2, 0.1]), "map", "standard")
    content = build_content(ranker, choice="on old data", evaluations=means, truth=truth, support=support)
    write_report(content, path)
    return path.read_text(encoding="utf-8")


class Links(HTMLParser):
    """All tags, and all links that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.urls: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", without_scripts(page))).split())


def data_of(page: str) -> dict:
    """The data of the page's scripts, unpacked as in page.js."""
    match = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, flags=re.DOTALL)
    data = json.loads(match.group(1), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    data["lists"] = [numbers_of(one) if isinstance(one, str) else one for one in data["lists"]]
    explorers = [path for paths in data["explorers"].values() for path in paths]
    for figure in [*data["figures"].values(), *(path["figure"] for path in explorers)]:
        for trace in figure["data"]:
            trace |= data["looks"][trace.pop("look")]
            trace |= {"x": data["lists"][trace["x"]]} if "x" in trace else {}
    for path in explorers:
        rows = [enumerate(numbers_of(point)) for point in path["points"]]
        path["points"] = [[[j, weight] for j, weight in row if weight is not None] for row in rows]
    return data


def numbers_of(packed: str) -> list[float | None]:
    return [float(text) if text else None for text in packed.split(",")]


def values_of(gains: dict, method: str) -> list[float]:
    """The values of a method by query; the baseline's where the method has none."""
    own = numbers_of(gains["methods"][method]["changed"])
    own += [None] * (len(gains["theirs"]) - len(own))
    return [theirs if ours is None else ours for ours, theirs in zip(own, gains["theirs"], strict=True)]


def figure_of(page: str) -> dict:
    return data_of(page)["explorers"]["path"][0]["figure"]


def test_page_needs_no_network(page):
    links = Links()
    links.feed(page)
    assert links.urls == []
    assert {"link", "img", "iframe"}.isdisjoint(links.tags)
    assert links.tags.count("script") == 3  # data, figures, and the script of the page
    rest = without_scripts(page)
    assert "http://" not in rest
    assert "https://" not in rest
    assert "@import" not in rest
    assert "url(" not in rest


def test_page_names_every_selected_feature_with_its_weight(fitted, page):
    ranker, _ = fitted
    text = text_of(page)
    assert len(ranker.support_) >= 2
    for j in ranker.support_:
        assert NASTY[j] in text
        assert f"{ranker.coef_[j]:+.5g}".replace("-", "−") in text
    gap = ranker.to_model().certificate["relative_gap"]
    assert f"no other weights lower the training objective by more than {percent(gap)}." in text
    assert "on old data" in text
    for sentence in choice_sentences(ranker, "on old data"):
        assert sentence in text
    assert optimality(ranker.to_model().certificate, ranker.to_model().parameters) in text
    assert ranker.to_model().data.keys() == {"train"}
    assert all(fingerprint in text for fingerprint in ranker.to_model().data.values())


def test_names_are_escaped_in_html_and_in_the_figure(fitted, page):
    rest = without_scripts(page)
    for name in NASTY[:2]:
        assert name not in rest
    assert "&lt;b&gt;&amp;" in rest
    assert "{{ 7 * 7 }}" in rest  # names are not templates
    (path,) = data_of(page)["explorers"]["path"]
    used = [NASTY[j] for j in np.flatnonzero(np.abs(fitted[0].choice_.family.coefs).max(axis=0))]
    assert {path["features"][j] for j in path["lines"]} == set(used)  # shown as text, not as HTML


def test_the_figure_can_be_drawn(page):
    figure = figure_of(page)
    assert_drawable(figure)
    assert figure["layout"]["xaxis"]["type"] == "log"


def test_the_selected_point_is_marked_on_the_path(fitted, page):
    ranker, _ = fitted
    layout = figure_of(page)["layout"]
    assert layout["shapes"][0]["x0"] == pytest.approx(ranker.choice_.candidate.strength, rel=1e-4)
    assert layout["annotations"][0]["x"] == pytest.approx(ranker.choice_.candidate.strength, rel=1e-4)


def test_band_is_one_standard_error(fitted, page):
    ranker, _ = fitted
    band = next(t for t in figure_of(page)["data"] if t["type"] == "band")
    shown = ranker.choice_.family.n_nonzero > 0
    values = ranker.choice_.validation.values[shown]
    mean, error = values.mean(axis=1), stats.sem(values, axis=1)
    np.testing.assert_allclose([band["low"], band["high"]], [mean - error, mean + error], rtol=1e-4)


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


def test_the_page_shows_a_limited_number_of_features():
    data = make_ranking(n_queries=30, n_features=90, n_informative=20, random_state=1)
    ranker = SparseRanker(n_alphas=15, profile="standard", min_ratio=1e-4, families=["l1"], cv=2).fit(data)
    content = build_content(ranker)
    assert np.count_nonzero(np.abs(ranker.choice_.family.coefs).max(axis=0)) > MAX_LINES
    assert len(content.curves.weights) == MAX_LINES
    chosen = [term["name"] for term in content.terms]
    assert set(chosen[:MAX_LINES]) <= set(content.curves.weights)  # the selected ones first
    explorer = path_explorer(content.curves, chosen)
    assert len(explorer["lines"]) == MAX_LINES
    assert set(explorer["colours"].values()) >= set(PALETTE)


def test_failed_write_keeps_the_old_page(fitted, tmp_path, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="the disk is full"):
        write_report(build_content(fitted[0]), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_missing_extra_is_named(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("ranksieve.report.page.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "\.\[report\]"'):
        write_report(build_content(fitted[0]), tmp_path / "r.html")
    assert os.listdir(tmp_path) == []


def test_selection_frequencies_are_shown_with_the_weights(page, fitted):
    text, ranker = text_of(page), fitted[0]
    assert (
        "Share of bootstrap samples of the held-out queries whose best candidate uses the feature "
        "(models are not refitted)." in text
    )
    assert "alone, MAP" in text
    often = np.count_nonzero(ranker.choice_.confidence.frequency[ranker.support_] >= 0.9)
    assert f"{often} of {len(ranker.support_)} stable" in text


@pytest.mark.parametrize("max_features", [2, None])
def test_gains_of_held_out_queries(max_features, tmp_path):
    """The baseline is the best candidate beyond the budget, or without a budget the densest one."""
    data = make_ranking(n_queries=30, n_features=10, n_informative=5, random_state=1)
    ranker = SparseRanker(max_features, n_alphas=15, profile="standard", cv=3).fit(data)
    write_report(build_content(ranker), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    gains, candidates = data_of(page)["gains"]["gains"], ranker.choice_
    rival = candidates.densest() if max_features is None else candidates.best()
    theirs, used = rival.values, rival.n_features
    assert used > len(ranker.support_)
    own = ranker.choice_.validation.values[ranker.choice_.index]
    np.testing.assert_allclose(values_of(gains, "chosen"), own, atol=1e-5)
    np.testing.assert_allclose(gains["theirs"], theirs, atol=1e-5)
    assert gains["queries"] == [str(query) for query in ranker.choice_.validation.query_ids]
    assert_drawable(gains["figure"])
    assert gains["figure"]["layout"]["yaxis"]["title"] == "change in NDCG@10"
    baseline = "the densest candidate" if max_features is None else "the best candidate beyond the budget"
    assert f"{baseline} ({used} features)" in text_of(page)


def test_no_gains_over_the_model_itself(tmp_path):
    """The chosen model is both the best and the densest candidate."""
    data = make_ranking(n_queries=30, n_features=10, n_informative=5, random_state=0)
    ranker = SparseRanker(n_alphas=15, profile="standard", cv=3).fit(data)
    own = ranker.choice_.validation.values[ranker.choice_.index]
    np.testing.assert_array_equal(ranker.choice_.densest().values, own)
    np.testing.assert_array_equal(ranker.choice_.best().values, own)
    write_report(build_content(ranker), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert data_of(page)["gains"] == {}
    assert "densest candidate" not in text_of(page)


def test_the_explorer_has_every_point(fitted, page):
    ranker, _ = fitted
    (path,) = data_of(page)["explorers"]["path"]
    names = path["features"]
    for k, point in enumerate(path["points"]):
        coef = dict.fromkeys(NASTY, 0.0) | {names[j]: weight for j, weight in point}
        np.testing.assert_allclose([coef[name] for name in NASTY], ranker.choice_.family.coefs[k], rtol=1e-3)
    first_use = [
        next(k for k, point in enumerate(path["points"]) if j in dict(point)) for j in range(len(names))
    ]
    assert first_use == sorted(first_use)
    assert path["chosen"] == ranker.choice_.index
    assert path["test"] == []


def test_a_ranker_without_a_path_has_a_page(tmp_path):
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    ranker = FenchelRank(radius=2.0).fit(data)
    content = build_content(ranker, support=feature_strength(ranker, data))
    assert (content.curves, content.candidates, content.headline) == (None, {}, [])
    assert content.gains is None
    assert [column.key for column in content.features.columns] == ["weight", "strength"]
    write_report(content, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert data_of(page)["explorers"] == {}
    assert "What is lost per query?" not in page


def test_curves_need_a_path():
    assert curves_of_ranker(FenchelRank().fit(random_dataset())) is None


def test_the_page_shows_costs_and_preparation(tmp_path):
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    ranker = FenchelRank()
    ranker.normalise = "query_z"
    write_report(build_content(ranker.fit(data)), tmp_path / "r.html")
    text = text_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "normalise query_z" in text
    assert "missing error" in text  # complete training data: missing values are refused later
    assert "Cost of the features" not in text
    costs = dict(zip(data.feature_names, (1.5, 1, 1, 1, 1), strict=True))
    paid = SparseRanker(n_alphas=15, profile="standard", feature_costs=costs, max_cost=2.5)
    write_report(build_content(paid.fit(data)), tmp_path / "r.html")
    text = text_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    cost = sum(costs[data.feature_names[j]] for j in paid.support_)
    assert f"Cost of the features: {cost:g} of at most 2.5" in text


def test_the_page_shows_costs_of_features_and_groups(halves):
    train, _ = halves
    ranker = SparseRanker(4, feature_costs=COSTS, **QUICK).fit(train)
    content = build_content(ranker)
    assert [column.key for column in content.features.columns] == ["weight", "in_data", "frequency", "cost"]
    costs = {name: values["cost"] for name, values in content.features.rows}
    assert costs == {**COSTS["features"], **dict.fromkeys(("f6", "f7", "f8"), 3.0)}
    used = {train.feature_names[j] for j in ranker.support_}
    assert {name for _, _, features in content.costs for name in features} == used
    assert sum(cost for _, cost, _ in content.costs) == ranker.to_model().metrics["cost"]
    page = render(content)
    assert "stable" in text_of(page), "selection frequencies are also shown with costs"
    assert "Each row is paid once" in text_of(page)
    assert page == render(build_content(ranker))
    assert build_content(SparseRanker(4, **QUICK).fit(train)).costs == []


def test_test_queries_come_first(fitted, halves):
    ranker, data = fitted
    evaluation = evaluate(ranker.predict(data), data, ["ndcg@10", "map"], "standard")
    content = build_content(ranker, choice="on old data", test=ModelTest("test.txt", evaluation, "ndcg@10"))
    mean, low, high = mean_with_interval(evaluation.per_query["ndcg@10"])
    assert content.tested == (
        f"Test NDCG@10: {mean:.4f} (95 % CI {low:.4f} to {high:.4f}; {data.n_queries} queries of test.txt; "
        "standard profile). Test data: used neither for fitting nor for selection."
    )
    text = text_of(render(content))
    assert text.index(content.tested) < text.index(content.headline[0])
    assert "test.txt (test data)" in text


def test_the_interval_is_students_t_interval():
    values = np.array([0.1, 0.5, 0.6, np.nan])
    expected = stats.t.interval(0.95, 2, loc=0.4, scale=stats.sem([0.1, 0.5, 0.6]))
    assert mean_with_interval(values) == pytest.approx((0.4, *expected))


def test_texts_of_queries_are_shown_with_their_gains():
    data = make_ranking(n_queries=30, n_features=10, n_informative=5, random_state=0)
    ranker = SparseRanker(2, n_alphas=15, profile="standard", cv=3).fit(data)
    texts = {query: f"words of {query}" for query in data.queries.ids.tolist()}
    gains = data_of(render(build_content(ranker, query_texts=texts)))["gains"]["gains"]
    assert gains["texts"] == [f"words of {query}" for query in gains["queries"]]


# --- the choice ------------------------------------------------------------------------------------------


def test_candidates_are_drawn_per_family():
    """A point is the best of its size by the criterion of the choice, with the metric of the model itself."""
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    ranker = SparseRanker(2, n_alphas=15, profile="standard", cv=3).fit(data)
    choice, (figure,) = ranker.choice_, build_content(ranker).candidates.values()
    *lines, beyond, star = figure["data"]
    assert [line["name"] for line in lines] == ["ℓ1", "log penalty", "forward selection"]
    assert [line["line"]["color"] for line in lines] == [FAMILY_COLOURS[one.label] for one in choice.families]
    for line, family in zip(lines, choice.families, strict=True):
        assert line["x"] == sorted({size for size in family.n_nonzero.tolist() if 0 < size <= 2})
        for size, shown in zip(line["x"], line["y"], strict=True):
            at = np.flatnonzero(family.n_nonzero == size)
            best = at[np.argmax(family.validation.mean[at])]
            assert shown == pytest.approx(family.validation.values[best].mean(), rel=1e-12)
    assert (beyond["name"], beyond["marker"]["symbol"]) == ("beyond the budget", "circle-open")
    assert min(beyond["x"]) > 2
    assert (star["name"], star["x"]) == ("chosen", [len(ranker.support_)])
    assert star["y"] == pytest.approx([choice.confidence.mean])
    assert_drawable(figure)
    assert figure["layout"]["yaxis"]["title"] == "held-out NDCG@10"
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [2]
    assert f"the chosen model has {choice.confidence.mean:.4f}" in figure["layout"]["alt"]


def test_candidates_are_drawn_by_cost_too():
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    prices = dict(zip(data.feature_names, (1.5, 1, 1, 1, 1), strict=True))
    ranker = SparseRanker(n_alphas=15, profile="standard", cv=3, feature_costs=prices, max_cost=2.5).fit(data)
    by_cost, by_size = build_content(ranker).candidates.values()
    assert (by_cost["layout"]["xaxis"]["title"], by_size["layout"]["xaxis"]["title"]) == ("cost", "features")
    *lines, beyond, star = by_cost["data"]
    for line in lines:
        assert max(line["x"]) <= 2.5
        assert line["x"] == sorted(set(line["x"]))
    assert len({line["name"] for line in lines}) == len(lines)  # variants of a family share a line
    assert min(beyond["x"]) > 2.5
    assert star["x"] == [sum(prices[data.feature_names[j]] for j in ranker.support_)]
    assert by_cost["layout"]["shapes"][0]["x0"] == 2.5
    assert_drawable(by_cost)


@pytest.mark.parametrize(("sizes", "kind"), [([1, 10], None), ([1, 10, 50], "log"), ([0, 50], None)])
def test_a_few_large_models_do_not_squeeze_the_others(sizes, kind):
    assert size_axis("features", sizes).get("type") == kind


def test_page_draws_the_candidates(page, fitted):
    figure = data_of(page)["figures"]["candidates-features"]
    assert [trace["name"] for trace in figure["data"]] == ["ℓ1", "chosen"]
    assert "The star is the chosen model." in text_of(page)


@pytest.mark.parametrize("families", [["l1"], ["forward"], ["refitted"]])
def test_a_model_has_one_held_out_metric_on_the_page(families):
    data = random_dataset(seed=4, n_queries=20, n_features=5)
    ranker = SparseRanker(n_alphas=15, profile="standard", families=families, cv=3).fit(data)
    content = build_content(ranker)
    page = data_of(render(content))
    (path,) = page["explorers"]["path"]
    assert f"{path['mean'][path['chosen']]:.4f}" == f"{ranker.choice_.confidence.mean:.4f}"
    dot = next(trace for trace in path["figure"]["data"] if trace.get("name") == "chosen")
    star = page["figures"]["candidates-features"]["data"][-1]
    assert dot["y"] == star["y"] == pytest.approx([ranker.choice_.confidence.mean], rel=1e-4)
    assert f"{ranker.choice_.confidence.mean:.4f} (95 % CI" in content.headline[0]


def test_cards_use_test_queries_if_there_are_any(tmp_path):
    data = make_ranking(n_queries=40, n_features=10, n_informative=5, random_state=1)
    train, test = data.select_queries(np.arange(30)), data.select_queries(np.arange(30, 40))
    ranker = SparseRanker(2, n_alphas=15, profile="standard", cv=3).fit(train)
    ranker.report(tmp_path / "r.html", train=train, test=test)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    gains, text, rival = data_of(page)["gains"]["gains"], text_of(page), ranker.choice_.best()
    assert rival.is_beyond
    for shown, coef in (("theirs", rival.coef), ("chosen", ranker.coef_)):
        own = evaluate(test.X @ coef, test, "ndcg@10", "standard").per_query["ndcg@10"]
        values = gains["theirs"] if shown == "theirs" else values_of(gains, shown)
        np.testing.assert_allclose(values, own, atol=1e-5)
    assert "On 10 queries of the test data, against the best candidate beyond the budget" in text
    assert "no fair test" not in text
    assert "use test data" not in text


def test_provenance_shows_what_is_set_in_words():
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    names = list(data.feature_names)
    ranker = SparseRanker(
        n_alphas=15, profile="standard", cv=3, must_have=names[:2], signs={names[0]: "+"},
        families=["l1", "log"], feature_costs=dict.fromkeys(names, 1.0), max_cost=3,
    ).fit(data)  # fmt: skip
    settings = build_content(ranker).settings
    assert settings["must_have"] == f"{names[0]}, {names[1]}"
    assert settings["families"] == "l1, log"
    assert settings["max_cost"] == "3"
    assert not {"must_not", "max_features", "alphas", "feature_costs"} & settings.keys()
    assert not any(re.search(r"None|[\[\]{}]", value) for value in settings.values())


def test_explorer_of_a_forward_selection_shows_the_number_of_features(tmp_path):
    data = random_dataset(seed=3, n_queries=20, n_features=5)
    ranker = SparseRanker(profile="standard", cv=3, families=["forward"]).fit(data)
    write_report(build_content(ranker), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    (path,) = data_of(page)["explorers"]["path"]
    assert path["by"] == "features"
    assert path["alphas"] == path["n_nonzero"] == [1, 2, 3, 4, 5]
    traces, layout = path["figure"]["data"], path["figure"]["layout"]
    assert ("type" in layout["xaxis"], layout["xaxis"]["title"]) == (False, "features")
    assert not any(layout[key]["title"] == "features" for key in layout if key.startswith("yaxis"))
    assert layout["annotations"][0]["x"] == layout["shapes"][0]["x0"] == len(ranker.support_)
    assert not any("α" in trace.get("hover", "") for trace in traces)
    text = text_of(page)
    assert "The number of features increases to the right" in text
    assert "with ridge" in text
    assert "α" not in text
    assert 'aria-label="number of features"' in page


def test_the_page_has_weights_per_unit_of_the_data_beside_scaled_ones():
    data = rs.make_ranking(n_queries=20, n_features=4, n_informative=2, random_state=0)
    raw = rs.Dataset(data.X * 100.0, data.y, data.qid)
    ranker = rs.RankSVM(normalise="z").fit(raw)
    folded = dict(zip(ranker.to_model().names, ranker.to_model().folded().weights, strict=True))
    for content in (build_content(ranker), content_of_model(ranker.to_model(), title="")):
        assert [column.title for column in content.features.columns] == ["scaled weight", "weight"]
        assert {name: values["in_data"] for name, values in content.features.rows} == folded
        assert content.weight == "scaled weight"
    plain = build_content(rs.RankSVM(normalise="none").fit(data))
    assert [column.title for column in plain.features.columns] == ["weight"]
    within = build_content(rs.RankSVM(normalise="query_z").fit(raw))
    assert [column.title for column in within.features.columns] == ["scaled weight"]


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def schemes() -> list[dict[str, str]]:
    """The colours of the light and of the dark page by name."""
    style = (files("ranksieve.report") / "page.css").read_text("utf-8")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", rule)) for rule in re.findall(r":root \{[^}]+", style)
    )
    return [light, light | dark]


def test_contrast_of_text_and_marks_on_light_and_dark_pages():
    room = files("ranksieve.report")
    scripts = [(room / name).read_text("utf-8") for name in ("page.js", "figure.js", "scales.js")]
    drawn = {colour for script in scripts for colour in re.findall(r'"(#[0-9a-f]{6})"', script)}
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for colours in schemes():
        for ground in (colours["paper"], colours["shade"]):
            assert min(contrast(colours[name], ground) for name in ("ink", "soft", "accent")) >= 4.5
            marks = {*PALETTE, *MORE_COLOURS, OTHER, colours["up"], colours["down"], *drawn}
            assert {mark: contrast(mark, ground) for mark in marks if contrast(mark, ground) < 3} == {}
    assert len({OTHER, *FAMILY_COLOURS.values()}) == len(FAMILY_COLOURS) + 1
