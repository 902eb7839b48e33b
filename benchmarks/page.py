"""One page from the results data: docs/benchmarks.md with tables, docs/images/race-*.svg with pictures.

``python -m benchmarks.page`` writes it from what is kept, and measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.competitors import COMPETITORS, RANKSIEVE
from benchmarks.harness import HERE, machine
from benchmarks.measures import MEASURES
from benchmarks.picture import dot_plot
from benchmarks.results_data import Row, read_rows
from ranksieve._util.files import atomic_write
from ranksieve.metrics.significance import paired_t

DOCS = HERE.parent / "docs"
PICTURED = ("to_objective", "path", "pipeline", "memory", "reading")
HEAD = """# The race

Written by `make bench` from [benchmarks/results](../benchmarks/results); nothing on it is typed by hand.
Numbers are medians of five, or of as many as the column n tells, with the lowest and the highest. *Ours ÷
theirs* below 1 means that ranksieve takes less (time, memory) than the competitor. What is measured, and how
it is kept fair: [benchmarks/README.md](../benchmarks/README.md).

Measured on {machine}.

Competitors: {competitors}.
"""


def write_page(docs: Path = DOCS) -> None:
    """Write the page and its pictures."""
    tables = {name: read_rows(name) for name in MEASURES}
    (docs / "images").mkdir(parents=True, exist_ok=True)
    for name in PICTURED:
        if picture := dot_plot(MEASURES[name].title, pictured_rows(tables[name])):
            _write(docs / "images" / f"race-{name}.svg", picture)
    _write(docs / "benchmarks.md", page(tables))


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text)


def page(tables: dict[str, list[Row]]) -> str:
    """The whole page."""
    every = [row for rows in tables.values() for row in rows]
    parts = [HEAD.format(machine=_machine(every), competitors=_competitors(every))]
    for name, rows in tables.items():
        if rows:
            parts.append(section(name, rows))
    return "\n".join(parts)


def section(name: str, rows: Sequence[Row]) -> str:
    """One measure: its words, its picture, one table."""
    lines = [f"## {MEASURES[name].title}", "", _words(name), ""]
    if name in PICTURED and any("median" in row for row in pictured_rows(rows)):
        lines += [f"![{MEASURES[name].title}](images/race-{name}.svg)", ""]
    lines += list(pipeline_table(rows) if name == "pipeline" else plain_table(rows))
    return "\n".join([*lines, ""])


def _words(name: str) -> str:
    import sys

    module = sys.modules[MEASURES[name].run.__module__]
    return " ".join((module.__doc__ or "").split())


def plain_table(rows: Sequence[Row]) -> Iterator[str]:
    """Median, spread and ratio of everything measured; then what was skipped."""
    yield "| data | what | competitor | median | lowest – highest | n | ours ÷ theirs | |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        if "skipped" in row:
            cells = [
                row["data"],
                row["what"],
                row["competitor"],
                "–",
                "",
                "",
                "",
                f"skipped: {row['skipped']}",
            ]
        else:
            ratio = f"{row['ours_over_theirs']:.3g}" if "ours_over_theirs" in row else ""
            cells = [
                row["data"], row["what"], row["competitor"], f"{_number(row['median'])} {row['unit']}",
                f"{_number(row['low'])} – {_number(row['high'])}", str(row["n"]), ratio, _more(row),
            ]  # fmt: skip
        yield "| " + " | ".join(cells) + " |"


TOLD = {
    "speed_up": "{:.2f} × as fast as one thread",
    "same_bits": "same bits: {}",
    "share_of_limit": "{:.0%} of the limit",
    "worst_relative_gap": "worst relative gap {:.1e}",
}


def _more(row: Row) -> str:
    return ", ".join(words.format(row[name]) for name, words in TOLD.items() if name in row)


def pipeline_table(rows: Sequence[Row]) -> Iterator[str]:
    """Accuracy on all test queries and time; the p-value is of a paired t-test against the best NDCG@10."""
    heads = (
        "data",
        "competitor",
        "NDCG@10",
        "p against the best",
        "MAP",
        "features",
        "s per fold",
        "ours ÷ theirs",
        "models tried",
    )
    yield "| " + " | ".join(heads) + " |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for data in dict.fromkeys(row["data"] for row in rows):
        ranked = {
            row["competitor"]: row for row in rows if row["data"] == data and row["what"] == "test ndcg@10"
        }
        best = max(ranked.values(), key=lambda row: row["mean"], default={})
        for name, row in sorted(ranked.items(), key=lambda item: -item[1]["mean"]):
            of = {one["what"]: one for one in rows if one["data"] == data and one["competitor"] == name}
            p = paired_t(np.array(best["per_query"]), np.array(row["per_query"]))
            cells = [
                data, name, f"{row['mean']:.4f}", "best" if row is best else f"{p:.3f}",
                f"{of['test map']['mean']:.4f}", f"{of['features used']['median']:g}",
                _number(of["tuned pipeline"]["median"]),
                f"{of['tuned pipeline'].get('ours_over_theirs', 1.0):.3g}" if name != RANKSIEVE else "",
                f"{of['tuned pipeline'].get('tried', '')}",
            ]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"
    for row in rows:
        if "skipped" in row:
            yield f"| {row['data']} | {row['competitor']} | skipped: {row['skipped']} | | | | | | |"


def pictured_rows(rows: Sequence[Row]) -> list[Row]:
    """What the pictures show: everything in one unit, the pipeline's seconds alone."""
    return [row for row in rows if row.get("unit") in ("s", "MB") and "n" in row]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _machine(rows: Sequence[Row]) -> str:
    about = machine()
    processors = sorted({row["processor"] for row in rows}) or [about["processor"]]
    return f"{' and '.join(processors)} ({about['cores']} cores, {about['system']}, Python {about['python']})"


def _competitors(rows: Sequence[Row]) -> str:
    """Versions of those that took part, and why others did not."""
    versions: dict[str, str] = {}
    for row in rows:
        versions |= row["versions"]
    here = [
        f"{COMPETITORS[name].title} {version}" for name, version in versions.items() if name in COMPETITORS
    ]
    absent = [
        f"{one.title} ({one.unavailable_reason()})"
        for one in COMPETITORS.values()
        if one.name not in versions and one.unavailable_reason()
    ]
    return ", ".join(here) + (f". Not here: {', '.join(absent)}" if absent else "")


if __name__ == "__main__":
    write_page()
