"""The pictures: what they show is what the results hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.pictures import (
    FLOOR,
    MAX_POINTS,
    OVERVIEWS,
    PICTURES,
    SIZE_STYLES,
    _shown_points,
    best_on_path,
    mean_with_at_most,
)

from ranksieve.experiment.results import Results
from ranksieve.rankers.frontier import pareto_front
from ranksieve.report.page import MORE_COLOURS, PALETTE, compact, faint, make_styles, pack
from ranksieve.report.results_page import map_against_density
from tests.figures import assert_drawable
from tests.test_report import numbers_of
from tests.tiers import examples

METHODS = ["sparseranker", "fenchelrank", "ranksvm-log", "ranksvm", "rankboost"]
LINEAR = METHODS[:-1]


@pytest.fixture(scope="module")
def shop(shop_results):
    return shop_results.data_sets["shop"]


@pytest.fixture(scope="module")
def styles(shop):
    return make_styles({name: name for name in shop.methods})


def draw(name, shop, styles):
    return PICTURES[name].draw(shop, styles)


def lines_of(figure, axis="y"):
    return {t["legendgroup"]: t for t in figure["data"] if t.get("yaxis", "y") == axis and "legendgroup" in t}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_can_be_drawn(name, shop, styles):
    figure = compact(draw(name, shop, styles))
    assert_drawable(figure)
    assert figure["data"]


def test_the_overview_can_be_drawn(shop_results, styles):
    figure = compact(OVERVIEWS["removed_features"].draw(shop_results, styles))
    assert_drawable(figure)
    assert len(figure["data"]) == 2


@pytest.mark.parametrize("name", PICTURES)
def test_methods_have_one_colour_everywhere(name, shop, styles):
    for trace in draw(name, shop, styles)["data"]:
        method = trace.get("legendgroup")
        if method in styles and trace["type"] == "scatter":
            assert trace["line"]["color"] == styles[method].colour
            assert trace["marker"]["color"] == styles[method].colour


@pytest.mark.parametrize("name", ["single_features", "convergence", "descent", "online"])
def test_without_studies_there_is_no_picture_of_them(name, shop, styles):
    assert draw(name, replace(shop, studies=()), styles) is None


def test_the_other_pictures_need_no_studies(shop, styles):
    bare = replace(shop, studies=())
    assert set(lines_of(draw("sizes", bare, styles))) >= set(LINEAR)
    assert draw("selected_features", bare, styles) is not None


def test_the_package_draws_any_results(shop, styles):
    figure = compact(map_against_density(replace(shop, studies=()), styles))
    assert_drawable(figure)
    groups = {trace["legendgroup"] for trace in figure["data"] if "legendgroup" in trace}
    assert groups <= set(styles)


def test_ndcg_curves_are_means_over_folds(shop, styles):
    figure = draw("ndcg_curves", shop, styles)
    above, below = lines_of(figure, "y"), lines_of(figure, "y2")
    assert set(above) == set(below) == set(METHODS)
    expected = {
        name: [np.mean([np.mean(f.chosen["test"][f"ndcg@{k}"]) for f in folds]) for k in range(1, 11)]
        for name, folds in shop.methods.items()
    }
    mean = np.mean(list(expected.values()), axis=0)
    for name in METHODS:
        np.testing.assert_allclose(above[name]["y"], expected[name])
        np.testing.assert_allclose(below[name]["y"], expected[name] - mean, atol=1e-12)


def test_full_models_end_the_size_curves(shop, styles):
    """Cut to all of its weights a model is itself."""
    figure = draw("sizes", shop, styles)
    for axis, metric in (("y", "ndcg@10"), ("y2", "map")):
        lines = lines_of(figure, axis)
        assert set(lines) == {*LINEAR, *SIZE_STYLES}  # RankBoost has no weights to cut
        for name in LINEAR:
            most = max(len(fold.chosen["weights"]) for fold in shop.methods[name])
            assert lines[name]["x"] == list(range(1, most + 1))
            assert lines[name]["y"][-1] == pytest.approx(shop.results[name].mean(metric), abs=1e-9)


def test_size_curves_of_path_and_fbpcrank(shop, styles):
    lines = lines_of(draw("sizes", shop, styles))
    at = 5
    path, sized = [], []
    for study in shop.studies:
        points = range(len(study["path"]["alphas"]))
        within = [k for k in points if 1 <= study["path"]["n_nonzero"][k] <= at]
        best = max(within, key=lambda k: study["path"]["validation"]["ndcg@10"]["mean"][k])
        path.append(study["path"]["test"]["ndcg@10"]["mean"][best])
        fit = max(k for k, count in enumerate(study["sizes"]["n_features"]) if count <= at)
        sized.append(study["sizes"]["test"]["ndcg@10"][fit])
    shown_path, shown_sizes = (lines[name]["y"][at - 1] for name in list(SIZE_STYLES)[:2])
    assert shown_path == pytest.approx(np.mean(path))
    assert shown_sizes == pytest.approx(np.mean(sized))


def test_mean_with_at_most():
    folds = [([1, 3], [0.1, 0.3]), ([2], [0.5])]
    assert np.isnan(mean_with_at_most(folds)[0])  # the second fold has nothing with one feature
    np.testing.assert_allclose(mean_with_at_most(folds)[1:], [0.3, 0.4])
    assert mean_with_at_most([]) == []
    assert np.isnan(mean_with_at_most([([1], [0.5]), ([], [])])).all()  # an empty model has no size


def test_best_on_path_takes_validation_not_test():
    path = {
        "n_nonzero": [0, 1, 1, 3],
        "validation": {"map": {"mean": [0.9, 0.2, 0.4, 0.3]}},  # the empty model does not count
        "test": {"map": {"mean": [0.0, 0.9, 0.5, 0.8]}},
    }
    assert best_on_path(path, "map") == ([1, 3], [0.5, 0.5])


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


@examples(100)
@given(points)
def test_pareto_front_is_what_nothing_dominates(given_points):
    front = pareto_front([{"sparsity": x, "map": y} for x, y in given_points], "sparsity", "map")

    def dominated(p):
        return any(q[0] <= p[0] and q[1] >= p[1] and q != p for q in given_points)

    assert [tuple(p.values()) for p in front] == sorted({p for p in given_points if not dominated(p)})


def test_map_against_density_leaves_out_what_has_no_weights(shop, styles):
    figure = draw("map_against_density", shop, styles)
    marks = lines_of(figure)
    assert set(marks) == set(LINEAR)
    for name in LINEAR:
        row = shop.results[name].to_row()
        assert marks[name]["x"] == [row["sparsity"]]
        assert marks[name]["y"] == [row["map"]]


def test_single_features_are_compared_with_the_mean_of_random_weights(shop, styles):
    figure = draw("single_features", shop, styles)
    (bars,) = figure["data"]
    studies = [study["single_features"] for study in shop.studies]
    alone = dict(zip(studies[0]["features"], np.mean([s["alone"] for s in studies], axis=0), strict=True))
    shown = dict(zip(bars["x"], bars["y"], strict=True))
    assert shown["<b>price</b>"] == pytest.approx(alone["<b>price</b>"])
    assert bars["y"] == sorted(alone.values(), reverse=True)
    mean = np.mean([s["random"] for s in studies])
    line = next(shape for shape in figure["layout"]["shapes"] if shape["type"] == "line")
    assert line["y0"] == line["y1"] == pytest.approx(mean)
    strong = [colour == PALETTE[0] for colour in bars["marker"]["color"]]
    assert strong == [value >= mean for value in bars["y"]]


def test_selected_features_show_every_weight_of_every_fold(shop, styles):
    bars, cells = draw("selected_features", shop, styles)["data"]
    coefs = [fold.result.coef for name in LINEAR for fold in shop.methods[name]]
    used = dict(zip(shop.features, np.mean([c != 0 for c in coefs], axis=0), strict=True))
    assert bars["y"] == sorted(used.values(), reverse=True)
    order = np.argsort([-used[name] for name in shop.features], kind="stable")
    assert len(cells["values"]) == len(coefs)
    for row, coef in zip(cells["values"], coefs, strict=True):
        shown = [value or 0.0 for value in numbers_of(row)]
        np.testing.assert_allclose(shown + [0.0] * (len(order) - len(shown)), coef[order], rtol=1e-3)
    assert cells["x"] == bars["x"] == [shop.features[j] for j in order]
    assert len(cells["rows"]) == len(coefs)


def test_removed_features_are_one_minus_sparsity(shop_results, styles):
    figure = OVERVIEWS["removed_features"].draw(shop_results, styles)
    polygons = {trace["name"]: trace for trace in figure["data"]}
    assert set(polygons) == {"corner", "shop"}
    for name, data in shop_results.data_sets.items():
        around = dict(zip(polygons[name]["theta"], polygons[name]["r"], strict=True))
        assert "RankBoost" not in around
        assert around["SparseRanker"] == pytest.approx(1 - data.results["sparseranker"].to_row()["sparsity"])
    corner = dict(zip(polygons["corner"]["theta"], polygons["corner"]["r"], strict=True))
    assert np.isnan(corner["FenchelRank"])  # not run there


def test_no_radar_of_methods_without_weights(shop_results, styles, shop):
    only = replace(shop, methods={"rankboost": shop.methods["rankboost"]})
    results = Results(shop_results.folder, {"shop": only})
    assert OVERVIEWS["removed_features"].draw(results, styles) is None
    assert draw("map_against_density", only, styles) is None
    assert draw("selected_features", only, styles) is None


def test_convergence_is_distance_to_the_optimum_against_time(shop, styles):
    study = next(s["convergence"] for s in shop.studies if "convergence" in s)
    figure = draw("convergence", shop, styles)
    above, below = lines_of(figure, "y"), lines_of(figure, "y2")
    run, line = study["runs"]["FISTA"], above["solver FISTA"]
    shown = np.array(run["seconds"]) > 0
    np.testing.assert_allclose(line["x"], np.array(run["seconds"])[shown])
    distance = np.array(run["objective"])[shown] - study["optimum"]
    np.testing.assert_allclose(line["y"], np.maximum(distance, FLOOR * study["optimum"]))
    gap = np.array(run["gap"])[shown] / np.array(run["objective"])[shown]
    np.testing.assert_allclose(below["solver FISTA"]["y"], np.maximum(gap, FLOOR))
    assert figure["layout"]["xaxis"]["type"] == figure["layout"]["yaxis2"]["type"] == "log"


def test_styles_of_forty_methods_are_distinct():
    styles = make_styles({f"m{k}": f"M{k}" for k in range(40)})
    assert len({(s.colour, s.dash) for s in styles.values()}) == 40
    assert len({s.colour for s in list(styles.values())[:12]}) == len(PALETTE + MORE_COLOURS) == 12


def test_compact_is_strict_json_with_five_digits():
    values = {1: np.array([1 / 3, np.nan, 2.0]), "b": (np.float64(np.inf), np.int64(3), "x", None, True)}
    assert compact(values) == {"1": [0.33333, None, 2], "b": [None, 3, "x", None, True]}


def test_packed_numbers_are_read_back():
    values = [0.5, -0.25, None, 10.5, 0.0, 1e-7, 100.25, -0.0123, 20000.0]
    text = pack([*values, None, None])
    assert text == ".5,-.25,,10.5,0,1e-07,100.25,-.0123,20000"
    assert numbers_of(text) == values


def test_long_lines_are_thinned_to_distinguishable_points():
    assert _shown_points(5).tolist() == [0, 1, 2, 3, 4]
    few = _shown_points(100_000)
    assert (few[0], few[-1]) == (0, 99_999)
    assert len(few) <= MAX_POINTS
    assert (np.diff(few) > 0).all()


def test_faint_is_the_same_colour():
    assert faint("#3b8fd6") == "rgba(59,143,214,0.17)"


def test_sizes_show_selectors_fitted_with_k_features(shop, styles):
    lines, at = lines_of(draw("sizes", shop, styles)), 5
    for name in ("fsrank", "gas", "fsmsvm"):
        studies = [study["selectors"] for study in shop.studies]
        values = [s["selectors"][name]["test"]["ndcg@10"][s["n_features"].index(at)] for s in studies]
        assert lines[f"{name} with k"]["y"][at - 1] == pytest.approx(np.mean(values))


def test_descent_is_against_iterations_and_time(shop, styles):
    study, figure = shop.studies[0]["fsmrank_descent"], draw("descent", shop, styles)
    above, below = lines_of(figure, "y"), lines_of(figure, "y2")
    for name, run in study["runs"].items():
        away = np.maximum(np.array(run["objective"]) / study["optimum"] - 1, FLOOR)[1:]
        line, other = above[f"solver {name}"], below[f"solver {name}"]
        shown = _shown_points(len(away))
        np.testing.assert_array_equal(line["x"], shown + 1)
        np.testing.assert_array_equal(other["x"], np.array(run["seconds"][1:])[shown])
        np.testing.assert_allclose(line["y"], away[shown])
        np.testing.assert_allclose(other["y"], away[shown])


def test_the_stream_is_a_mean_over_folds_and_orders(shop, styles):
    traces = draw("online", shop, styles)["data"]
    line = next(t for t in traces if t.get("name") == "Nonfea")
    rows = [study["minbatsrank_online"] for study in shop.studies]
    curves = [curve["test"]["ndcg@10"] for row in rows for curve in row["curves"]["Nonfea"]]
    np.testing.assert_allclose(line["y"], np.mean(curves, axis=0))
    np.testing.assert_allclose(line["x"], np.mean([row["documents"] for row in rows], axis=0))
    level = next(t for t in traces if t.get("name") == "FenchelRank")["y"]
    assert level == [shop.results["fenchelrank"].mean("ndcg@10")] * 2
