"""Every kind of page with hostile names in a real browser: no script runs, and names are shown unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from papers.bench import bench, load_results
from papers.page import write_page

import ranksieve as rs
from ranksieve.io.folds import Fold
from ranksieve.rankers.best_subset import evaluate_sizes
from ranksieve.rankers.frontier import frontier_steps
from ranksieve.report import build_content, write_report
from ranksieve.report.calls import measured_on, subset_data
from ranksieve.report.explain_page import ExplainPage, explain_page
from ranksieve.report.frontier_page import frontier_page
from ranksieve.report.inspect_page import inspect_page, remarks
from ranksieve.report.page import digest
from ranksieve.report.subset_page import subset_page
from tests.hostile import CONTROLS, MARKUP, SHOWN
from tests.test_browser import assert_only_the_file, browser, draw_all, open_tab  # noqa: F401

NAMES = [*SHOWN, *CONTROLS]
QUICK = {"n_alphas": 5, "cv": 2, "profile": "standard"}
STUDIES = ["single_features", "path"]
FOLDERS = {
    "shop": MARKUP[6],
    "ranksvm-l1": "<img src=x onerror=window.hacked=1>",
    "ranksvm": "'\"><svg onload=window.hacked=1>",
}


def hostile_data() -> rs.Dataset:
    """Features, queries, documents and texts with hostile names."""
    plain = rs.make_ranking(12, len(NAMES), 6, docs_per_query=(5, 6), random_state=1)
    queries = np.array(NAMES, dtype=object)[np.unique(plain.qid, return_inverse=True)[1]]
    names = [NAMES[k % len(NAMES)] for k in range(plain.n_docs)]
    documents = [f"{name} {k}" for k, name in enumerate(names)]
    return rs.Dataset(plain.X, plain.y, queries, NAMES, documents, texts={NAMES[0]: names})


def hostile_results(data: rs.Dataset, folder: Path):
    """Results whose data set and methods get their names after the run, as those of a stranger may have."""
    bench(
        {"shop": [Fold(data, data, data)]},
        ["ranksvm-l1", "ranksvm"],
        out=folder,
        grid="fast",
        studies=STUDIES,
    )
    for old, new in FOLDERS.items():
        for path in sorted(folder.rglob(old), reverse=True):
            path.rename(path.with_name(new.replace("/", "")))
    for path in folder.rglob("*.jsonl"):
        path.write_text(re.sub(r'"title": "[^"]*"', '"title": "</script><b>"', path.read_text(), count=1))
    return load_results(folder)


class Page(NamedTuple):
    """Where a page is, and which names it shows."""

    path: Path
    names: Sequence[str]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Page]:
    folder, data = tmp_path_factory.mktemp("hostile"), hostile_data()
    costs = {name: 1.0 + j for j, name in enumerate(NAMES)}
    ranker = rs.SparseRanker(8, feature_costs=costs, **QUICK).fit(data)
    write_report(build_content(ranker), folder / "fit.html")
    model = ranker.to_model()
    card = rs.make_scorecard(model, data)
    drops, worst = rs.feature_importance(card, data), rs.worst_queries(card.predict(data), data)
    explained = [rs.explain_query(card, data, one.query) for one in worst[:3]]
    sizes = rs.BestSubset(time_limit=0.2).fit_sizes([1, 2], data.select_features(np.arange(12)))
    measured, folds = evaluate_sizes(sizes, data.select_features(np.arange(12)), None)
    figures, features = rs.describe(data), rs.inspect_features(data)
    inspected = {
        **figures.to_dict(),
        "remarks": remarks(figures, features, [NAMES[0]]),
        "texts": [NAMES[0]],
    }
    few = rs.frontier(data, feature_costs=costs, **QUICK).to_dict()
    by_size = subset_data(sizes, measured, measured_on(MARKUP[0], folds))
    texts = {
        "explain": explain_page(ExplainPage(MARKUP[0], card, "", drops, worst, explained)),
        "frontier": frontier_page(few),
        "inspect": inspect_page({**inspected, **features.to_dict()}, MARKUP[1]),
        "subset": subset_page(by_size),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    write_page(hostile_results(data, folder / "results"), folder / "results.html")
    names = {
        "fit": [*model.names, model.method],
        "explain": [*card.names, MARKUP[0], *(str(one.query) for one in worst)],
        "frontier": [name for step in frontier_steps(few) for name in step["features"]],
        "inspect": SHOWN,
        "subset": [NAMES[j] for ranker in sizes for j in ranker.support_],
        "results": [*SHOWN, *FOLDERS.values()],
    }
    return {kind: Page(folder / f"{kind}.html", shown) for kind, shown in names.items()}


@pytest.mark.parametrize("kind", ["fit", "frontier", "subset", "explain", "inspect", "results"])
@pytest.mark.full
def test_names_are_names(browser, pages, kind):  # noqa: F811
    path, names = pages[kind]
    tab = open_tab(browser, path)
    dialogs = []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    draw_all(tab.page)
    poke(tab.page)
    assert tab.page.evaluate("window.hacked") is None
    assert dialogs == []
    assert tab.complaints == []
    assert_only_the_file(tab, path)
    assert (
        tab.page.evaluate("document.querySelectorAll('img, iframe, object, body a[href^=java]').length") == 0
    )
    shown = tab.page.evaluate(
        "(document.querySelectorAll('script').forEach(one => one.remove()), document.body.textContent)"
    )
    assert [name for name in names if name not in shown and name not in CONTROLS] == []
    assert [name for name in names if name in MARKUP]
    tab.page.close()


def poke(page):
    """Use what can be used: sort, choose, slide, point."""
    for button in page.locator("th button, .legend button").all()[:12]:
        button.dispatch_event("click")
    for choice in page.locator("select").all():
        choice.select_option(index=choice.locator("option").count() - 1)
    for slider in page.locator("input[type=range]").all():
        for value in ("0", slider.get_attribute("max")):
            slider.fill(value)
    for point in page.locator(".point").all()[:8]:
        point.dispatch_event("pointermove")
        point.dispatch_event("mouseover")


def test_a_script_that_is_not_the_pages_own_does_not_run(browser, pages, tmp_path):  # noqa: F811
    forged = tmp_path / "forged.html"
    text = pages["fit"].path.read_text(encoding="utf-8")
    forged.write_text(
        text.replace("</h1>", "</h1><script>window.hacked = 1</script><img src=x onerror=hacked=1>")
    )
    tab = open_tab(browser, forged)
    assert tab.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)
    assert [url for url in tab.requests if url.startswith("http")] == []
    tab.page.close()


@pytest.mark.parametrize("kind", ["fit", "frontier", "subset", "explain", "inspect", "results"])
def test_the_policy_names_the_scripts_of_the_page(pages, kind):
    text = pages[kind].path.read_text(encoding="utf-8")
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert re.findall(r"'sha256-([^']*)'", policy) == [digest(script) for script in scripts]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert len(re.findall("<script", text, flags=re.IGNORECASE)) == 3
