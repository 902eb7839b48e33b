"""Tables and JSON on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # the type alone would load the solvers
    from ranksieve.path import Progress as Report

WIDTH_WITHOUT_TERMINAL = 120
MARKS = " %*†‡"


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str | None = None,
    bold: Sequence[Sequence[bool]] | None = None,
) -> None:
    """Print a table; floats have four significant digits, numbers stand right, ``bold`` cells are bold."""
    cells = [[_cell(value) for value in row] for row in rows]
    view = Table(title=title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for column, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[column]) for row in cells)
        view.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for number, row in enumerate(cells):
        styles = ["bold" if bold and bold[number][column] else "" for column in range(len(row))]
        view.add_row(*(Text(cell, style) for cell, style in zip(row, styles, strict=True)))
    _console().print(view)


def words(text: str) -> None:
    """Print a line of prose."""
    _console().print(Text(text), soft_wrap=True)


def emit_json(content: Any) -> None:
    """Print one JSON object."""
    sys.stdout.write(json_text(content))


def json_text(content: Any) -> str:
    """JSON on one line; ids that JSON does not know become text."""
    return json.dumps(content, allow_nan=False, default=str) + "\n"


@contextmanager
def progress(title: str) -> Iterator[Report | None]:
    """A bar with the time left on stderr, driven by (done, total); None unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(cell: str) -> bool:
    try:
        float(cell.rstrip(MARKS) if cell != "–" else "0")
    except ValueError:
        return False
    return True
