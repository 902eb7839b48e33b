"""inspect and convert: what a data set holds, in another format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.commands.files import beside, check_outputs, read_data
from ranksieve.commands.show import emit_json, progress, table, words
from ranksieve.data.describe import describe
from ranksieve.formats.load import format_of, read_dataset, write_dataset
from ranksieve.formats.ltr_log import read_ltr_log

SHOWN_NAMES = 12
HEADINGS = {
    "missing": "features with missing values",
    "n_missing": "missing values",
    "n_infinite": "infinite values",
}


def inspect_data(data_file: str, *, as_json: bool) -> None:
    """Show the figures of a data set; missing values are counted, not refused."""
    figures = describe(read_data(data_file, "keep")).to_dict()
    if as_json:
        emit_json(figures)
    else:
        table(["", data_file], [(_heading(name), _in_words(value)) for name, value in figures.items()])


def convert_data(source: str, target: str, *, missing: str, log: Mapping[str, str | None]) -> None:
    """Read one format, write another; ``log`` holds the options of feature logs."""
    given = {name: value for name, value in log.items() if value is not None}
    if given and format_of(source).read is not read_ltr_log:
        raise ValueError(f"--{next(iter(given))} belongs to feature logs (.json), but {source} is none")
    check_outputs([target], [source, log["judgements"]])
    with progress(f"reading {source}"):
        data = read_dataset(source, missing=missing, **given)
    write_dataset(data, target)
    with beside(target):
        words(f"Wrote {data.n_docs} documents of {data.n_queries} queries to {target}.")


def _heading(name: str) -> str:
    """n_docs -> documents, n_queries_without_pairs -> queries without pairs."""
    return HEADINGS.get(name) or name.removeprefix("n_").replace("_", " ").replace("docs", "documents")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return _listed([f"{key}: {count}" for key, count in value.items()])
    if isinstance(value, list | tuple):
        return _listed([" = ".join(part) if isinstance(part, list | tuple) else str(part) for part in value])
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _listed(parts: list[str]) -> str:
    more = len(parts) - SHOWN_NAMES
    return (", ".join(parts[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")) or "none"
