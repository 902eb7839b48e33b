"""ranksieve inspect: the contents of a data set, and potential problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import progress, table, words
from ranksieve.errors import shortened

if TYPE_CHECKING:
    from ranksieve.inspection import FeatureFigures

SHOWN_NAMES = 12
HEADINGS = {
    "missing": "features with missing values",
    "n_missing": "missing values",
    "n_infinite": "infinite values",
}
ARROWS = {1: "", -1: " down", 0: ""}


@command("ranksieve inspect train.txt", "ranksieve inspect train.parquet --report page.html --top 20")
def inspect(
    *,
    data: opt.Data,
    reading: opt.ReadingOptions,
    top: Annotated[int | None, opt.value("Output", "N", "Show only the best features.", min=1)] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Show the contents of a data set, and potential problems.

    Problems first: missing values, scales that differ widely, features that are nearly the same or reveal the
    label. Then the numbers of queries, labels and pairs, and for each feature: how well it ranks alone, its
    range, its deviation within queries, and how often it is missing or 0.
    """
    from ranksieve.report.inspect_page import inspect_page, remarks

    opt.check_files([data, *reading.files], report=report)
    documents = reading.data(data)
    with progress(f"inspecting {data}"):
        figures, features = rs.describe(documents), rs.inspect_features(documents)
    problems, texts = remarks(figures, features, list(documents.texts)), list(documents.texts)
    content = {**figures.to_dict(), "remarks": problems, "texts": texts, **features.to_dict()}
    if report is not None:
        opt.write_text(inspect_page(content, data), report)
    opt.present(content, as_json, lambda: _show(content, data, figures, features, top), report)


def _show(content: Mapping[str, Any], source: str, figures: Any, features: Any, top: int | None) -> None:
    for problem in content["remarks"]:
        words(f"- {problem}")
    table(["", source], [(_heading(name), _in_words(value)) for name, value in figures.to_dict().items()])
    _show_features(features.features, top, content)


def _show_features(features: Sequence[FeatureFigures], top: int | None, content: Mapping[str, Any]) -> None:
    """One row per feature, those that rank best alone first."""
    from ranksieve.report.inspect_page import between

    ranked = sorted(features, key=lambda one: -one.metric)
    rows = [
        (
            one.name,
            f"{one.metric:.4f}{ARROWS[one.direction]}" if one.direction else "–",
            *(_number(value) for value in (one.minimum, one.median, one.maximum, one.deviation)),
            f"{100 * one.missing:.3g} %",
            f"{100 * one.zeros:.3g} %",
        )
        for one in ranked[:top]
    ]
    title = content["metric"].upper()
    table(["feature", title, "min", "median", "max", "deviation", "missing", "zeros"], rows)
    more = f" The other {len(ranked) - len(rows)} features are not shown." if len(rows) < len(ranked) else ""
    words(
        f"{title}: of ranking by the feature alone, up or down; {content['profile']} profile"
        f"{between(content)}. Deviation: within queries.{more}"
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _heading(name: str) -> str:
    """n_docs -> documents, n_queries_without_pairs -> queries without pairs."""
    return HEADINGS.get(name) or name.removeprefix("n_").replace("_", " ").replace("docs", "documents")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return shortened([f"{key}: {count}" for key, count in value.items()], SHOWN_NAMES) or "none"
    if isinstance(value, list | tuple):
        parts = [" = ".join(part) if isinstance(part, list | tuple) else str(part) for part in value]
        return shortened(parts, SHOWN_NAMES) or "none"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
