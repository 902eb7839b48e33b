"""Tables of results: accuracy, significance and times, and their files."""

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
from ranksieve.metrics.significance import LEVEL, PairedTest, compare


@dataclass(frozen=True)
class Cell:
    """A value, how it is written, whether it is the best, marks of significance, its spread over seeds."""

    value: float | str | None
    text: str
    bold: bool = False
    marks: str = ""
    spread: float | None = None


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


def word(text: str) -> Cell:
    """A cell of text."""
    return Cell(text, text)


def count(value: int) -> Cell:
    """A cell of a whole number."""
    return Cell(value, str(value))


def number(
    value: float,
    form: str = "{:.4f}",
    best: float | None = None,
    marks: str = "",
    spread: float | None = None,
) -> Cell:
    """A cell of a number, with ± its spread if it has one; NaN is a dash."""
    if math.isnan(value):
        return Cell(None, "–")
    text, bold = form.format(value), best is not None and bool(value == best)
    if spread is None or math.isnan(spread):
        return Cell(float(value), text, bold, marks)
    return Cell(float(value), f"{text} ± {form.format(spread)}", bold, marks, float(spread))


def title(name: str) -> str:
    """What a method is called in words: its title in the table of methods, else its name."""
    return METHODS[name].title if name in METHODS else name


def heading(metric: str) -> str:
    """ndcg@10 -> N@10, as tables head a column."""
    return metric.replace("ndcg@", "N@").replace("map", "MAP")


TableBuilder = Callable[[DataSetResults, str], Table]
"""Makes a table of a data set's results and the name of the baseline."""
DEFAULT_BASELINE = "ranksvm"
SPARSITIES = {"sparsity": "sparsity", "varying_sparsity": "of varying"}
MARKS_NOTE = (
    "Means over folds, {profile} profile; the best value of a column is bold. Better than {baseline} at "
    "5 %, over the test queries of all folds: * by the paired one-sided t-test, † by the randomisation test, "
    "‡ by both after Holm's correction over the methods. Sparsity: nonzero weights / features; of varying: "
    "without the features that are constant within every query."
)
SEEDS_NOTE = (
    " ± is the standard deviation over {n_seeds} seeds of a method that draws, each with its own fits and "
    "its own choice on valid."
)


def all_tables(
    results: Results, baseline: str | None = None, builders: Sequence[TableBuilder] | None = None
) -> list[Table]:
    """The tables of every data set: those of ``builders``, default TABLES."""
    given = baseline_where_known(results, baseline)
    return [
        build(data_set, default_baseline(data_set, given[name]))
        for name, data_set in results.data_sets.items()
        for build in (TABLES if builders is None else builders)
    ]


def baseline_where_known(results: Results, baseline: str | None) -> dict[str, str | None]:
    """The named method for each data set that has it, None for the others; some data set must have it.

    One that was begun and is not finished is refused: the others would be compared with something else.
    """
    for (data_set, name), why in results.unfinished.items():
        if name == baseline:
            raise ParameterError(
                "baseline",
                baseline,
                f"is unfinished on {data_set}: {why}; run bench again to finish it, or choose another one",
            )
    if baseline is not None:
        known = {name: name for data in results.data_sets.values() for name in data.methods}
        lookup(known, baseline, "baseline")
    return {
        name: baseline if baseline in data_set.methods else None
        for name, data_set in results.data_sets.items()
    }


def default_baseline(results: DataSetResults, baseline: str | None = None) -> str:
    """The named method, else RankSVM-Primal, else the first."""
    if baseline is not None:
        lookup(results.methods, baseline, "baseline")
        return baseline
    return DEFAULT_BASELINE if DEFAULT_BASELINE in results.methods else next(iter(results.methods))


def unfinished_sentences(results: Results) -> list[str]:
    """Which methods are left out on which data set, and how far they are."""
    return [
        f"{data_set}: {title(name)}{', the usual baseline,' if name == DEFAULT_BASELINE else ''} is left "
        f"out: {why}; run bench again to finish it"
        for (data_set, name), why in results.unfinished.items()
    ]


def accuracy_table(results: DataSetResults, baseline: str) -> Table:
    """Metrics and sparsity of each method, the best in bold, with marks of significance."""
    rows = {name: result.to_row() for name, result in results.results.items()}
    best = {metric: max(row[metric] for row in rows.values()) for metric in TABLE_METRICS}
    best |= {name: np.nanmin([row[name] for row in rows.values()] + [np.inf]) for name in SPARSITIES}
    marks = _marks(results, baseline)

    def cells(name: str) -> tuple[Cell, ...]:
        row, spread = rows[name], results.results[name].spread()
        values = [
            number(row[m], best=best[m], marks=marks.get((name, m), ""), spread=spread.get(m))
            for m in TABLE_METRICS
        ]
        shares = [number(row[s], "{:.3f}", best=best[s], spread=spread.get(s)) for s in SPARSITIES]
        used = number(row["n_selected"], "{:.1f}", spread=spread.get("n_selected"))
        return (word(title(name)), *values, *shares, used)

    columns = ("method", *(heading(m) for m in TABLE_METRICS), *SPARSITIES.values(), "features")
    profile = results.header["identity"]["profile"]
    note = MARKS_NOTE.format(profile=profile, baseline=title(baseline))
    n_seeds = sorted({result.n_seeds for result in results.results.values()} - {1})
    if n_seeds:
        note += SEEDS_NOTE.format(n_seeds=" or ".join(map(str, n_seeds)))
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


def time_table(results: DataSetResults, baseline: str) -> Table:
    """Seconds of the chosen fits and of the whole grids, summed over folds."""

    def cells(name: str, result: MethodResult) -> tuple[Cell, ...]:
        row, fits = result.to_row(), sum(len(fold.fits) for fold in results.methods[name])
        chosen = number(row["fit_seconds"] / len(result.folds), "{:.3g}")
        whole = (number(row["grid_seconds"], "{:.3g}"), number(row["grid_seconds"] / fits, "{:.3g}"))
        return (word(title(name)), count(fits), chosen, *whole)

    columns = ("method", "fits", "chosen fit", "whole grid, all folds", "mean fit")
    rows = tuple(cells(name, result) for name, result in results.results.items())
    note = "Seconds of one process each; the chosen fit is a mean over folds."
    return Table("times", f"{results.name}: training time", columns, rows, note)


TABLES: tuple[TableBuilder, ...] = (accuracy_table, significance_table, time_table)


@lru_cache(maxsize=8)
def _against(results: DataSetResults, baseline: str) -> Sequence[PairedTest]:
    if len(results.pooled) < 2:
        return ()
    return compare(results.pooled, baseline, TABLE_METRICS, alternative="greater").rows


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
    counts = [count(value) for value in (row.wins, row.ties, row.losses)]
    tests = (row.p_t, row.p_t_holm, row.p_randomisation, row.p_randomisation_holm)
    change = number(100 * row.relative_change, "{:+z.2f} %")
    p_values = [Cell(p, f"{p:.4f}", bold=p < LEVEL) for p in tests]
    difference = number(row.difference, "{:+z.4f}")
    return (word(title(row.a)), word(heading(row.metric)), difference, change, *counts, *p_values)


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
FORMULA = tuple("=+-@\t＝＋－＠")  # what a spreadsheet takes for the beginning of one


def write_tables(tables: Sequence[Table], path: str | os.PathLike[str]) -> None:
    """Write tables whole or not at all; the suffix tells the format."""
    text = format_of(path)(tables)
    with atomic_write(path) as file:
        file.write(text)


def format_of(path: str | os.PathLike[str]) -> Callable[[Sequence[Table]], str]:
    """The format that a file's suffix asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_FORMATS:
        raise DataError(path, None, f"must end in one of {', '.join(TABLE_FORMATS)}")
    return TABLE_FORMATS[suffix]


def markdown(tables: Sequence[Table]) -> str:
    """GitHub's pipe tables, the best values in bold."""
    return "\n\n".join(_markdown_table(table) for table in tables if table.rows) + "\n"


def latex(tables: Sequence[Table]) -> str:
    """booktabs tables, to be included in a paper."""
    return "% needs \\usepackage{booktabs}\n" + "\n\n".join(_latex_table(t) for t in tables if t.rows) + "\n"


def csv_text(tables: Sequence[Table]) -> str:
    """One line per cell: table, row, column, value, best, marks, spread; values in full precision.

    Text that a spreadsheet would take for a formula has an apostrophe in front, which makes it text there.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "title", "row", "column", "value", "best", "marks", "spread"])
    for table in tables:
        for number, row in enumerate(table.rows, start=1):
            for column, cell in zip(table.columns, row, strict=True):
                value, spread = ("" if v is None else v for v in (cell.value, cell.spread))
                place = [table.name, table.title, number, column]
                writer.writerow(map(_as_text, [*place, value, int(cell.bold), cell.marks, spread]))
    return text.getvalue()


def _as_text(value: object) -> object:
    """Text that stays on its line, which csv does not see to for a carriage return, and is no formula."""
    if not isinstance(value, str):
        return value
    line = value.translate(ONE_LINE)
    return f"'{line}" if line.startswith(FORMULA) else line


def json_text(tables: Sequence[Table]) -> str:
    """A list of tables; values in full precision."""
    return json.dumps([json_table(table) for table in tables], ensure_ascii=False, indent=1) + "\n"


TABLE_FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    ".md": markdown,
    ".tex": latex,
    ".csv": csv_text,
    ".json": json_text,
}


def _markdown_table(table: Table) -> str:
    rule = ["---:" if right else "---" for right in table.numeric_columns]
    columns = [column.translate(MARKDOWN_CELL) for column in table.columns]
    lines = [columns, rule, *([_markdown_cell(cell) for cell in row] for row in table.rows)]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    heading = f"### {table.title.translate(MARKDOWN)}"
    return f"{heading}\n\n{body}\n" + (f"\n{table.note}" if table.note else "")


def _markdown_cell(cell: Cell) -> str:
    text = cell.text.translate(MARKDOWN_CELL) + cell.marks.replace("*", r"\*")
    return f"**{text}**" if cell.bold else text


def _latex_table(table: Table) -> str:
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


def json_table(table: Table) -> dict[str, object]:
    """Plain data for JSON."""
    rows = [
        [
            {"value": c.value, "text": c.text, "best": c.bold, "marks": c.marks}
            | ({} if c.spread is None else {"spread": c.spread})
            for c in row
        ]
        for row in table.rows
    ]
    return {**vars(table), "rows": rows}
