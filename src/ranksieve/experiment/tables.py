"""Tables of results (accuracy, significance, times), and their file formats."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ranksieve._util.files import atomic_write
from ranksieve.errors import DataError, ParameterError, lookup
from ranksieve.experiment.results import TABLE_METRICS, DataSetResults, MethodResult, Results
from ranksieve.methods import METHODS
from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL, PairedTest, compare
from ranksieve.show.result import Part, Table


@dataclass(frozen=True)
class Cell:
    """A value and its text; ``marks`` show significance, ``spread`` is the standard deviation over seeds."""

    value: float | str | None
    text: str
    bold: bool = False
    marks: str = ""
    spread: float | None = None


@dataclass(frozen=True)
class ResultTable:
    """A named table; ``note`` explains how to read it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def numeric_columns(self) -> list[bool]:
        """For each column, whether it contains only numbers and missing values."""
        columns = zip(*self.rows, strict=True)
        return [not any(isinstance(cell.value, str) for cell in column) for column in columns]


def text_cell(text: str) -> Cell:
    return Cell(text, text)


def count_cell(value: int) -> Cell:
    return Cell(value, str(value))


def number_cell(
    value: float,
    form: str = "{:.4f}",
    best: float | None = None,
    marks: str = "",
    spread: float | None = None,
) -> Cell:
    """Return a cell with a number, followed by ± spread if there is one; NaN is shown as a dash."""
    if math.isnan(value):
        return Cell(None, "–")
    text, bold = form.format(value), best is not None and bool(value == best)
    if spread is None or math.isnan(spread):
        return Cell(float(value), text, bold, marks)
    return Cell(float(value), f"{text} ± {form.format(spread)}", bold, marks, float(spread))


def method_title(name: str) -> str:
    """Return the title of a method in the table METHODS, or its name if it is not there."""
    return METHODS[name].title if name in METHODS else name


def metric_heading(metric: str) -> str:
    """Return the column heading of a metric: N@10 for ndcg@10."""
    return metric.replace("ndcg@", "N@").replace("map", "MAP")


TableBuilder = Callable[[DataSetResults, str], ResultTable]
"""Builds a table from the results on a data set and the name of the baseline."""
SHOWN_TABLES = ("accuracy", "significance", "times")
DEFAULT_BASELINE = "ranksvm"
DENSITY = "density"
MARKS_NOTE = (
    "Means over folds, {profile} profile; the best value of a column is bold. Better than {baseline} at "
    "5 %, over the test queries of all folds: * by the paired two-sided t-test, † by the randomisation test, "
    "‡ by both after Holm's correction over the methods. Density: features in use / features that vary "
    "within some query."
)
SEEDS_NOTE = (
    " ± is the standard deviation over {n_seeds} seeds of a randomised method, each with its own fits and "
    "its own selection on validation data."
)


def all_tables(
    results: Results, baseline: str | None = None, builders: Sequence[TableBuilder] | None = None
) -> list[ResultTable]:
    """Build the tables of every data set, by default RESULT_TABLES."""
    chosen = baselines_by_data_set(results, baseline)
    return [
        build(data_set, default_baseline(data_set, chosen[name]))
        for name, data_set in results.data_sets.items()
        for build in (RESULT_TABLES if builders is None else builders)
    ]


def main_parts(tables: Sequence[ResultTable]) -> Iterator[Part]:
    """The tables of accuracy, significance and times, each with its note."""
    for one in tables:
        if one.rows and one.name in SHOWN_TABLES:
            cells = [[f"{c.text}{c.marks}" for c in row] for row in one.rows]
            yield Table(one.columns, cells, one.title, [[c.bold for c in row] for row in one.rows])
            yield one.note


def baselines_by_data_set(results: Results, baseline: str | None) -> dict[str, str | None]:
    """Map each data set to the baseline, or to None if the method was not run on it.

    Raise an error if no data set has the baseline, or if it is unfinished on some data set: comparing with
    another baseline there would be misleading.
    """
    for (data_set, name), progress in results.unfinished.items():
        if name == baseline:
            reason = f"is unfinished on {data_set}: {progress}"
            advice = "run bench again to finish it, or choose another one"
            raise ParameterError("baseline", baseline, f"{reason}; {advice}")
    if baseline is not None:
        names = {name: name for data in results.data_sets.values() for name in data.methods}
        lookup(names, baseline, "baseline")
    return {
        name: baseline if baseline in data_set.methods else None
        for name, data_set in results.data_sets.items()
    }


def default_baseline(results: DataSetResults, baseline: str | None = None) -> str:
    """Return the given baseline; without one, RankSVM-Primal if it was run, else the first method."""
    if baseline is not None:
        lookup(results.methods, baseline, "baseline")
        return baseline
    return DEFAULT_BASELINE if DEFAULT_BASELINE in results.methods else next(iter(results.methods))


def unfinished_messages(results: Results) -> list[str]:
    """Return one message for each method that is left out, with its progress."""
    return [
        f"{data_set}: {method_title(name)}{', the usual baseline,' if name == DEFAULT_BASELINE else ''} is "
        f"left out: {progress}; run bench again to finish it"
        for (data_set, name), progress in results.unfinished.items()
    ]


def accuracy_table(results: DataSetResults, baseline: str) -> ResultTable:
    """Build the table of metrics and density of each method, the best in bold, with significance marks."""
    rows = {name: result.to_row() for name, result in results.results.items()}
    best = {metric: max(row[metric] for row in rows.values()) for metric in TABLE_METRICS}
    best[DENSITY] = np.nanmin([row[DENSITY] for row in rows.values()] + [np.inf])
    marks = _marks(results, baseline)

    def cells(name: str) -> tuple[Cell, ...]:
        row, spread = rows[name], results.results[name].spread()
        values = [
            number_cell(row[m], best=best[m], marks=marks.get((name, m), ""), spread=spread.get(m))
            for m in TABLE_METRICS
        ]
        density = number_cell(row[DENSITY], "{:.3f}", best=best[DENSITY], spread=spread.get(DENSITY))
        used = number_cell(row["n_selected"], "{:.1f}", spread=spread.get("n_selected"))
        return (text_cell(method_title(name)), *values, density, used)

    columns = ("method", *(metric_heading(m) for m in TABLE_METRICS), DENSITY, "features")
    profile = results.header["identity"]["profile"]
    note = MARKS_NOTE.format(profile=profile, baseline=method_title(baseline))
    n_seeds = sorted({result.n_seeds for result in results.results.values()} - {1})
    if n_seeds:
        note += SEEDS_NOTE.format(n_seeds=" or ".join(map(str, n_seeds)))
    unfinished = results.unfinished.items()
    note += "".join(f" {method_title(name)} is left out: {progress}." for name, progress in unfinished)
    return ResultTable("accuracy", f"{results.name}: test accuracy", columns, tuple(map(cells, rows)), note)


def significance_table(results: DataSetResults, baseline: str) -> ResultTable:
    """Build the comparison with the baseline: difference, relative change, wins and losses, p-values."""
    tests = ("p (t)", "Holm (t)", "p (rand.)", "Holm (rand.)")
    columns = ("method", "metric", "difference", "change", "wins", "ties", "losses", *tests)
    rows = tuple(_significance_cells(row) for row in _against(results, baseline))
    return ResultTable(
        "significance",
        f"{results.name}: each method against {method_title(baseline)}",
        columns,
        rows,
        f"Paired two-sided tests over the {results.n_queries} test "
        "queries of all folds, by t and by randomisation; change: relative to the baseline's mean over them; "
        "Holm: corrected over the methods.",
    )


def time_table(results: DataSetResults, baseline: str) -> ResultTable:
    """Build the table of seconds of the selected fits (mean over folds) and of the whole grids (sum)."""

    def cells(name: str, result: MethodResult) -> tuple[Cell, ...]:
        row, fits = result.to_row(), sum(len(fold.fits) for fold in results.methods[name])
        chosen = number_cell(row["fit_seconds"] / len(result.folds), "{:.3g}")
        whole = (
            number_cell(row["grid_seconds"], "{:.3g}"),
            number_cell(row["grid_seconds"] / fits, "{:.3g}"),
        )
        return (text_cell(method_title(name)), count_cell(fits), chosen, *whole)

    columns = ("method", "fits", "chosen fit", "whole grid, all folds", "mean fit")
    rows = tuple(cells(name, result) for name, result in results.results.items())
    note = "Seconds of one process each; the chosen fit is a mean over folds."
    return ResultTable("times", f"{results.name}: training time", columns, rows, note)


RESULT_TABLES: tuple[TableBuilder, ...] = (accuracy_table, significance_table, time_table)


@lru_cache(maxsize=8)
def _against(results: DataSetResults, baseline: str) -> Sequence[PairedTest]:
    if len(results.pooled) < 2:
        return ()
    return compare(results.pooled, baseline, TABLE_METRICS).rows


def _marks(results: DataSetResults, baseline: str) -> dict[tuple[str, str], str]:
    return {(row.a, row.metric): "".join(_marks_of(row)) for row in _against(results, baseline)}


def _marks_of(row: PairedTest) -> Iterator[str]:
    if row.difference <= 0:
        return
    if row.p_t < SIGNIFICANCE_LEVEL:
        yield "*"
    if row.p_randomisation < SIGNIFICANCE_LEVEL:
        yield "†"
    if max(row.p_t_holm, row.p_randomisation_holm) < SIGNIFICANCE_LEVEL:
        yield "‡"


def _significance_cells(row: PairedTest) -> tuple[Cell, ...]:
    counts = [count_cell(value) for value in (row.wins, row.ties, row.losses)]
    tests = (row.p_t, row.p_t_holm, row.p_randomisation, row.p_randomisation_holm)
    change = number_cell(100 * row.relative_change, "{:+z.2f} %")
    p_values = [Cell(p, f"{p:.4f}", bold=p < SIGNIFICANCE_LEVEL) for p in tests]
    difference = number_cell(row.difference, "{:+z.4f}")
    return (
        text_cell(method_title(row.a)),
        text_cell(metric_heading(row.metric)),
        difference,
        change,
        *counts,
        *p_values,
    )


ONE_LINE = str.maketrans({"\n": " ", "\r": " "})
LATEX_MARKS = {"*": "*", "†": r"\dagger", "‡": r"\ddagger"}
LATEX = ONE_LINE | str.maketrans({
    "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "ℓ": r"$\ell$", "λ": r"$\lambda$", "–": "--", "−": "$-$", "±": r"$\pm$",
    **{mark: f"${LATEX_MARKS[mark]}$" for mark in "†‡"},
})  # fmt: skip
MARKDOWN = ONE_LINE | str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>|&"})
MARKDOWN_CELL = ONE_LINE | str.maketrans({letter: f"\\{letter}" for letter in "\\`[<|"})
FORMULA_STARTS = tuple("=+-@\t＝＋－＠")  # spreadsheets read text that starts with these as a formula


def write_tables(tables: Sequence[ResultTable], path: str | os.PathLike[str]) -> None:
    """Write tables to a file, atomically; the suffix determines the format."""
    text = table_format(path)(tables)
    with atomic_write(path) as file:
        file.write(text)


def table_format(path: str | os.PathLike[str]) -> Callable[[Sequence[ResultTable]], str]:
    """Return the function that formats tables for the suffix of a file."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_FORMATS:
        raise DataError(path, None, f"must end in one of {', '.join(TABLE_FORMATS)}")
    return TABLE_FORMATS[suffix]


def markdown(tables: Sequence[ResultTable]) -> str:
    """Format tables as GitHub pipe tables, the best values in bold."""
    return "\n\n".join(_markdown_table(table) for table in tables if table.rows) + "\n"


def latex(tables: Sequence[ResultTable]) -> str:
    """Format tables with booktabs, for inclusion in a paper."""
    return "% needs \\usepackage{booktabs}\n" + "\n\n".join(_latex_table(t) for t in tables if t.rows) + "\n"


def csv_text(tables: Sequence[ResultTable]) -> str:
    """Format tables with one line per cell: table, title, row, column, value, best, marks, spread.

    Values have full precision. Text that a spreadsheet would read as a formula starts with an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "title", "row", "column", "value", "best", "marks", "spread"])
    for table in tables:
        for number, row in enumerate(table.rows, start=1):
            for column, cell in zip(table.columns, row, strict=True):
                value, spread = ("" if v is None else v for v in (cell.value, cell.spread))
                position = [table.name, table.title, number, column]
                writer.writerow(map(_csv_value, [*position, value, int(cell.bold), cell.marks, spread]))
    return text.getvalue()


def _csv_value(value: object) -> object:
    """Put text on one line (csv does not quote carriage returns), and escape formulas."""
    if not isinstance(value, str):
        return value
    line = value.translate(ONE_LINE)
    return f"'{line}" if line.startswith(FORMULA_STARTS) else line


def json_text(tables: Sequence[ResultTable]) -> str:
    """Format tables as a JSON list; values have full precision."""
    return json.dumps([json_table(table) for table in tables], ensure_ascii=False, indent=1) + "\n"


TABLE_FORMATS: dict[str, Callable[[Sequence[ResultTable]], str]] = {
    ".md": markdown,
    ".tex": latex,
    ".csv": csv_text,
    ".json": json_text,
}


def _markdown_table(table: ResultTable) -> str:
    rule = ["---:" if right else "---" for right in table.numeric_columns]
    columns = [column.translate(MARKDOWN_CELL) for column in table.columns]
    lines = [columns, rule, *([_markdown_cell(cell) for cell in row] for row in table.rows)]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    heading = f"### {table.title.translate(MARKDOWN)}"
    return f"{heading}\n\n{body}\n" + (f"\n{table.note}" if table.note else "")


def _markdown_cell(cell: Cell) -> str:
    text = cell.text.translate(MARKDOWN_CELL) + cell.marks.replace("*", r"\*")
    return f"**{text}**" if cell.bold else text


def _latex_table(table: ResultTable) -> str:
    lines = [
        r"\begin{table}\centering",
        rf"\caption{{{table.title.translate(LATEX)}. {table.note.translate(LATEX)}}}",
        rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in table.numeric_columns)}}}",
        r"\toprule",
        " & ".join(column.translate(LATEX) for column in table.columns) + r" \\ \midrule",
        *(" & ".join(_latex_cell(cell) for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}\end{table}",
    ]
    return "\n".join(lines)


def _latex_cell(cell: Cell) -> str:
    text = cell.text.translate(LATEX)
    marks = "".join(LATEX_MARKS[mark] for mark in cell.marks)
    return (rf"\textbf{{{text}}}" if cell.bold else text) + (f"$^{{{marks}}}$" if marks else "")


def json_table(table: ResultTable) -> dict[str, object]:
    """Return a table as plain data for JSON."""
    rows = [
        [
            {"value": c.value, "text": c.text, "best": c.bold, "marks": c.marks}
            | ({} if c.spread is None else {"spread": c.spread})
            for c in row
        ]
        for row in table.rows
    ]
    return {**vars(table), "rows": rows}
