"""ranksieve inspect: what a data set holds, and what may make trouble later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import shortened
from ranksieve.cli.app import command
from ranksieve.cli.options import Data, Json, ReadingOptions, check_inputs, check_outputs, write_text
from ranksieve.cli.output import emit_json, progress, table, words
from ranksieve.errors import DataError

if TYPE_CHECKING:
    from ranksieve.inspection import FeatureFigures

SHOWN_NAMES = 12
HEADINGS = {
    "missing": "features with missing values",
    "n_missing": "missing values",
    "n_infinite": "infinite values",
}
ARROWS = {1: "", -1: " down", 0: ""}


@command("ranksieve inspect train.txt", "ranksieve inspect train.parquet --html page.html --top 20")
def inspect(
    *,
    data: Data,
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Show the N features that rank best alone.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("-o", "--html", metavar="FILE", help="Also write a page, with histograms.")
    ] = None,
    reading: ReadingOptions,
    as_json: Json = False,
) -> None:
    """Show what a data set holds, and what may make trouble later.

    First what is worth a look: missing values, scales that differ much, features that are nearly the same or
    know the answer. Then queries, labels and pairs in figures, and each feature: how well it ranks alone, up
    or down, its range, its deviation within queries, and how often it is missing or 0.
    """
    from ranksieve.report.inspect_page import remarks

    check_inputs(data)
    check_outputs([html], [data, reading.names, reading.queries])
    if html is not None:
        _check_page(html)
    documents = reading.data(data)
    with progress(f"inspecting {data}"):
        figures, found = rs.describe(documents), rs.inspect_features(documents)
    said = remarks(figures, found, list(documents.texts))
    content = {**figures.to_dict(), "remarks": said, "texts": list(documents.texts), **found.to_dict()}
    if html is not None:
        from ranksieve.report.inspect_page import inspect_page

        write_text(inspect_page(content, data), html)
    if as_json:
        emit_json(content)
        return
    for remark in said:
        words(f"- {remark}")
    table(["", data], [(_heading(name), _in_words(value)) for name, value in figures.to_dict().items()])
    _show_features(found.features, top, content)
    if html is not None:
        words(f"Wrote {html}.")


def _check_page(html: str) -> None:
    from ranksieve.report.page import require_extra

    if Path(html).suffix.lower() not in (".html", ".htm"):
        raise DataError(html, None, "must end in .html")
    require_extra()


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
