"""Tables as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ranksieve._util.files import atomic_write
from ranksieve.errors import DataError
from ranksieve.experiment.cells import Cell, Table

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
