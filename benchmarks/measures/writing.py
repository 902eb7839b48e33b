"""Time and file size of write_letor and of scikit-learn's dump_svmlight_file.

Rows have 136 features: random numbers with six decimals, the same as float32, and normal numbers with all
digits. Text written by ranksieve reads back to the same bits (checked); scikit-learn writes 16 digits. For
comparison: writing the same text with Python's repr of the numbers, and reading it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.competitors import RANKSIEVE
from benchmarks.data_sets import DATA_SETS
from benchmarks.harness import OUT, timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor, write_letor

KINDS = {"six decimals": np.float64, "six decimals, float32": np.float32, "all digits": np.float64}
QUICK_ROWS, FULL_ROWS = 25_000, 250_000
READING, BY_REPR = "reading it back", "the same by Python's repr"


def writing(run: Run) -> Iterator[Row]:
    data, path = rows_of(run.data, FULL_ROWS if run.full else QUICK_ROWS), OUT / "data" / "writing.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    is_ranksieve = run.competitor.name == RANKSIEVE
    write = write_letor if is_ranksieve else scikit_learn
    timings_of = partial(timings, repeats=run.repeats, budget=run.budget)
    write(data.select_rows(np.arange(100)), path)  # compile
    times = timings_of(lambda: write(data, path))
    megabytes = path.stat().st_size / 1e6
    yield row("writing LETOR text", "s", times, documents=data.n_docs, megabytes=megabytes)
    yield row("size of the text", "MB", [megabytes])
    if is_ranksieve:
        check_equal(data, path)
        yield row(READING, "s", timings_of(lambda: read_letor(path, dtype=data.X.dtype)))
        yield row(BY_REPR, "s", timings_of(lambda: by_repr(data, path)))
    path.unlink()


def rows_of(kind: str, n_docs: int) -> Dataset:
    """The first rows of the synthetic data, or normal numbers of the same shape."""
    data = DATA_SETS["250k"].data.select_rows(np.arange(n_docs))
    X = np.random.default_rng(0).standard_normal(data.X.shape) if kind == "all digits" else data.X
    return Dataset(X.astype(KINDS[kind]), data.y, data.qid)


def scikit_learn(data: Dataset, path: Path) -> None:
    from sklearn.datasets import dump_svmlight_file

    dump_svmlight_file(data.X, data.y, str(path), zero_based=False, query_id=data.qid)


def by_repr(data: Dataset, path: Path) -> None:
    """Write the text with Python's repr of the numbers, row by row."""
    prefixes = [f"{j + 1}:" for j in range(data.n_features)]
    with open(path, "w") as file:
        for label, query, values in zip(data.y.tolist(), data.qid.tolist(), data.X, strict=True):
            numbers = (repr(values.tolist())[1:-1] + ",").replace(".0,", ",")[:-1].split(", ")
            file.write(f"{label:g} qid:{query} {' '.join(map(str.__add__, prefixes, numbers))}\n")


def check_equal(data: Dataset, path: Path) -> None:
    """Raise an error unless the file reads back to the same bits."""
    if not np.array_equal(read_letor(path, dtype=data.X.dtype).X, data.X):
        raise ValueError(f"{path} does not read back to the same numbers")


MEASURE = Measure("writing", "Writing LETOR text", writing, tuple(KINDS))
