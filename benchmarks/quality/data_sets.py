"""The data sets of the quality benchmark, and their fixed random splits by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path

import numpy as np

from benchmarks.harness import Skipped, letor_folder
from ranksieve import Dataset, read_dataset

N_SPLITS, N_SHORT_SPLITS = 20, 5
SHARES = (0.6, 0.2)  # of the queries for training and validation; the others are test queries
SPLIT_SEED, DRAW_SEED = 2026, 1  # never changed, so that results of all versions can be compared by split


@dataclass(frozen=True)
class Source:
    """Files of a data set below RANKSIEVE_LETOR, and the profile of its metrics.

    With ``n_queries``, that number of queries is drawn once.
    """

    files: tuple[str, ...]
    profile: str = "standard"
    n_queries: int | None = None


def _letor(name: str) -> Source:
    """The test files of all folds, which contain each query once."""
    return Source(tuple(f"{name}/Fold{k}/test.txt" for k in range(1, 6)), "letor")


def _parquet(name: str, *parts: str) -> Source:
    return Source(tuple(f"more/{name}/{part}.parquet" for part in parts or ("train", "vali", "test")))


SOURCES = {
    "OHSUMED": _letor("OHSUMED"),
    "MQ2008": _letor("MQ2008"),
    "films": Source(("films/train.parquet",), n_queries=2000),
    "types-sigir2017": _parquet("types-sigir2017"),
    "msdocs": _parquet("msdocs"),
    "LightGBM-rank": _parquet("LightGBM-rank"),
    "wikiqa": _parquet("wikiqa"),
    "mwmbl": _parquet("mwmbl"),
    "MQ2008-agg": _parquet("MQ2008-agg", *(f"part{k}" for k in range(1, 6))),
}


@cache
def read_source(name: str) -> Dataset:
    """All queries of a data set; raises Skipped if a file is missing."""
    source = SOURCES[name]
    paths = [letor_folder() / file for file in source.files]
    for path in paths:
        if not path.exists():
            raise Skipped(f"no {name} data: {_shown(path)} is missing (set RANKSIEVE_LETOR)")
    data = reduce(Dataset.joined, (read_dataset(path) for path in paths))
    if source.n_queries is not None:
        order = np.random.default_rng(DRAW_SEED).permutation(data.n_queries)
        data = data.select_queries(np.sort(order[: source.n_queries]))
    return data


def _shown(path: Path) -> str:
    return str(path.relative_to(letor_folder()))


def split(data: Dataset, number: int) -> tuple[Dataset, Dataset, Dataset]:
    """(training, validation, test) queries of one of the fixed splits."""
    order = np.random.default_rng([SPLIT_SEED, number]).permutation(data.n_queries)
    cuts = np.rint(np.cumsum(SHARES) * data.n_queries).astype(int)
    train, valid, test = (data.select_queries(np.sort(part)) for part in np.split(order, cuts))
    return train, valid, test
