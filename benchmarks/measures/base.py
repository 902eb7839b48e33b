"""What a measure is: rows of numbers for one competitor on one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.competitors.base import Competitor
from benchmarks.data_sets import DATA_SETS, DataSet
from benchmarks.harness import REPEATS, summarise

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One competitor on one data set; with ``full``, everything is measured, else what takes few minutes."""

    data: str
    competitor: Competitor
    full: bool = False
    repeats: int = REPEATS

    @property
    def budget(self) -> float:
        """Seconds that the repetitions of one timing may take together."""
        return 600.0 if self.full else 10.0

    @property
    def data_set(self) -> DataSet:
        return DATA_SETS[self.data]


@dataclass(frozen=True)
class Measure:
    """Something to measure.

    ``run`` yields rows from :func:`row`. ``data`` names data sets, or what else stands in the first column;
    ``quick`` those of ``make bench``, if they are fewer than all that are not marked as full.
    ``processes``: how many processes measure the same, if each can do so only once. ``limit``: seconds that
    one competitor may take on one data set, in ``make bench`` and in ``make bench-full``.
    """

    name: str
    title: str
    run: Callable[[Run], Iterator[Row]]
    data: Sequence[str]
    quick: Sequence[str] | None = None
    processes: int = 1
    limit: tuple[float, float] = (60.0, 3600.0)

    def data_sets(self, full: bool) -> list[str]:
        """Those that take part."""
        if full:
            return list(self.data)
        names = self.data if self.quick is None else self.quick
        return [name for name in names if name not in DATA_SETS or not DATA_SETS[name].full]


def row(what: str, unit: str, values: Sequence[float], **more: Any) -> Row:
    """Median and spread of some values; the runner adds data set, competitor and versions."""
    return {"what": what, "unit": unit, **summarise(values), **more}
