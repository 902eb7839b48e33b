"""Results that print themselves: as one line, as text, as HTML in notebooks, and as data frames."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from unicodedata import category

from ranksieve.errors import how_to_install

if TYPE_CHECKING:
    from rich.table import Table as RichTable

WIDTH_WITHOUT_TERMINAL = 120
NUMBER_MARKS = " %*†‡"  # may follow a number in a table
INVISIBLE = (
    "Cc",
    "Cf",
    "Cs",
    "Zl",
    "Zp",
)  # categories: control, format, surrogate, line and paragraph separators
MAX_LINE = 400  # characters of a one-line repr
MAX_CELL = 200  # characters of a cell in HTML
MAX_HTML = 40_000  # characters of the tables and sentences of a result in HTML
FRAME_LIBRARIES = ("pandas", "polars")


@dataclass(frozen=True)
class Table:
    """A table: floats are shown with four significant digits, numbers right-aligned, ``bold`` cells bold."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    title: str | None = None
    bold: Sequence[Sequence[bool]] | None = None

    def cells(self) -> list[list[str]]:
        return [[cell_text(value) for value in row] for row in self.rows]


Part = str | Table
"""A line of prose, or a table."""


class Shown:
    """A result that prints itself: ``repr`` is one line, ``str`` the whole text; notebooks show HTML."""

    def _line(self) -> str:
        """The result in a few words, for ``repr``."""
        raise NotImplementedError

    def shown(self) -> Sequence[Part]:
        """Sentences and tables."""
        raise NotImplementedError

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Values of the table by column, not rounded."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return one_line(f"<{type(self).__name__}: {self._line()}>")

    def __str__(self) -> str:
        return as_text(self.shown())

    def _repr_html_(self) -> str:
        return as_html(self.shown())

    def to_frame(self) -> Any:
        """The table as a data frame of pandas, or of polars if pandas is not installed."""
        return as_frame(self.frame_columns())


@dataclass(frozen=True, repr=False)
class Summary(Shown):
    """Text that prints itself: at the prompt, with ``print`` and in notebooks."""

    parts: Sequence[Part]
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return str(self).rstrip("\n")

    def shown(self) -> Sequence[Part]:
        return self.parts

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        return self.values


def one_line(text: str) -> str:
    """The text on one line, without control characters and not too long."""
    line = escape_controls(" ".join(text.split()))
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 2]}…{line[-1]}"


def cell_text(value: Any) -> str:
    """A cell of a table: a float with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else escape_controls(str(value))


def escape_controls(text: str) -> str:
    """Escape characters that control a terminal, reverse the direction of reading or are invisible."""
    if text.isprintable():
        return text
    return "".join(
        ascii(one)[1:-1] if one not in "\t\n" and category(one) in INVISIBLE else one for one in text
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number or empty (–), so that it is right-aligned."""
    try:
        float(cell.rstrip(NUMBER_MARKS) if cell != "–" else "0")
    except ValueError:
        return False
    return True


def rich_table(table: Table) -> RichTable:
    """The table as Rich prints it."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    cells, title, bold = table.cells(), table.title, table.bold
    view = RichTable(
        title=title and Text(escape_controls(title)), title_justify="left", box=box.SIMPLE, pad_edge=False
    )
    for column, name in enumerate(table.columns):
        numeric = bool(cells) and all(is_number(row[column]) for row in cells)
        view.add_column(Text(escape_controls(name)), justify="right" if numeric else "left", overflow="fold")
    for number, row in enumerate(cells):
        styles = ["bold" if bold and bold[number][column] else "" for column in range(len(row))]
        view.add_row(*(Text(cell, style) for cell, style in zip(row, styles, strict=True)))
    return view


def print_parts(parts: Iterable[Part], console: Any) -> None:
    """Print sentences and tables on a console of Rich."""
    from rich.text import Text

    for part in parts:
        if isinstance(part, str):
            console.print(Text(escape_controls(part)), soft_wrap=True)
        else:
            console.print(rich_table(part))


def console_width() -> int | None:
    """Width of output: None, which is that of the terminal, or a fixed one without a terminal."""
    return None if sys.stdout is not None and sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL


def as_text(parts: Iterable[Part]) -> str:
    """What the command line prints, without colours."""
    from rich.console import Console

    stream = io.StringIO()
    print_parts(parts, Console(file=stream, width=console_width(), color_system=None, force_jupyter=False))
    return stream.getvalue().rstrip("\n")


def as_html(parts: Iterable[Part]) -> str:
    """Sentences as paragraphs and tables as tables; rows beyond ``MAX_HTML`` characters are counted."""
    pieces: list[str] = []
    room = MAX_HTML
    for part in parts:
        text = f"<p>{_escaped(part)}</p>" if isinstance(part, str) else _html_table(part, room)
        room -= len(text)
        pieces.append(text)
        if room <= 0:
            break
    return "\n".join(['<div class="ranksieve">', *pieces, "</div>"])


def _html_table(table: Table, room: int) -> str:
    cells, heads = table.cells(), "".join(f"<th>{_escaped(name)}</th>" for name in table.columns)
    numeric = [all(is_number(row[k]) for row in cells) for k in range(len(table.columns))]
    title = f"<caption>{_escaped(table.title)}</caption>" if table.title else ""
    lines, used = [], len(heads)
    for shown, row in enumerate(cells):
        line = "".join(
            f'<td style="text-align: {"right" if right else "left"}">{_escaped(cell)}</td>'
            for cell, right in zip(row, numeric, strict=True)
        )
        used += len(line)
        if used > room and shown:
            more = f"{len(cells) - shown} more rows; to_frame() has all of them"
            lines.append(f'<tr><td colspan="{len(row)}">{more}</td></tr>')
            break
        lines.append(f"<tr>{line}</tr>")
    body = "\n".join(lines)
    return f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _escaped(text: str) -> str:
    shown = escape_controls(text)
    return escape(shown if len(shown) <= MAX_CELL * 5 else f"{shown[: MAX_CELL * 5]}…")


def as_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A data frame of a library that is loaded already, or else of pandas or polars."""
    loaded = [name for name in FRAME_LIBRARIES if name in sys.modules]
    for name in loaded or FRAME_LIBRARIES:
        if name in sys.modules or find_spec(name) is not None:
            module = import_module(name)
            return module.DataFrame({key: list(values) for key, values in columns.items()})
    raise ImportError(f"to_frame needs pandas or polars: {how_to_install('frames')}")
