"""Pages about data, documents, sets, scorecards and results, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.report.calls import report_explanation
from tests.test_browser import assert_only_the_file, draw_all, open_tab
from tests.test_browser import browser as browser

pytestmark = pytest.mark.full
WIDTHS = (1280, 400)
NAMES = [f"trigram_coverage_of_title_{j}" for j in range(12)]
PAGES = ("inspect", "explain", "subset", "open", "card", "curve_card", "results")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    made = rs.make_ranking(30, 12, 4, random_state=0)
    rows = np.arange(made.n_docs)
    texts = {"movie_title": [f"Film {k}" for k in rows], "country": [f"land {k % 2}" for k in rows]}
    data = rs.Dataset(made.X, made.y, made.qid, NAMES, texts=texts)
    rs.inspect_features(data, profile="standard").report(folder / "inspect.html", data)
    model = rs.SparseRanker(9, n_alphas=12, cv=3, profile="standard").fit(data).to_model()
    report_explanation(model, folder / "explain.html", data)
    held_out = {"profile": "standard", "cv": 3}
    rs.BestSubset().fit_sizes([1, 2, 3], data).report(folder / "subset.html", data, **held_out)
    early = rs.BestSubset(max_nodes=1, time_limit=np.inf, ridge=1e-6)
    early.fit_sizes([3, 4], data).report(folder / "open.html", data, **held_out)
    curves = rs.SparseRanker(3, shape="curves", n_alphas=12, cv=3, profile="standard").fit(data).to_model()
    for name, one in (("card", model), ("curve_card", curves)):
        rs.make_scorecard(one, data).report(folder / f"{name}.html", test=data)
    write_results(folder)
    return folder


def write_results(folder: Path) -> None:
    """Two methods, and a feature that is constant within every query."""
    shop = rs.make_ranking(45, 12, 3, docs_per_query=(10, 14), random_state=2)
    constant = shop.queries.of_rows(np.arange(shop.n_queries)).astype(float)
    folds = rs.deal_folds(rs.Dataset(np.column_stack([shop.X, constant]), shop.y, shop.qid), 3)
    results = rs.bench({"shop": folds}, ["sparseranker", "ranksvm"], out=folder / "results", grid="fast")
    results.report(folder / "results.html")


@pytest.fixture
def show(browser, folder):
    """Open a page; after the test there are no errors and no requests but for the file itself."""
    tabs = []

    def show_page(name, width=1280):
        path = folder / f"{name}.html"
        tab = open_tab(browser, path)
        tabs.append((tab, path))
        tab.page.set_viewport_size({"width": width, "height": 900})
        return tab.page

    yield show_page
    for tab, path in tabs:
        assert tab.complaints == []
        assert_only_the_file(tab, path)
        tab.page.close()


def numbers(page, selector):
    texts = page.locator(selector).all_inner_texts()
    return [float(text.replace("−", "-").replace("+", "")) for text in texts]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen_and_say_one_sentence_first(show, name, width):
    page = show(name, width)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("p.lead").first.bounding_box()["y"] < 900
    labels = page.locator(".plot svg.main-svg").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert all(labels)


def test_all_columns_of_the_features_are_within_the_screen_and_differ(show):
    page = show("inspect")
    box = page.locator(".scroll", has=page.locator("table.inspected"))
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0
    heads = page.locator("table.inspected th").all_inner_texts()
    assert len(set(heads)) == len(heads)


def test_a_box_that_scrolls_shows_a_shadow_on_a_phone(show):
    page = show("inspect", 400)
    box = page.locator(".scroll", has=page.locator("table.inspected"))
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") > 0
    assert "radial-gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage")
    assert box.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("name", ["explain", "card", "curve_card"])
def test_the_bars_of_a_waterfall_join_and_add_up(show, name):
    page = show(name)
    charts = page.locator("table.bars", has=page.locator("tr.total"))
    assert charts.count() >= 1
    for chart in charts.all():
        values = [
            float(text.replace("−", "-")) for text in chart.locator("tbody td.number").all_inner_texts()
        ]
        assert sum(values[:-1]) == pytest.approx(values[-1], abs=1e-3)
        boxes = [bar.bounding_box() for bar in chart.locator(".track span").all()]
        end = chart.locator(".track i").first.bounding_box()["x"]
        for value, box in zip(values[:-1], boxes, strict=False):
            begins, ends = (box["x"], box["x"] + box["width"])[:: 1 if value > 0 else -1]
            assert begins == pytest.approx(end, abs=2.5)
            end = ends


def test_words_of_headers_do_not_break_inside(show):
    page = show("explain")
    heights = page.locator("table.explained").first.evaluate(
        """table => [...table.querySelectorAll("th")]
            .filter(th => ["rank", "label", "score"].includes(th.textContent))
            .map(th => { const range = document.createRange(); range.selectNodeContents(th);
                         return range.getClientRects().length; })"""
    )
    assert heights == [1, 1, 1]


def test_documents_are_shown_with_their_title_alone(show):
    text = show("explain").locator("body").inner_text()
    assert re.search(r"Film \d", text)
    assert "land" not in text


def test_a_proof_is_said_once_and_a_band_is_drawn_only_for_a_gap(show):
    page = show("subset")
    assert page.locator("body").inner_text().count("Proven best") == 1
    draw_all(page)
    assert page.locator("#objective .band").count() == 0
    assert "band" not in page.locator("body").inner_text()
    page = show("open")
    draw_all(page)
    assert page.locator("#objective .band").count() == 1
    assert "Proven best" not in page.locator("body").inner_text()


def test_a_card_shows_its_points_and_no_block_of_text(show, folder):
    page = show("curve_card")
    assert page.locator("pre").count() == 0
    points = numbers(page, ".card td.number")
    assert all(value.is_integer() for value in points)
    assert max(points) > 0
    assert page.locator(".card tbody th", has_text="to below").count() > 0


def test_results_agree_with_themselves_and_are_short(show, folder):
    page = show("results")
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    assert (folder / "results.html").stat().st_size < 1_000_000
    table = page.locator("[data-table=accuracy]")
    heads = table.locator("th").all_inner_texts()
    cell = (
        table.locator("tr", has_text="RankSVM")
        .locator("td")
        .nth(next(k for k, head in enumerate(heads) if head.startswith("density")))
    )
    assert cell.inner_text() == "1.000"  # the constant feature cannot be used
    draw_all(page)
    labels = page.locator("#d1-map_against_density").inner_text()
    assert "SparseRanker" in labels
    assert "RankSVM-Primal" in labels


@pytest.mark.parametrize("name", PAGES)
def test_a_printed_page_hides_nothing(show, name):
    page = show(name, 718)  # A4 within margins of 1 cm
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == 718
    assert page.locator("details:not([open])").count() == 0
    boxes = page.locator(".scroll").evaluate_all("all => all.map(box => getComputedStyle(box).overflow)")
    assert set(boxes) <= {"visible"}
    assert page.locator(".plot:not(:has(svg.main-svg))").count() == 0
