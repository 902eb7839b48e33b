"""The data sets of the benchmarks. To add one, add it to DATA_SETS.

LETOR's data sets are read from RANKSIEVE_LETOR. The others are generated once with a fixed seed, and stored
under benchmarks/out as arrays and, for programs that read files, as LETOR text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from papers.stand_ins import Shape

from benchmarks.data_sets.letor import letor_file, letor_folds
from benchmarks.data_sets.synthetic import load_or_draw
from benchmarks.harness import OUT
from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import Fold
from ranksieve.io.letor import read_letor, write_letor


@dataclass(frozen=True)
class DataSet:
    """Training data; ``full``: used only by ``make bench-full``. Missing data raise Skipped."""

    name: str
    title: str
    make: Callable[[], Dataset] | None = None
    letor_file: Callable[[], Path] | None = None
    folds: Callable[[], list[Fold]] | None = None
    full: bool = False

    @cached_property
    def data(self) -> Dataset:
        """The training data."""
        return self.make() if self.make is not None else read_letor(self.path)

    @property
    def path(self) -> Path:
        """File with the training data as LETOR text."""
        if self.letor_file is not None:
            return self.letor_file()
        path = OUT / "data" / f"{self.name}.txt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_letor(self.data, path)
        return path


def _letor(name: str, collection: str) -> DataSet:
    return DataSet(
        name, f"{collection} Fold1", None, partial(letor_file, collection), partial(letor_folds, collection)
    )


def _synthetic(name: str, title: str, shape: Shape, full: bool = False) -> DataSet:
    return DataSet(name, title, partial(load_or_draw, name, shape), full=full)


DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        _letor("ohsumed", "OHSUMED"),
        _letor("mq2008", "MQ2008"),
        _synthetic("long-lists", "long lists: 75 queries × 988 documents", Shape(75, 74_100, 64, 2, 15.0)),
        _synthetic("250k", "250,000 × 136, five levels", Shape(2_083, 250_000, 136, 5, 57.5)),
        _synthetic("1m", "1,000,000 × 136, five levels", Shape(8_333, 1_000_000, 136, 5, 57.5), full=True),
    )
}
