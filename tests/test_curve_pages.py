"""Curves as they are shown: pages, pictures, the terminal, explanations, sentences."""

import json
import math
import re

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.report.curve_figures import curve_pictures
from ranksieve.report.explain_page import model_sentences
from ranksieve.report.fit_page import build_content, content_of_model, render
from ranksieve.show.explain import level_texts, pair_sentence, value_cells
from ranksieve.show.formats import by_range, direction, value_texts
from ranksieve.show.sentences import optimality
from tests.figures import assert_drawable
from tests.test_cli import refused, run
from tests.test_curves import curved_data
from tests.test_report import data_of, numbers_of, text_of

RATING = Curve((6.0, 7.5, 8.1), (0.0, 0.5, 0.82, 1.12), -0.3)
PRICE = Curve((10.0,), (0.0, -0.25))
MODEL = LinearModel((Term("price", 1, 1.0, PRICE), Term("rating", 0, 1.0, RATING)), 3)
DOCUMENTS = rs.Dataset(
    [[7.9, 12.0, 0.0], [6.2, 5.0, 0.0], [np.nan, 10.0, 0.0], [9.0, np.nan, 0.0]],
    [2, 1, 0, 1],
    ["q"] * 4,
    ["rating", "price", "other"],
    ["A", "B", "C", "D"],
)


@pytest.fixture(scope="module")
def data():
    return curved_data()


@pytest.fixture(scope="module")
def ranker(data):
    return rs.SparseRanker(shape="curves", max_features=3, n_alphas=12, profile="standard").fit(data)


@pytest.fixture(scope="module")
def page(ranker, data):
    return render(build_content(ranker, train=data))


def test_the_page_has_a_picture_of_each_feature_in_use_by_decreasing_range(page, ranker):
    curves = by_range(ranker.to_model().curves)
    assert len(curves) == len(ranker.support_)
    assert re.findall(r"<figcaption><strong>(\w+)</strong>", page) == list(curves)
    assert re.findall(r'data-figure="(curve-\d+)"', page) == [f"curve-{k + 1}" for k in range(len(curves))]
    ranges = [curve.range for curve in curves.values()]
    assert ranges == sorted(ranges, reverse=True)


def test_the_pictures_have_the_thresholds_and_levels_of_the_model(page, ranker, data):
    content = data_of(page)
    for k, curve in enumerate(by_range(ranker.to_model().curves).values(), 1):
        trace = content["figures"][f"curve-{k}"]["data"][0]
        np.testing.assert_allclose(trace["x"][1:-1], curve.thresholds, rtol=1e-8)
        np.testing.assert_allclose(trace["y"], curve.levels, rtol=1e-4)
    for picture in curve_pictures(ranker.to_model(), data):
        assert_drawable(picture.figure)
        _, bars, *missing = picture.figure["data"]
        assert len(numbers_of(bars["x"])) == len(bars["y"]) + 1
        values = data.X[:, data.feature_names.index(picture.name)]
        assert sum(bars["y"]) == np.sum(~np.isnan(values))
        assert bool(missing) == np.isnan(values).any()
        if missing:
            assert missing[0]["y"] == [ranker.to_model().curves[picture.name].missing]


def test_the_page_has_the_same_bytes_on_every_run_and_needs_no_network(page, ranker, data):
    assert render(build_content(ranker, train=data)) == page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_the_path_explorer_shows_the_ranges_of_curves(page, ranker):
    explorer = data_of(page)["explorers"]["path"][0]
    curves, at = ranker.to_model().curves, explorer["points"][explorer["chosen"]]
    shown = {explorer["features"][j]: size for j, size in at}
    assert set(shown) == set(curves)
    for name, curve in curves.items():
        assert shown[name] == pytest.approx(curve.range, rel=1e-3)
    assert explorer["figure"]["layout"]["yaxis"]["title"] == "range of the curve"
    assert max(explorer["n_nonzero"]) <= 6  # features, not steps
    star = data_of(page)["figures"]["candidates-features"]["data"][-1]
    assert star["x"] == [len(curves)]


def test_the_table_of_features_shows_ranges(page, ranker):
    names = list(by_range(ranker.to_model().curves))
    assert f"{' and '.join([', '.join(names[:-1]), names[-1]])} (by decreasing range of the curves)" in page
    assert "weight" not in text_of(page[page.index("<body>") :]).split("Curves")[0]


def test_a_page_of_a_model_alone_has_curves_without_values():
    content = content_of_model(MODEL, title="Model")
    assert [one.name for one in content.pictures] == ["rating", "price"]
    assert [len(one.figure["data"]) for one in content.pictures] == [2, 1]
    for one in content.pictures:
        assert_drawable(one.figure)
    assert content.pictures[0].caption == "0 to +1.12, rising, 3 steps; missing −0.300."
    assert "All levels" in render(content)


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        (np.exp(np.linspace(-6, 9, 400)), True),
        (np.floor(np.exp(np.linspace(-2, 9, 400))), True),
        (np.linspace(-5, 5, 400), False),
        (np.repeat([0.0, 1.0], 200), False),
        (np.full(400, 7.0), False),
        (1.6e9 + np.arange(400) * 86400.0, False),
        (np.full(400, np.nan), False),
    ],
)
def test_pictures_of_any_values_can_be_drawn(values, is_log):
    middle = 1.0 if np.isnan(values).all() else float(np.nanmedian(values)) + 0.5
    model = LinearModel((Term("f1", 0, 1.0, Curve((middle,), (0.0, 1.0))),), 1)
    data = rs.Dataset(values[:, None], np.arange(400) % 2, np.repeat(np.arange(40), 10))
    (picture,) = curve_pictures(model, data)
    assert_drawable(picture.figure)
    assert (picture.figure["layout"]["xaxis"].get("type") == "log") == is_log
    for trace in picture.figure["data"]:
        edges = trace["x"] if isinstance(trace["x"], list) else numbers_of(trace["x"])
        assert edges == sorted(edges)
        assert not is_log or edges[0] > 0
        if "fill" in trace:
            assert sum(trace["y"]) == 400


def test_data_on_disk_and_sparse_data_have_the_same_pictures(ranker, data, tmp_path):
    from scipy.sparse import csr_matrix

    on_disk = rs.io.convert_dataset(data, tmp_path / "folder")
    sparse = rs.Dataset(csr_matrix(data.X), data.y, data.qid, data.feature_names)
    pictures = curve_pictures(ranker.to_model(), data)
    assert curve_pictures(ranker.to_model(), on_disk) == pictures
    assert curve_pictures(ranker.to_model(), sparse) == pictures


def test_bars_of_integers_hold_equally_many_integers():
    values = np.arange(1, 101).repeat(4).astype(float)
    model = LinearModel((Term("f1", 0, 1.0, Curve((50.5,), (0.0, 1.0))),), 1)
    data = rs.Dataset(values[:, None], np.arange(400) % 2, np.repeat(np.arange(40), 10))
    bars = curve_pictures(model, data)[0].figure["data"][1]["y"]
    assert len(set(bars[1:-1])) == 1


def test_a_curve_has_a_direction_and_a_text_for_each_level():
    assert direction(RATING) == "rising"
    assert direction(PRICE) == "falling"
    assert direction(Curve((1.0, 2.0), (0.0, 1.0, 0.5))) == "mixed"
    assert direction(Curve((), (0.0,), 2.0)) == "only missing"
    assert value_texts(RATING) == ["below 6", "from 6 to 7.5", "from 7.5 to 8.1", "from 8.1"]
    assert value_texts(Curve((), (0.0,), 2.0)) == ["any value"]
    assert len(set(value_texts(Curve((1.0000001, 1.0000002), (0, 1, 2))))) == 3
    assert RATING.range == pytest.approx(1.42)
    assert PRICE.range == 0.25
    assert MODEL.curves == {"price": PRICE, "rating": RATING}
    doubled = LinearModel((Term("price", 0, -2.0, PRICE),), 1)
    assert doubled.curves["price"].levels == (0.0, 0.5)


def test_the_next_step_is_the_next_threshold_above_a_value_and_the_change_there():
    thresholds, changes = RATING.next_steps(np.array([5.0, 6.0, 7.9, 8.1, np.nan]))
    np.testing.assert_array_equal(thresholds, [6.0, 7.5, 8.1, np.nan, np.nan])
    values = np.array([5.0, 6.0, 7.9])
    np.testing.assert_allclose(RATING(values) + changes[:3], RATING(thresholds[:3]))
    assert np.isnan(changes[3:]).all()


def test_contributions_of_a_document_add_up_to_its_score_exactly(ranker, data):
    for query in (3, 17):
        explained = rs.explain_query(ranker, data, query)
        for parts, score in zip(explained.contributions.tolist(), explained.scores.tolist(), strict=True):
            assert sum(parts) == score
        pair = rs.explain_pair(ranker, data, *explained.rows[:2].tolist())
        assert pair.difference == math.fsum(part.contribution for part in pair.parts)
        assert pair.difference == pytest.approx(pair.score_a - pair.score_b, abs=1e-12)


def test_a_pair_states_levels_and_next_steps():
    pair = rs.explain_pair(MODEL, DOCUMENTS, "A", "B", "q")
    rating, price = pair.parts
    assert level_texts(rating) == (
        "7.9 gives +0.820; from 8.1 on 0.3 more",
        "6.2 gives +0.500; from 7.5 on 0.32 more",
    )
    assert level_texts(price) == ("12 gives −0.250", "5 gives 0; from 10 on 0.25 less")
    assert pair_sentence(pair, 5) == (
        "A ranks above B by 0.07: rating +0.32 (7.9 against 6.2), price -0.25 (12 against 5)."
    )
    assert pair.to_dict()["parts"][0]["next_a"] == (8.1, pytest.approx(0.3))
    assert pair.to_dict()["parts"][1]["next_a"] is None
    missing = rs.explain_pair(MODEL, DOCUMENTS, "C", "D", "q")
    assert level_texts(missing.parts[0]) == ("missing gives −0.300", "9 gives +1.12")
    assert level_texts(missing.parts[1]) == ("10 gives −0.250", "missing gives 0")
    json.dumps(missing.to_dict(), allow_nan=False)


def test_a_query_shows_values_with_their_next_steps():
    query = rs.explain_query(MODEL, DOCUMENTS, "q")
    cells = {query.documents[d]: value_cells(query, d, [1, 0]) for d in range(4)}
    assert cells["A"] == ["7.9 (8.1: +0.300)", "12"]
    assert cells["C"] == ["missing", "10"]
    assert cells["B"] == ["6.2 (7.5: +0.320)", "5 (10: −0.250)"]
    json.dumps(query.to_dict(), allow_nan=False)
    assert model_sentences(MODEL) == [
        "The model uses 2 of 3 features. Score of a document: sum of the levels of 2 curves: "
        "rating (range 1.42), price (range 0.250)."
    ]


def test_the_proof_is_about_curves(ranker, data):
    model = ranker.to_model()
    text = optimality(model.certificate, model.parameters)
    assert "no other curves, over all steps of all features" in text
    assert "about the levels, not about the choice of features and thresholds" in text
    signs = {**model.parameters, "signs": {"f1": "+"}}
    assert "other curves with steps of f1 ≥ 0, over all steps" in optimality(model.certificate, signs)
    kept = {**model.certificate, "family": "kept", "weights": {"f5": "inf", "f6": math.inf, "f1": 0.5}}
    assert "all features except f5 and f6, lower" in optimality(kept, model.parameters)
    lines = optimality({name: kept[name] for name in kept if name != "shape"}, model.parameters)
    assert "no other weights of a model that excludes f5 and f6 lower" in lines
    refitted = {**model.certificate, "features": ["f1", "f2"]}
    proof = optimality(refitted, model.parameters)
    assert "for the 2 features it was fitted on, no other curves, over all steps of these features," in proof


@pytest.fixture
def files(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rs.write_dataset(data, "d.parquet")
    return "d.parquet"


def test_curves_from_fit_to_explanation_on_the_command_line(files):
    options = ["--shape", "curves", "--max-features", 3, "--set", "n_alphas=12", "-o", "m.json"]
    text = run("fit", files, *options, "--report", "page.html").stdout
    assert re.search(r"feature +range +lowest +highest +steps +direction +missing +selected", text)
    assert re.search(r"\n +f1 +\d\.\d\d +−\d\.\d\d +\+?\d\S* +\d+ +mixed +0 +100 %", text)
    assert "no other curves, over all steps of all features" in text
    with open("page.html", encoding="utf-8") as file:
        assert file.read().count("<figcaption>") == 3
    query = ("explain", "m.json", files, "--query", 3)
    assert "level of the feature's curve" in run(*query).stdout
    text = run(*query, "--doc", 1, "--above", 2).stdout
    assert re.search(r"gives [+−]?\d", text)
    assert "contributions add up to" in text
    pair = json.loads(run(*query, "--doc", 1, "--above", 2, "--json").stdout)
    assert pair["difference"] == math.fsum(part["contribution"] for part in pair["parts"])
    run("explain", "m.json", files, "--drop")
    run("explain", "m.json", files, "--report", "why.html")
    with open("why.html", encoding="utf-8") as file:
        assert file.read().count("<figcaption>") == 3


def test_other_shapes_and_methods_are_refused_in_one_sentence(files):
    assert "shape" in refused("fit", files, "--shape", "wave", "-o", "m.json")
    assert "shape" in refused("fit", files, "--shape", "curves", "--method", "ranksvm-l1", "-o", "m.json")
