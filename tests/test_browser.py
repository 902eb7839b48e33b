"""The pages in a real browser, opened from disk: they work, fetch nothing, and fit a phone."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers.page import write_page

import ranksieve as rs
from ranksieve.cli.demo import demo
from ranksieve.rankers.best_subset import evaluate_sizes
from ranksieve.report import build_content, write_report
from ranksieve.report.calls import measured_on, subset_data
from ranksieve.report.explain_page import ExplainPage, explain_page
from ranksieve.report.frontier_page import frontier_page
from ranksieve.report.hybrid_page import hybrid_page
from ranksieve.report.subset_page import subset_page
from tests.test_hybrid import search_data
from tests.test_report import values_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SIZES = {"wide": (1200, 900), "phone": (390, 844)}
pytestmark = pytest.mark.full
VIEWS = [(size, scheme) for scheme in ("light", "dark") for size in SIZES]


@pytest.fixture(scope="module")
def browser():
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} (Debian: apt install chromium)")
    driver = pytest.importorskip("playwright.sync_api", reason='no browser driver: pip install ".[dev]"')
    with driver.sync_playwright() as playwright:
        options = {"executable_path": executable, "args": ["--no-sandbox"]}  # root has no sandbox
        launched = playwright.chromium.launch(**options)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def pages(shop_results, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    demo(random_state=0, output=str(folder), report=str(folder / "fit.html"))
    write_page(shop_results, folder / "results.html")
    data = rs.make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=0)
    for family in ("l1", "forward"):
        ranker = rs.SparseRanker(4, families=[family], cv=3, profile="standard").fit(data)
        write_report(build_content(ranker), folder / f"{family}.html")
    X = np.where(np.arange(data.n_docs)[:, None] % 7 == 0, np.nan, data.X)
    gaps = rs.Dataset(X, data.y, data.qid)
    ranker = rs.SparseRanker(4, shape="curves", n_alphas=12, cv=3, profile="standard").fit(gaps)
    write_report(build_content(ranker, train=gaps), folder / "curves.html")
    write_pages_of_long_names(data, folder)
    write_page_with_costs(folder)
    write_page_of_clauses(folder)
    return {path.stem: path for path in folder.glob("*.html")}


def write_pages_of_long_names(data: rs.Dataset, folder: Path) -> None:
    long = rs.Dataset(data.X, data.y, data.qid, [f"{'clicks_in_' * 12}{j}" for j in range(8)])
    ranker = rs.SparseRanker(4, n_alphas=12, cv=3, profile="standard").fit(long)
    write_report(build_content(ranker), folder / "long.html")
    content = rs.frontier(long, n_alphas=12, cv=3, profile="standard").to_dict()
    (folder / "frontier.html").write_text(frontier_page(content), encoding="utf-8")
    rankers = rs.BestSubset().fit_sizes([1, 2, 3], long)
    validation, folds = evaluate_sizes(rankers, long, None)
    model = ranker.to_model()
    drops, worst = rs.feature_importance(model, long), rs.worst_queries(model.predict(long), long)
    content = ExplainPage("Why", model, "", drops, worst, [rs.explain_query(model, long, worst[0].query)])
    (folder / "explain.html").write_text(explain_page(content), encoding="utf-8")
    sizes = subset_data(rankers, validation, measured_on(None, folds))
    (folder / "subset.html").write_text(subset_page(sizes), encoding="utf-8")


COSTS = {"trigram_coverage_title": 3.0, "content_coverage_title": 2.0}


def write_page_with_costs(folder: Path) -> None:
    """A fit within a budget of cost, with names as people write them, measured on test data."""
    names = [*COSTS, *(f"share_of_description_{j}" for j in range(58))]
    data = rs.make_ranking(n_queries=60, n_features=60, n_informative=6, random_state=1)
    data = rs.Dataset(data.X, data.y, data.qid, names)
    train, test = data.select_queries(np.arange(40)), data.select_queries(np.arange(40, 60))
    costs = {name: COSTS.get(name, 1.0) for name in names}
    ranker = rs.SparseRanker(8, feature_costs=costs, max_cost=8, n_alphas=12, cv=3, profile="standard")
    ranker.fit(train).report(folder / "costs.html", train=train, test=test)


def write_page_of_clauses(folder: Path) -> None:
    data = search_data()
    ranker = rs.HybridRanker(normalise="list_z").fit(data)
    worth = ranker.clause_worth(data)
    content = {**ranker.hybrid_.to_dict(), "sentences": ranker.hybrid_.sentences}
    content["worth"] = [vars(one) for one in worth]
    page = hybrid_page(content, ranker.weight_map(data), ranker.hybrid_)
    (folder / "hybrid.html").write_text(page, encoding="utf-8")


@dataclass
class Tab:
    """A page that is open, with what it complained of and what it asked for."""

    page: Any
    complaints: list[str]
    requests: list[str]


def open_tab(browser, path: Path) -> Tab:
    page = browser.new_page()
    tab = Tab(page, [], [])
    page.on("console", lambda message: tab.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    page.on("request", lambda request: tab.requests.append(request.url))
    page.goto(path.as_uri())
    return tab


@pytest.fixture(scope="module")
def tabs(browser, pages) -> dict[str, Tab]:
    return {name: open_tab(browser, path) for name, path in pages.items()}


@pytest.fixture
def show(tabs, pages):
    """Show an open page; after the test there are no errors and no requests but for the file itself."""
    shown = []

    def show_page(name, size="wide", scheme="light"):
        tab = tabs[name]
        shown.append((tab, pages[name]))
        width, height = SIZES[size]
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.page.emulate_media(color_scheme=scheme)
        open_all(tab.page)
        return tab.page

    yield show_page
    for tab, path in shown:
        assert tab.complaints == []
        assert_only_the_file(tab, path)


def assert_only_the_file(tab: Tab, path: Path) -> None:
    assert tab.requests[0] == path.as_uri()
    assert [url for url in tab.requests[1:] if not url.startswith(("data:", "blob:"))] == []


def open_all(page):
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")


def draw_all(page):
    """Open what is folded, scroll every picture into view and wait until it is drawn."""
    open_all(page)
    places = page.locator(".plot")
    for k in range(places.count()):
        places.nth(k).scroll_into_view_if_needed()
        places.nth(k).locator("svg.main-svg").first.wait_for()


def readings(explorer) -> dict[str, str]:
    names, values = explorer.locator("dt").all_inner_texts(), explorer.locator("dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("name", ["fit", "results", "curves", "costs", "hybrid"])
@pytest.mark.parametrize(("size", "scheme"), VIEWS)
def test_pages_draw_and_fit_the_screen(show, tmp_path, name, size, scheme):
    page = show(name, size, scheme)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = np.mean([int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")])
    assert (brightness < 128) == (scheme == "dark")
    page.wait_for_function(  # pictures follow the scheme too
        """() => getComputedStyle(document.querySelector(".plot .xtick text")).fill
            === getComputedStyle(document.body).color"""
    )
    page.wait_for_function(  # and the width of their places
        """() => [...document.querySelectorAll(".plot")].every(plot =>
            plot.querySelector(".main-svg").clientWidth === plot.clientWidth)"""
    )
    wanted = os.environ.get("RANKSIEVE_SCREENSHOTS")
    folder = Path(wanted or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    page.evaluate("scrollTo(0, 0)")
    picture = folder / f"{name}-{size}-{scheme}.png"
    page.screenshot(path=picture, full_page=wanted is not None)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["l1", "forward", "results", "curves"])
def test_slider_moves_by_value_and_by_keyboard(show, name):
    page = show(name)
    draw_all(page)
    explorer = page.locator(".explorer").first
    slider = explorer.locator("input[type=range]")
    data = page.evaluate("Object.values(data.explorers)[0][0]")
    assert slider.input_value() == str(data["chosen"])

    slider.fill("0")
    assert readings(explorer)["features"] == str(data["n_nonzero"][0])
    slider.focus()
    page.keyboard.press("End")
    last = len(data["alphas"]) - 1
    assert readings(explorer)["features"] == str(data["n_nonzero"][last])
    assert explorer.locator(".weights tr").count() == data["n_nonzero"][last]
    page.keyboard.press("ArrowLeft")
    shown = readings(explorer)
    assert slider.input_value() == str(last - 1)
    if name == "forward":
        assert "α" not in shown
        assert slider.get_attribute("aria-valuetext") == f"{data['n_nonzero'][last - 1]} features"
    else:
        assert float(shown["α"]) == pytest.approx(data["alphas"][last - 1], rel=1e-2)
    assert shown["held-out NDCG@10"].startswith(f"{data['mean'][last - 1]:.4f}")
    gap = float(shown["relative gap"].replace("−", "-"))
    assert gap == pytest.approx(data["relative_gaps"][last - 1], rel=0.1)
    page.wait_for_function(
        """value => {
            const plot = document.querySelector(".explorer .plot");
            const cursor = plot.querySelectorAll(".mark")[1];
            return Math.abs(cursor.getAttribute("x1") - plot.axes.xaxis.at(value)) < 0.01;
        }""",
        arg=data["alphas"][last - 1],
    )
    explorer.get_by_role("button", name="chosen point").click()
    assert slider.input_value() == str(data["chosen"])


@pytest.mark.parametrize(
    ("name", "label", "first"),
    [("l1", "α", "Strongest penalty."), ("forward", "features", "Fewest features.")],
)
def test_explorer_shows_the_order_of_its_points(show, name, label, first):
    page = show(name)
    draw_all(page)
    explorer = page.locator(".explorer")
    assert explorer.locator("label.slider").inner_text().strip() == label
    explorer.locator("input[type=range]").fill("0")
    assert explorer.locator(".change").inner_text() == first
    title = explorer.locator(".plot .xaxis .title").text_content()
    assert title == ("α, decreasing" if name == "l1" else "features")


def test_candidates_are_drawn_with_the_chosen_one(show):
    page = show("fit")
    draw_all(page)
    plot = page.locator("#candidates-features")
    names = plot.evaluate("plot => plot.figure.data.map(line => line.name)")
    assert {"ℓ1", "log penalty", "forward selection", "chosen"} <= set(names)
    assert plot.locator(".trace").count() == len(names)
    assert plot.locator(".key span").all_inner_texts() == names


def test_explorer_shows_another_fold(show):
    page = show("results")
    explorer = page.locator(".explorer").first
    data = page.evaluate("data.explorers.d1[1]")
    explorer.locator("select").select_option("1")
    assert readings(explorer)["features"] == str(data["n_nonzero"][data["chosen"]])
    weights = dict(data["points"][data["chosen"]])
    names = explorer.locator(".weights td.name").all_inner_texts()
    assert names == [data["features"][j] for j in sorted(weights)]


@pytest.mark.parametrize(("name", "table"), [("fit", "#features"), ("results", "#d2-table")])
def test_tables_sort_by_click_and_by_keyboard(show, name, table):
    page = show(name)

    def values(column):
        cells = page.locator(f"{table} td[data-column={column}]")
        return cells.evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")

    heading = page.locator(f"{table} th", has_text="alone")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert values("strength") == sorted(values("strength"), reverse=True)
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert values("strength") == sorted(values("strength"))
    weight = page.locator(f"{table} th", has_text="weight")
    weight.get_by_role("button").press("Space")
    assert heading.get_attribute("aria-sort") == "none"
    sizes = [abs(value) for value in values("weight")]
    assert sizes == sorted(sizes, reverse=True)


def test_feature_table_shows_another_method(show):
    page = show("results")
    page.locator("[data-features-of=d2-table]").select_option("ranksvm")
    shown = page.locator("#d2-table td[data-column=weight]").evaluate_all(
        "cells => cells.map(cell => [Number(cell.closest('tr').dataset.row), Number(cell.dataset.value)])"
    )
    expected = page.evaluate("data.features['d2-table'].ranksvm.weight")
    assert dict(shown) == pytest.approx(dict(enumerate(expected)))
    sizes = [abs(value) for _, value in shown]
    assert sizes == sorted(sizes, reverse=True)  # still by weight
    bars = page.locator("#d2-table .bar span").first.evaluate("span => span.style.width")
    assert bars == "100%"


def test_gains_list_the_worst_queries_of_a_method(show):
    page = show("results")
    data = page.evaluate("data.gains.d2")
    root = page.locator("[data-gains=d2]")
    root.locator("select").select_option("fenchelrank")
    change = np.array(values_of(data, "fenchelrank")) - np.array(data["theirs"])
    worst = [data["queries"][k] for k in np.argsort(change, kind="stable")[:10] if change[k] < 0]
    rows = root.locator("table.worst tr").all()[1:]
    assert len(rows) == len(worst)
    assert rows[0].locator("td").first.inner_text() == data["queries"][int(np.argmin(change))]
    better, worse = int(np.sum(change > 0)), int(np.sum(change < 0))
    words = root.locator(".verdict").inner_text()
    assert f"{better} queries better" in words
    assert f"{worse} worse" in words
    draw_all(page)
    bars = root.locator(".plot").evaluate("plot => plot.figure.data[0].y")
    assert bars == sorted(bars, reverse=True)
    assert len(bars) == better + worse


def test_legend_hides_a_method_in_all_pictures(show):
    page = show("results")
    draw_all(page)
    chip = page.locator(".legend button[data-method=sparseranker]").first
    chip.click()
    chips = page.locator(".legend button[data-method=sparseranker]")
    assert {c.get_attribute("aria-pressed") for c in chips.all()} == {"false"}
    shown = """id => document.getElementById(id).figure.data
        .filter(trace => trace.legendgroup === "sparseranker").length"""
    for name in ("d2-ndcg_curves", "d2-sizes", "d2-map_against_density"):
        assert page.evaluate(shown, name) == 0
    chip.press("Enter")
    assert chip.get_attribute("aria-pressed") == "true"
    assert page.evaluate(shown, "d2-sizes") == 2


def test_printing_draws_what_was_never_in_view(browser, pages):
    tab = open_tab(browser, pages["results"])
    page = tab.page
    page.emulate_media(color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    counts = page.evaluate(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('svg.main-svg').length)"
    )
    assert min(counts) > 0
    widths = page.evaluate("[...document.querySelectorAll('.plot .main-svg')].map(s => s.clientWidth)")
    assert max(widths) <= 700  # of A4 and Letter
    ink = "getComputedStyle(document.querySelector('#all-removed_features .xtick text')).fill"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ink) == "rgb(36, 41, 47)"  # paper is light whatever the scheme is
    page.emulate_media(media="screen", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(ink) == "rgb(223, 227, 232)"
    assert tab.complaints == []
    assert_only_the_file(tab, pages["results"])


A4 = 718  # pixels, with margins of 1 cm


@pytest.mark.parametrize("name", ["curves", "hybrid"])
def test_printed_pictures_are_whole(browser, pages, name):
    tab = open_tab(browser, pages[name])
    page = tab.page
    page.set_viewport_size({"width": A4, "height": 900})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    beyond = page.evaluate(
        """[...document.querySelectorAll(".plot > svg")].map(svg => {
            const box = svg.getBBox(), matrix = svg.getScreenCTM();
            const right = svg.parentElement.getBoundingClientRect().right;
            return matrix.a * (box.x + box.width) + matrix.e - right;
        })"""
    )
    assert len(beyond) == page.locator(".plot").count() > 0
    assert max(beyond) < 1
    assert page.evaluate("document.documentElement.scrollWidth") <= A4
    assert tab.complaints == []
    page.close()


def test_printed_explorers_show_the_chosen_point_in_place_of_the_slider(show):
    page = show("fit")
    page.emulate_media(media="print")
    explorer = page.locator(".explorer")
    assert explorer.locator("input[type=range]").is_hidden()
    assert explorer.locator(".readings").is_visible()
    assert explorer.locator(".change").inner_text().startswith("Chosen model")
    page.emulate_media(media="screen")


def test_the_slider_shows_the_metric_of_the_headline(show):
    page = show("fit")
    headline = page.locator(".lead").inner_text()
    assert f"{readings(page.locator('.explorer'))['held-out NDCG@10'].split()[0]} (95 % CI" in headline


def test_few_features_have_half_of_the_picture_of_candidates(show):
    page = show("fit")
    draw_all(page)
    first, tenth, last = page.evaluate(
        """(({axes, figure}) => {
            const sizes = figure.data.flatMap(trace => trace.x);
            return [Math.min(...sizes), 10, Math.max(...sizes)].map(axes.xaxis.at);
        })(document.querySelector("[id^=candidates]"))"""
    )
    assert tenth - first >= (last - first) / 2


def test_candidates_have_an_axis_of_costs_with_the_budget(show):
    page = show("costs")
    draw_all(page)
    titles = page.locator("[id^=candidates] .xaxis .title").all_text_contents()
    assert titles == ["cost", "features"]
    assert page.locator("[id^=candidates] .note").all_text_contents() == ["budget", "budget"]
    colours = page.evaluate(
        """[...document.querySelectorAll("[id^=candidates]")].map(({figure}) => Object.fromEntries(
            figure.data.map(trace => [trace.name, trace.line?.color ?? trace.marker.color])))"""
    )
    for by_name in colours:
        assert len(set(by_name.values())) == len(by_name)  # each name has its own colour
        assert {"chosen", "beyond the budget"} <= by_name.keys()
    shared = colours[0].keys() & colours[1].keys()
    assert all(colours[0][name] == colours[1][name] for name in shared)


WORDS = """[...document.querySelectorAll("#features td.name")].flatMap(cell => {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
    while (walker.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        if (range.getClientRects().length > 1) broken.push(walker.currentNode.data);
    }
    return broken;
})"""


def test_names_break_between_words_on_a_small_screen(show):
    page = show("costs", "phone")
    assert page.evaluate(WORDS) == []
    names = page.locator("#features td.name").all_text_contents()
    assert "trigram_coverage_title" in {name.strip() for name in names}
    show("costs")


@pytest.mark.parametrize("name", ["fit", "costs", "curves", "frontier", "hybrid"])
def test_pictures_have_a_text_with_a_value(show, name):
    page = show(name)
    draw_all(page)
    texts = page.evaluate(
        "[...document.querySelectorAll('.plot > svg')].map(s => s.getAttribute('aria-label'))"
    )
    assert texts
    assert all(re.search(r"\d", text) and text.rstrip().endswith(".") for text in texts), texts


def test_the_focus_is_visible_and_wide_tables_scroll_by_keyboard(show):
    page = show("costs", "phone")
    page.wait_for_function(
        """() => [...document.querySelectorAll(".scroll")]
            .filter(box => box.checkVisibility()).every(box => (box.tabIndex === 0) ===
            (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1))"""
    )
    page.evaluate("scrollTo(0, 0)")
    accent = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent')")
    looks = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        kind, style, width, colour = page.evaluate(
            """(() => { const e = document.activeElement, s = getComputedStyle(e);
                return [e.className || e.tagName, s.outlineStyle, s.outlineWidth, s.outlineColor]; })()"""
        )
        if kind == "BODY":
            break
        looks[kind] = (style, width, colour)
    rgb = tuple(int(accent.strip()[k : k + 2], 16) for k in (1, 3, 5))
    assert set(looks.values()) == {("solid", "2px", f"rgb{rgb}")}
    assert {"BUTTON", "INPUT", "SUMMARY"} <= looks.keys()
    show("costs")


def test_interactive_pictures_of_a_model_show_all_curves(browser, tmp_path):
    data = rs.make_ranking(n_queries=30, n_features=8, n_informative=4, random_state=0)
    model = rs.SparseRanker(4, shape="curves", n_alphas=12, cv=3, profile="standard").fit(data).to_model()
    path = tmp_path / "curves.html"
    path.write_text(model.plot(interactive=True).page, encoding="utf-8")
    tab = open_tab(browser, path)
    assert sorted(tab.page.locator("figcaption").all_inner_texts()) == sorted(model.curves)
    assert tab.page.locator("figure svg.main-svg .trace").count() >= len(model.curves) > 1
    assert tab.complaints == []
    assert_only_the_file(tab, path)


TICKS = """[...document.querySelectorAll(".plot")].map(plot =>
    [...plot.querySelectorAll(".xtick text, .ytick text")].map(tick => tick.textContent))"""


@pytest.mark.parametrize("name", ["fit", "results"])
def test_axes_keep_their_ranges_when_nothing_else_changes(show, name):
    page = show(name)
    draw_all(page)
    before = page.evaluate(TICKS)
    page.evaluate("repaint()")
    assert page.evaluate(TICKS) == before


def test_every_feature_is_drawn_whatever_its_name(show):
    page = show("results")
    draw_all(page)
    for picture in ("single_features", "selected_features"):
        assert page.locator(f"#d2-{picture} .bars .point").count() == 12
    names = page.locator("#d2-single_features .xtick text").all_text_contents()
    assert {"constructorconstructor", "<b>price</b><b>price</b>"} <= set(names)  # and the whole name as title


def test_tooltip_shows_the_point_under_the_pointer(show):
    page = show("results")
    draw_all(page)
    bar = page.locator("#d2-single_features .bars .point").first
    bar.scroll_into_view_if_needed()
    bar.hover()
    name, value = page.evaluate(
        "(({x, y}) => [x[0], y[0]])(document.getElementById('d2-single_features').figure.data[0])"
    )
    assert page.locator(".tip").inner_text() == f"{name} alone: {value:.4f}"
    page.mouse.move(0, 0)
    assert page.locator(".tip").is_hidden()


def test_the_tooltip_of_a_curve_shows_the_values_and_the_level_under_the_pointer(show):
    page = show("curves")
    draw_all(page)
    picture = page.locator("#curve-1 svg.main-svg")
    picture.scroll_into_view_if_needed()
    at, y, text, level = page.evaluate(
        """(({axes, figure: {data: [curve]}}) => {
            const k = curve.y.length - 2, middle = (curve.x[k] + curve.x[k + 1]) / 2;
            return [axes.xaxis.at(middle), axes.yaxis.at(curve.y[k]), curve.text[k], curve.y[k]];
        })(document.getElementById("curve-1"))"""
    )
    picture.hover(position={"x": at, "y": y})
    shown = page.locator(".tip").inner_text().replace("−", "-")
    assert shown.startswith(f"{text}: ")
    assert float(shown.rpartition(": ")[2]) == pytest.approx(level, rel=0.01)


@pytest.mark.parametrize("name", ["subset", "frontier", "long", "explain", "curves"])
def test_long_names_fit_a_small_screen(show, name):
    page = show(name, "phone")
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES["phone"][0]
    show(name)


@pytest.mark.parametrize(
    "name", ["fit", "results", "subset", "frontier", "long", "explain", "costs", "curves"]
)
def test_pages_are_small(pages, name):
    assert pages[name].stat().st_size < (1_000_000 if name == "results" else 600_000)


FORMATS = [("+.4f", 0.25), (".3g", 0.0001234), (".4g", 12.5), (".2e", 0.00123), (".0%", 0.256), (".6g", 3.0)]


def test_numbers_are_written_as_python_writes_them(show):
    page = show("fit")
    for spec, value in FORMATS:
        text = page.evaluate("([value, spec]) => format(value, spec)", [value, spec])
        plain = text.replace("−", "-").replace(" %", "%")
        assert float(plain.rstrip("%")) == float(f"{value:{spec}}".rstrip("%")), (spec, text)
    assert page.evaluate("fill('{name}: {data.1:.2f}', {name: '<b>', data: [0, 1 / 3]})") == "<b>: 0.33"
