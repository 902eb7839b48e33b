"""The time of choices by cost and of updates on real film search with 69 raw features.

The frontier over all training queries, one thread, with validation data and by cross-validation; a fit within
a cost of 5 on 43,000 documents, with one thread and with all; and an update of a model of those documents
beside a choice from nothing on the same data. Seconds are of one run each, in one process, in this order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import keep, letor_folder
from ranksieve._parallel import available_threads, use_threads

DOCUMENTS = 43_000
MAX_COST = 5.0
MAX_FEATURES = 10


def main() -> None:
    root = letor_folder() / "films"
    if not (root / "train.parquet").exists():
        print(f"skipped: no films at {root} (set RANKSIEVE_LETOR)")
        return
    train, valid = (rs.read_dataset(root / f"{part}.parquet") for part in ("train", "vali"))
    costs = rs.io.read_costs(root / "costs.csv")
    first, second = halves(train)
    budget: dict[str, Any] = {"feature_costs": costs, "max_cost": MAX_COST}
    rs.SparseRanker(**budget).fit(first.select_queries(np.arange(100)))  # compiles
    timed: dict[str, Callable[[], object]] = {
        "fit within a cost, one thread": lambda: rs.SparseRanker(**budget).fit(first),
        "fit within a cost": lambda: rs.SparseRanker(**budget).fit(first),
        "choice from nothing": lambda: rs.SparseRanker(MAX_FEATURES).fit(second),
        "update": lambda: rs.SparseRanker(MAX_FEATURES).fit(second, previous=old),
        "frontier, one thread": lambda: rs.frontier(train, valid, feature_costs=costs),
        "frontier by cross-validation, one thread": lambda: rs.frontier(train, feature_costs=costs),
    }
    old = rs.SparseRanker(MAX_FEATURES).fit(first).to_model()
    seconds = {}
    for name, run in timed.items():
        with use_threads(1 if "one thread" in name else None):
            start = perf_counter()
            run()
            seconds[name] = perf_counter() - start
        print(f"{name}: {seconds[name]:.1f} s", flush=True)
    keep(
        "films", {"documents": train.n_docs, "part": first.n_docs, "threads": available_threads(), **seconds}
    )


def halves(data: rs.Dataset) -> tuple[rs.Dataset, rs.Dataset]:
    """The queries of the first so many documents, and those of the next."""
    cuts = np.searchsorted(np.cumsum(data.queries.sizes), [DOCUMENTS, 2 * DOCUMENTS])
    return data.select_queries(np.arange(cuts[0])), data.select_queries(np.arange(*cuts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
