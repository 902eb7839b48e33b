"""Base classes of the measures, which yield rows of numbers for one competitor on one data set."""

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
    """One competitor on one data set; ``full``: also the parts that take more than a few minutes."""

    data: str
    competitor: Competitor
    full: bool = False
    repeats: int = REPEATS

    @property
    def budget(self) -> float:
        """Limit in seconds for all repetitions of one timing."""
        return 600.0 if self.full else 10.0

    @property
    def data_set(self) -> DataSet:
        return DATA_SETS[self.data]


@dataclass(frozen=True)
class Measure:
    """A measure.

    Parameters
    ----------
    run : callable
        Yields rows made by :func:`row`.
    data : sequence of str
        Names of data sets, or other values of the first column.
    quick : sequence of str, optional
        Those used by ``make bench``; default: all data sets that are not marked as full.
    processes : int
        Number of processes that repeat the measurement, if each process can measure only once.
    limit : (float, float)
        Limit in seconds for one competitor on one data set, in ``make bench`` and in ``make bench-full``.
    """

    name: str
    title: str
    run: Callable[[Run], Iterator[Row]]
    data: Sequence[str]
    quick: Sequence[str] | None = None
    processes: int = 1
    limit: tuple[float, float] = (60.0, 3600.0)

    def data_sets(self, full: bool) -> list[str]:
        """The data sets of ``make bench``, or of ``make bench-full``."""
        if full:
            return list(self.data)
        names = self.data if self.quick is None else self.quick
        return [name for name in names if name not in DATA_SETS or not DATA_SETS[name].full]


def row(what: str, unit: str, values: Sequence[float], **more: Any) -> Row:
    """Row with a summary of the values; the runner adds data set, competitor and versions."""
    return {"what": what, "unit": unit, **summarise(values), **more}
