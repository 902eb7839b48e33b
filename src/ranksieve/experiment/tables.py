"""Tables of results: what was reached, whether it is significant, what the papers print, how long it took."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ranksieve._util.messages import lookup
from ranksieve.experiment.published import means_of, p_values_of
from ranksieve.experiment.results import PAPER_METRICS, DataSetResults, MethodResult, Results
from ranksieve.methods import METHODS
from ranksieve.significance import PairedTest, compare, paired_t

LEVEL = 0.05
PUBLISHED_METRICS = (*(f"ndcg@{k}" for k in range(1, 11)), "map", "sparsity", "seconds")
SPARSITIES = {"sparsity": "sparsity", "varying_sparsity": "of varying"}
MARKS_NOTE = (
    "Means over folds, {profile} profile; the best value of a column is bold. Better than {baseline} at "
    "5 %, over the test queries of all folds: * by the paired one-sided t-test, † by the randomisation test, "
    "‡ by both after Holm's correction over the methods. Sparsity: nonzero weights / features; of varying: "
    "without the features that are constant within every query."
)


@dataclass(frozen=True)
class Cell:
    """A value, how it is written, whether it is the best, and marks of significance."""

    value: float | str | None
    text: str
    bold: bool = False
    marks: str = ""


@dataclass(frozen=True)
class Table:
    """A named table; ``note`` says how to read it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def numeric_columns(self) -> list[bool]:
        """Whether a column holds no text: numbers and missing values only."""
        columns = zip(*self.rows, strict=True)
        return [not any(isinstance(cell.value, str) for cell in column) for column in columns]


def all_tables(results: Results, baseline: str | None = None) -> list[Table]:
    """Every table of every data set."""
    given = baseline_where_known(results, baseline)
    return [
        build(data_set, default_baseline(data_set, given[name]))
        for name, data_set in results.data_sets.items()
        for build in TABLES
    ]


def baseline_where_known(results: Results, baseline: str | None) -> dict[str, str | None]:
    """The named method for each data set that has it, None for the others; some data set must have it."""
    if baseline is not None:
        known = {name: name for data in results.data_sets.values() for name in data.methods}
        lookup(known, baseline, "method of the results")
    return {
        name: baseline if baseline in data_set.methods else None
        for name, data_set in results.data_sets.items()
    }


def default_baseline(results: DataSetResults, baseline: str | None = None) -> str:
    """The named method, else RankSVM-Primal, else the first."""
    if baseline is not None:
        lookup(results.methods, baseline, "method of the results")
        return baseline
    return "ranksvm" if "ranksvm" in results.methods else next(iter(results.methods))


def accuracy_table(results: DataSetResults, baseline: str) -> Table:
    """Metrics and sparsity of each method, the best in bold, with marks of significance."""
    rows = {name: result.to_row() for name, result in results.results.items()}
    best = {metric: max(row[metric] for row in rows.values()) for metric in PAPER_METRICS}
    best |= {name: np.nanmin([row[name] for row in rows.values()] + [np.inf]) for name in SPARSITIES}
    marks = _marks(results, baseline)

    def cells(name: str) -> tuple[Cell, ...]:
        row = rows[name]
        values = [number(row[m], best=best[m], marks=marks.get((name, m), "")) for m in PAPER_METRICS]
        shares = [number(row[s], "{:.3f}", best=best[s]) for s in SPARSITIES]
        return (word(title(name)), *values, *shares, number(row["n_selected"], "{:.1f}"))

    columns = ("method", *(heading(m) for m in PAPER_METRICS), *SPARSITIES.values(), "features")
    profile = results.header["identity"]["profile"]
    note = MARKS_NOTE.format(profile=profile, baseline=title(baseline))
    note += "".join(f" {title(name)} is left out: {why}." for name, why in results.unfinished.items())
    return Table("accuracy", f"{results.name}: test accuracy", columns, tuple(map(cells, rows)), note)


def significance_table(results: DataSetResults, baseline: str) -> Table:
    """Each method against the baseline: difference, relative change, wins and losses, p-values."""
    tests = ("p (t)", "Holm (t)", "p (rand.)", "Holm (rand.)")
    columns = ("method", "metric", "difference", "change", "wins", "ties", "losses", *tests)
    rows = tuple(_significance_cells(row) for row in _against(results, baseline))
    return Table(
        "significance",
        f"{results.name}: each method against {title(baseline)}",
        columns,
        rows,
        f"Paired one-sided tests (better than {title(baseline)}) over the {results.n_queries} test queries "
        "of all folds, by t and by randomisation; change: relative to the baseline's mean over them; Holm: "
        "corrected over the methods.",
    )


def published_table(results: DataSetResults, baseline: str) -> Table:
    """Our numbers, those that the papers print for the method, and the differences."""
    printed = {name: means_of(results.name, name) for name in results.results}
    used = {metric for by_paper in printed.values() for means in by_paper.values() for metric in means}
    metrics = [metric for metric in PUBLISHED_METRICS if metric in used]
    rows = [
        row for name, by_paper in printed.items() for row in _published_rows(results, name, by_paper, metrics)
    ]
    return Table(
        "published",
        f"{results.name}: ours beside the published numbers",
        ("method", "source", *(heading(metric) for metric in metrics)),
        tuple(rows),
        "Difference: ours − published. Seconds: of the chosen fit, a mean over folds, on different machines.",
    )


def p_value_table(results: DataSetResults, baseline: str) -> Table:
    """Our p-values beside the published ones: paired one-sided t-test over the pooled test queries."""
    rows = []
    for entry in p_values_of(results.name):
        if not {entry.method, entry.against} <= results.pooled.keys():
            continue
        a, b = (results.pooled[name].per_query[entry.metric] for name in (entry.method, entry.against))
        ours = paired_t(a, b, "greater")
        pair = f"{title(entry.method)} over {title(entry.against)}"
        numbers = (number(ours), number(entry.value), number(ours - entry.value, "{:+z.4f}"))
        rows.append((word(pair), word(entry.source), word(heading(entry.metric)), *numbers))
    return Table(
        "p_values",
        f"{results.name}: p-values beside the published ones",
        ("pair", "source", "metric", "ours", "published", "difference"),
        tuple(rows),
        "Paired one-sided t-test: is the first better than the second?",
    )


def time_table(results: DataSetResults, baseline: str) -> Table:
    """Seconds of the chosen fits and of the whole grids, summed over folds."""

    def cells(name: str, result: MethodResult) -> tuple[Cell, ...]:
        row, fits = result.to_row(), sum(len(fold.fits) for fold in results.methods[name])
        chosen = number(row["fit_seconds"] / len(result.folds), "{:.3g}")
        whole = (number(row["grid_seconds"], "{:.3g}"), number(row["grid_seconds"] / fits, "{:.3g}"))
        return (word(title(name)), Cell(fits, str(fits)), chosen, *whole)

    columns = ("method", "fits", "chosen fit", "whole grid, all folds", "mean fit")
    rows = tuple(cells(name, result) for name, result in results.results.items())
    note = "Seconds of one process each; the chosen fit is a mean over folds."
    return Table("times", f"{results.name}: training time", columns, rows, note)


TABLES: tuple[Callable[[DataSetResults, str], Table], ...] = (
    accuracy_table, significance_table, published_table, p_value_table, time_table,
)  # fmt: skip


def word(text: str) -> Cell:
    """A cell of text."""
    return Cell(text, text)


def number(value: float, form: str = "{:.4f}", best: float | None = None, marks: str = "") -> Cell:
    """A cell of a number; NaN is a dash."""
    if math.isnan(value):
        return Cell(None, "–")
    return Cell(float(value), form.format(value), best is not None and bool(value == best), marks)


def title(name: str) -> str:
    """What a method is called in words: its title in the table of methods, else its name."""
    return METHODS[name].title if name in METHODS else name


def heading(metric: str) -> str:
    """ndcg@10 -> N@10, as the papers write it."""
    return metric.replace("ndcg@", "N@").replace("map", "MAP")


@lru_cache(maxsize=8)
def _against(results: DataSetResults, baseline: str) -> Sequence[PairedTest]:
    if len(results.pooled) < 2:
        return ()
    return compare(results.pooled, baseline, PAPER_METRICS, alternative="greater").rows


def _marks(results: DataSetResults, baseline: str) -> dict[tuple[str, str], str]:
    return {(row.a, row.metric): "".join(_marks_of(row)) for row in _against(results, baseline)}


def _marks_of(row: PairedTest) -> Iterator[str]:
    if row.p_t < LEVEL:
        yield "*"
    if row.p_randomisation < LEVEL:
        yield "†"
    if max(row.p_t_holm, row.p_randomisation_holm) < LEVEL:
        yield "‡"


def _significance_cells(row: PairedTest) -> tuple[Cell, ...]:
    counts = [Cell(count, str(count)) for count in (row.wins, row.ties, row.losses)]
    tests = (row.p_t, row.p_t_holm, row.p_randomisation, row.p_randomisation_holm)
    change = number(100 * row.relative_change, "{:+z.2f} %")
    p_values = [Cell(p, f"{p:.4f}", bold=p < LEVEL) for p in tests]
    difference = number(row.difference, "{:+z.4f}")
    return (word(title(row.a)), word(heading(row.metric)), difference, change, *counts, *p_values)


def _published_rows(
    results: DataSetResults, name: str, by_paper: Mapping[str, Mapping[str, float]], metrics: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    """Ours, then for each paper what it prints and the difference; nothing if no paper prints any."""
    reached = results.results[name].to_row()
    reached["seconds"] = reached["fit_seconds"] / len(results.results[name].folds)

    def row(label: str, values: Mapping[str, float], sign: str = "") -> tuple[Cell, ...]:
        forms = [f"{{:{sign}.3g}}" if metric == "seconds" else f"{{:{sign}.4f}}" for metric in metrics]
        cells = [number(values.get(m, math.nan), form) for m, form in zip(metrics, forms, strict=True)]
        return (word(title(name)), word(label), *cells)

    if by_paper:
        yield row("ours", reached)
    for paper, printed in by_paper.items():
        yield row(paper, printed)
        yield row("difference", {metric: reached[metric] - value for metric, value in printed.items()}, "+z")
