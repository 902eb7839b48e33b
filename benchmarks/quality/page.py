"""docs/quality.md and its figure, from the stored rows of all methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from math import log10
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.harness import HERE
from benchmarks.quality.data_sets import N_SPLITS, SHARES, SOURCES
from benchmarks.quality.methods import FITS, FLAGSHIP, LINES
from benchmarks.quality.results import Rows, read_rows
from ranksieve._util.files import atomic_write
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL, holm

DOCS = HERE.parent / "docs"
TEST_PER_TRAIN = (1.0 - sum(SHARES)) / SHARES[0]
HEAD = """# How good are the rankers?

How accurate is each method, and with how many features? Mean test NDCG@10 on nine real data sets, over
{splits} random splits by query each (60 % training, 20 % validation, 20 % test; the splits never change).
[Every data set](quality.csv).

"""
NOTES = """
Every figure is a mean over splits and data sets; for a method with fewer
splits, the mean of {lines} plus the mean difference on these splits. *Against {flagship}*: the
method minus {flagship} without a budget on the same splits, averaged over the data sets, ± its standard
error over splits; and on how many data sets it is significantly better / not significantly different /
significantly worse (paired t-test with the correction of Nadeau and Bengio for overlapping splits, 5 %,
Holm over all comparisons of the table).

![NDCG@10 against the number of features, for each data set](images/quality.svg)

[Ties](metrics.md#ties) count by expectation. OHSUMED and MQ2008 follow LETOR's conventions, the others the
standard ones. Every method is fitted to the training queries and tuned on the validation queries: the
papers' methods over their grids, LightGBM over leaves, least data per leaf and learning rate, with early
stopping. LightGBM stumps are trees with two leaves; with 10 or 5 features they are fitted again on the
features that had the largest gain. {flagship} selects lines or [curves](curves.md); *lines* is
`shape="linear"`. The rows of BestSubset and MinBatSRank were measured with former defaults: ten times the
ridge and `pair_weighting="pairs"`, and one pass instead of 20.

`make quality` measures what [benchmarks/results/quality](../benchmarks/results/quality) does not contain
yet: all of it takes about {minutes} minutes of one core, `make quality-short` a quarter of that. The data
sets are not part of the repository.

What to read next: [how the model is chosen](choice.md), [metrics and ties](metrics.md).
"""


class Difference(NamedTuple):
    """A method minus another over splits: mean, standard error over splits, corrected p-value."""

    mean: float
    error: float
    p: float


class Summary(NamedTuple):
    """A method over all data sets: splits, mean metric, mean number of features, and beside FLAGSHIP."""

    splits: int
    mean: float
    n_features: float
    against: str


def read_tables() -> dict[str, Rows]:
    """The stored rows of each method."""
    return {name: rows for name in FITS if (rows := read_rows(name))}


def write_page(docs: Path = DOCS) -> None:
    """Write the page, its table and its figure; nothing without results of SparseRanker."""
    tables = read_tables()
    if not {FLAGSHIP, LINES} <= set(tables):
        return
    (docs / "images").mkdir(parents=True, exist_ok=True)
    for path, text in (
        (docs / "quality.md", page(tables)),
        (docs / "quality.csv", "\n".join(csv_lines(tables)) + "\n"),
        (docs / "images" / "quality.svg", figure(tables)),
    ):
        with atomic_write(path) as file:
            file.write(text)


def page(tables: Mapping[str, Rows]) -> str:
    seconds = sum(map(seconds_of_all, tables.values()))
    head = HEAD.format(splits=len({k for _, k in tables[LINES]}))
    notes = NOTES.format(flagship=FLAGSHIP, lines=LINES, minutes=round(seconds / 60))
    return head + "\n".join(table(tables)) + "\n" + notes


def seconds_of_all(rows: Rows) -> float:
    """Processor time of a method for all data sets and splits, from the mean of the stored ones."""
    return N_SPLITS * sum(
        float(np.mean(seconds))
        for data in SOURCES
        if (seconds := [row.seconds for (name, _), row in rows.items() if name == data])
    )


def table(tables: Mapping[str, Rows]) -> Iterator[str]:
    yield f"| method | splits | NDCG@10 | features | against {FLAGSHIP} | + / = / − |"
    yield "|---|---|---|---|---|---|"
    for name, one in summaries(tables).items():
        yield f"| {name} | {one.splits} | {one.mean:.4f} | {one.n_features:.1f} | {one.against} |"


def csv_lines(tables: Mapping[str, Rows]) -> Iterator[str]:
    """One line per method and data set."""
    yield "method,data set,splits,ndcg@10,features"
    for name, rows in tables.items():
        for data in SOURCES:
            one = level(rows, tables[LINES], data)
            if one.splits:
                yield f'"{name}",{data},{one.splits},{one.value:.4f},{one.n_features:.1f}'


def summaries(tables: Mapping[str, Rows]) -> dict[str, Summary]:
    """Each method over all data sets."""
    differences = {
        (name, data): one
        for name, rows in tables.items()
        for data in SOURCES
        if name != FLAGSHIP and (one := against(rows, tables[FLAGSHIP], data)) is not None
    }
    corrected = holm(np.array([one.p for one in differences.values()]))
    significant = {key for key, p in zip(differences, corrected, strict=True) if p < SIGNIFICANCE_LEVEL}
    of_method = {}
    for name, rows in tables.items():
        levels = [level(rows, tables[LINES], data) for data in SOURCES]
        own = {key: one for key, one in differences.items() if key[0] == name}
        mean, n_features = (float(np.mean([one[k] for one in levels])) for k in range(2))
        splits = min(one.splits for one in levels)
        of_method[name] = Summary(splits, mean, n_features, _summary(own, significant))
    return of_method


def _summary(own: Mapping[tuple[str, str], Difference], significant: set[tuple[str, str]]) -> str:
    if not own:
        return " | "
    mean = np.mean([one.mean for one in own.values()])
    error = np.sqrt(np.sum([one.error**2 for one in own.values()])) / len(own)
    signs = [np.sign(one.mean) if key in significant else 0.0 for key, one in own.items()]
    return f"{mean:+.4f} ± {error:.4f} | {signs.count(1.0)} / {signs.count(0.0)} / {signs.count(-1.0)}"


class Level(NamedTuple):
    """Mean metric and number of features of a method on a data set, and the number of splits."""

    value: float
    n_features: float
    splits: int


def level(rows: Rows, reference: Rows, data: str) -> Level:
    """The reference's mean over all its splits plus the mean difference on the splits that both have.

    So methods with fewer splits can be compared; with all splits it is the method's own mean.
    """
    both = [k for k in range(N_SPLITS) if (data, k) in rows and (data, k) in reference]
    if not both:
        return Level(np.nan, np.nan, 0)
    of_all = np.mean([row.value for (name, _), row in reference.items() if name == data])
    difference = np.mean([rows[data, k].value - reference[data, k].value for k in both])
    n_features = np.mean([rows[data, k].n_features for k in both])
    return Level(float(of_all + difference), float(n_features), len(both))


def against(rows: Rows, others: Rows, data: str) -> Difference | None:
    """Paired difference over the splits that both have; None for fewer than two.

    The test queries of random splits overlap, so the variance of the mean for the p-value is s²·(1/n +
    n_test/n_train) instead of s²/n (Nadeau and Bengio, 2003).
    """
    d = np.array(
        [
            rows[data, k].value - others[data, k].value
            for k in range(N_SPLITS)
            if (data, k) in rows and (data, k) in others
        ]
    )
    if len(d) < 2:
        return None
    deviation, mean = float(d.std(ddof=1)), float(d.mean())
    if deviation == 0.0:
        return Difference(mean, 0.0, float(mean == 0.0))
    t = mean / (deviation * np.sqrt(1.0 / len(d) + TEST_PER_TRAIN))
    return Difference(mean, deviation / np.sqrt(len(d)), float(2.0 * stats.t.sf(abs(t), len(d) - 1)))


PANEL, PANEL_HEIGHT, GAP, TOP, COLUMNS = 320, 190, 52, 46, 3
COLOURS = {
    FLAGSHIP: "#0b6e4f",
    LINES: "#5fbf9b",
    "LightGBM trees": "#b3541e",
    "LightGBM stumps": "#6a3d9a",
    "RankSVM": "#1f78b4",
}
OTHERS = "#8a8d91"


def series(name: str) -> str:
    """The method without its budget."""
    return name.rpartition(", ")[0] if name.endswith(" features") else name


def figure(tables: Mapping[str, Rows]) -> str:
    """SVG with one panel per data set: mean NDCG@10 against the mean number of features (logarithmic)."""
    rows = -(-len(SOURCES) // COLUMNS)
    width, height = COLUMNS * (PANEL + GAP) + GAP, TOP + rows * (PANEL_HEIGHT + 2 * GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        "<title>NDCG@10 against the number of features</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(),
    ]
    for k, data in enumerate(SOURCES):
        left = GAP + (k % COLUMNS) * (PANEL + GAP)
        top = TOP + GAP + (k // COLUMNS) * (PANEL_HEIGHT + 2 * GAP)
        parts.append(f'<g transform="translate({left} {top})">{panel(tables, data)}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _legend() -> Iterator[str]:
    x = GAP
    for name, colour in {**COLOURS, "other methods": OTHERS}.items():
        yield f'<circle cx="{x}" cy="20" r="5" fill="{colour}"/>'
        yield f'<text x="{x + 10}" y="24">{escape(name)}</text>'
        x += 40 + 7 * len(name)


def panel(tables: Mapping[str, Rows], data: str) -> str:
    points = []
    for name, rows in tables.items():
        mean = level(rows, tables[LINES], data)
        if mean.splits:
            points.append((name, max(mean.n_features, 1.0), mean.value))
    most = max(features for _, features, _ in points)
    low, high = min(value for *_, value in points), max(value for *_, value in points)
    span = (high - low) or 1.0

    def at(features: float, value: float) -> tuple[float, float]:
        x = log10(features) / max(log10(most), 1e-9) * PANEL
        return x, PANEL_HEIGHT - (value - low) / span * PANEL_HEIGHT

    marks = [f'<text x="0" y="-12" font-weight="bold">{escape(data)}</text>']
    marks += [_tick_x(at(n, low)[0], n) for n in (1, 3, 10, 30, 100) if n <= most]
    marks += [
        f'<text x="-4" y="{at(1, value)[1] + 4:.1f}" text-anchor="end">{value:.3f}</text>'
        for value in (low, high)
    ]
    for flagship in (FLAGSHIP, LINES):
        line = [at(features, value) for name, features, value in points if series(name) == flagship]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in sorted(line))
        colour = COLOURS[flagship]
        marks.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for name, features, value in sorted(points, key=lambda point: series(point[0]) in COLOURS):
        x, y = at(features, value)
        colour = COLOURS.get(series(name), OTHERS)
        title = f"{escape(name)}: {value:.4f}, {features:.1f} features"
        marks.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{title}</title></circle>'
        )
    return "".join(marks)


def _tick_x(x: float, n: int) -> str:
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{PANEL_HEIGHT}" stroke="#d9dcdf"/>'
        f'<text x="{x:.1f}" y="{PANEL_HEIGHT + 14}" text-anchor="middle">{n}</text>'
    )
