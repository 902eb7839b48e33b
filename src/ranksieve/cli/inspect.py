"""ranksieve inspect: contents and potential problems of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_all, print_text, progress, table
from ranksieve.errors import short_list

MAX_LISTED = 12
HEADINGS = {
    "missing": "features with missing values",
    "n_missing": "missing values",
    "n_infinite": "infinite values",
}


@command("ranksieve inspect train.txt", "ranksieve inspect train.parquet --report page.html --top 20")
def inspect(
    *,
    data: opt.Data,
    reading: opt.ReadingOptions,
    top: Annotated[int | None, opt.value("Output", "N", "Show only the N best features.", min=1)] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Show contents and potential problems of a data set.

    First potential problems: missing values, very different scales, features that are nearly identical or
    reveal the label. Then the numbers of queries, labels and pairs, and for each feature the metric of
    ranking by it alone, its range, its deviation within queries, and the shares of missing values and zeros.
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
    opt.print_result(content, as_json, lambda: _show(content, data, figures, features, top), report)


def _show(content: Mapping[str, Any], source: str, figures: Any, features: Any, top: int | None) -> None:
    for problem in content["remarks"]:
        print_text(f"- {problem}")
    table(["", source], [(_heading(name), _text(value)) for name, value in figures.to_dict().items()])
    print_all(features.shown(top))


def _heading(name: str) -> str:
    """n_docs -> documents, n_queries_without_pairs -> queries without pairs."""
    return HEADINGS.get(name) or name.removeprefix("n_").replace("_", " ").replace("docs", "documents")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return short_list([f"{key}: {count}" for key, count in value.items()], MAX_LISTED) or "none"
    if isinstance(value, list | tuple):
        parts = [" = ".join(part) if isinstance(part, list | tuple) else str(part) for part in value]
        return short_list(parts, MAX_LISTED) or "none"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
