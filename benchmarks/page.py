"""Write the race from stored results: docs/benchmarks.md, its tables and pictures, figures of the README.

``python -m benchmarks.page`` only writes the pages and measures nothing.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.competitors import COMPETITORS, RANKSIEVE
from benchmarks.harness import HERE, machine
from benchmarks.measures import MEASURES
from benchmarks.picture import dot_plot
from benchmarks.quality.methods import FLAGSHIP
from benchmarks.quality.page import Summary, read_tables, summaries
from benchmarks.quality.results import Rows
from benchmarks.results_data import Row, read_rows
from ranksieve._util.files import atomic_write
from ranksieve.metrics.significance import paired_t

DOCS = HERE.parent / "docs"
README = HERE.parent / "README.md"
PLOTTED_MEASURES = ("to_objective", "path", "pipeline", "memory", "reading")
HEAD = """# The race

How fast is ranksieve beside other packages, on the same problem to the same objective? `make bench` measures
it and writes this page from [benchmarks/results](../benchmarks/results). Figures are medians of usually five
measurements. How the comparisons are kept fair: [benchmarks/README.md](../benchmarks/README.md). Measured on
{machine}.

"""
PIPELINE = """
## The tuned pipeline

Every package tries its settings and is selected by NDCG@10 on validation data, over five folds; p: paired
t-test over all test queries against the best NDCG@10.

"""
TAIL = """
## Competitors

{competitors}.

What to read next: [where the speed comes from](performance.md), [how good the rankers are](quality.md).
"""
HEADLINES = (  # title, measure, data, measurement; what the peer did, competitor
    ("one ℓ1 fit to 1e-6 of the optimum, OHSUMED Fold1 (367,663 pairs)", "to_objective", "ohsumed",
     "l1, 40th α, to 1e-06", "scikit-learn `LinearSVC` on built pairs", "linearsvc"),
    ("the same on lists of about 1,000 documents", "to_objective", "long-lists",
     "l1, 40th α, to 1e-06", "the same `LinearSVC`", "linearsvc"),
    ("peak memory of that fit", "memory", "long-lists",
     "ℓ1 fit, peak resident memory", "the same `LinearSVC`", "linearsvc"),
    ("100 models, each proven to 1e-6, OHSUMED Fold1", "path", "ohsumed",
     "100-point path, against one fit on pairs", "one `LinearSVC` fit at its default tolerance", "linearsvc"),
    ("tuned and fitted, MQ2008, per fold", "pipeline", "mq2008",
     "tuned pipeline", "LightGBM, six settings", "lightgbm"),
    ("reading 28 MB of LETOR text", "reading", "28 MB",
     "reading LETOR text", "`load_svmlight_file`", "load_svmlight_file"),
)  # fmt: skip
QUALITY_HEADLINES = (  # title, our method, peer
    ("any number of features", FLAGSHIP, "LightGBM trees"),
    ("at most 10 features", f"{FLAGSHIP}, 10 features", "LightGBM stumps, 10 features"),
    ("at most 5 features", f"{FLAGSHIP}, 5 features", "LightGBM stumps, 5 features"),
)


def write_page(docs: Path = DOCS) -> None:
    """Write the page, its tables and its pictures."""
    tables = {name: read_rows(name) for name in MEASURES}
    (docs / "images").mkdir(parents=True, exist_ok=True)
    (docs / "race").mkdir(exist_ok=True)
    for name, rows in tables.items():
        if name in PLOTTED_MEASURES and (picture := dot_plot(MEASURES[name].title, plotted_rows(rows))):
            _write(docs / "images" / f"race-{name}.svg", picture)
        if rows:
            with atomic_write(docs / "race" / f"{name}.csv") as file:
                csv.writer(file, lineterminator="\n").writerows([COLUMNS, *map(cells, rows)])
    _write(docs / "benchmarks.md", page(tables))


def write_readme(path: Path = README) -> None:
    _write(path, readme(path.read_text(encoding="utf-8")))


def readme(text: str) -> str:
    """The README with new figures."""
    table = "\n".join(headlines(read_tables()))
    return re.sub(r"(<!-- figures -->\n).*?(<!-- end -->)", rf"\1\n{table}\n\n\2", text, flags=re.S)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text)


def page(tables: dict[str, list[Row]]) -> str:
    """A summary, the tuned pipelines, pictures, and links to the tables of all measures."""
    all_rows = [row for rows in tables.values() for row in rows]
    parts = [HEAD.format(machine=_machine(all_rows)), "\n".join(headlines({})), "\n"]
    if tables["pipeline"]:
        parts += [PIPELINE, "\n".join(pipeline_table(tables["pipeline"])), "\n"]
    parts.append("\n## All measures\n\n")
    parts += [
        f"- [{MEASURES[name].title}](race/{name}.csv): {_description(name)}\n"
        for name, rows in tables.items()
        if rows
    ]
    for name in PLOTTED_MEASURES:
        if any("median" in row for row in plotted_rows(tables[name])):
            parts.append(f"\n![{MEASURES[name].title}](images/race-{name}.svg)\n")
    return "".join([*parts, TAIL.format(competitors=_competitors(all_rows))])


def headlines(quality: dict[str, Rows]) -> Iterator[str]:
    """A table of ranksieve and a peer: accuracy, if its rows are given, and speed."""
    yield "| | ranksieve | peer | |"
    yield "|---|---|---|---|"
    of_method = summaries(quality) if FLAGSHIP in quality else {}
    for title, ours, theirs in QUALITY_HEADLINES:
        if {ours, theirs} <= set(of_method):
            peer = f"{theirs}: {_accuracy(of_method[theirs])}"
            yield f"| mean NDCG@10 on nine data sets, {title} | {_accuracy(of_method[ours])} | {peer} | |"
    for title, measure, data, what, peer, competitor in HEADLINES:
        rows = [
            row
            for row in read_rows(measure)
            if (row["data"], row["what"]) == (data, what) and "median" in row
        ]
        of_what = {row["competitor"]: row for row in rows}
        if {RANKSIEVE, competitor} <= set(of_what):
            one, other = of_what[RANKSIEVE], of_what[competitor]
            ratio = other["median"] / one["median"]
            gain = f"{ratio:.{0 if ratio >= 10 else 1}f} × {'less' if one['unit'] == 'MB' else 'faster'}"
            yield f"| {title} | {_quantity(one)} | {peer}: {_quantity(other)} | {gain} |"


def _accuracy(summary: Summary) -> str:
    return f"{summary.mean:.4f} with {summary.n_features:.0f} features"


def _quantity(row: Row) -> str:
    value, unit = row["median"], row["unit"]
    if unit == "s" and value < 1:
        value, unit = 1000 * value, "ms"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:#.3g}".rstrip(".") + f" {unit}"


def _description(name: str) -> str:
    """First sentence of the docstring of the measure's module."""
    module = sys.modules[MEASURES[name].run.__module__]
    return " ".join((module.__doc__ or "").split()).split(". ")[0].rstrip(".") + "."


COLUMNS = (
    "data",
    "measurement",
    "competitor",
    "median",
    "unit",
    "lowest",
    "highest",
    "n",
    "ours / theirs",
    "remark",
)


def cells(row: Row) -> list[object]:
    """A row of a measure's table; a skipped one shows the reason."""
    names = ("median", "unit", "low", "high", "n", "ours_over_theirs")
    remark = f"skipped: {row['skipped']}" if "skipped" in row else _details(row)
    return [row["data"], row["what"], row["competitor"], *(row.get(name, "") for name in names), remark]


DETAILS = {
    "speed_up": "{:.2f} × as fast as one thread",
    "same_bits": "same bits: {}",
    "share_of_limit": "{:.0%} of the limit",
    "worst_relative_gap": "worst relative gap {:.1e}",
}


def _details(row: Row) -> str:
    return ", ".join(text.format(row[name]) for name, text in DETAILS.items() if name in row)


def pipeline_table(rows: Sequence[Row]) -> Iterator[str]:
    """Table of accuracy on all test queries, and time; p: paired t-test against the best NDCG@10."""
    columns = (
        "data",
        "competitor",
        "NDCG@10",
        "p against the best",
        "MAP",
        "features",
        "s per fold",
        "ranksieve ÷ competitor",
        "models tried",
    )
    yield "| " + " | ".join(columns) + " |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for data in dict.fromkeys(row["data"] for row in rows):
        ranked = {
            row["competitor"]: row for row in rows if row["data"] == data and row["what"] == "test ndcg@10"
        }
        best = max(ranked.values(), key=lambda row: row["mean"], default={})
        for name, row in sorted(ranked.items(), key=lambda item: -item[1]["mean"]):
            by_what = {one["what"]: one for one in rows if one["data"] == data and one["competitor"] == name}
            p = paired_t(np.array(best["per_query"]), np.array(row["per_query"]))
            cells = [
                data, name, f"{row['mean']:.4f}", "best" if row is best else f"{p:.3f}",
                f"{by_what['test map']['mean']:.4f}", f"{by_what['features used']['median']:g}",
                _number(by_what["tuned pipeline"]["median"]),
                f"{by_what['tuned pipeline'].get('ours_over_theirs', 1.0):.3g}" if name != RANKSIEVE else "",
                f"{by_what['tuned pipeline'].get('tried', '')}",
            ]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"
    for row in rows:
        if "skipped" in row:
            yield f"| {row['data']} | {row['competitor']} | skipped: {row['skipped']} | | | | | | |"


def plotted_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows in seconds or MB, which the pictures show."""
    return [row for row in rows if row.get("unit") in ("s", "MB") and "n" in row]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _machine(rows: Sequence[Row]) -> str:
    about = machine()
    processors = sorted({row["processor"] for row in rows}) or [about["processor"]]
    return f"{' and '.join(processors)} ({about['cores']} cores, {about['system']}, Python {about['python']})"


def _competitors(rows: Sequence[Row]) -> str:
    """Versions of the competitors in the results, and why others are missing."""
    versions: dict[str, str] = {}
    for row in rows:
        versions |= row["versions"]
    present = [
        f"{COMPETITORS[name].title} {version}" for name, version in versions.items() if name in COMPETITORS
    ]
    missing = [
        f"{competitor.title} ({competitor.unavailable_reason()})"
        for competitor in COMPETITORS.values()
        if competitor.name not in versions and competitor.unavailable_reason()
    ]
    return ", ".join(present) + (f". Missing: {', '.join(missing)}" if missing else "")


if __name__ == "__main__":
    write_page()
    write_readme()
