"""What tables are made of: cells of words and numbers, and what methods and metrics are called."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ranksieve.methods import METHODS


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
