"""Times of the frontier, of fits with a cost budget and of updates, on film search with 69 raw features.

A fit with a cost budget of 5 on 43,000 documents, with one thread and with all; an update of a model, and a
new fit on the same data; the frontier over all training queries with one thread, with validation data and by
cross-validation. Seconds of one run each, in one process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import letor_folder, save_result
from ranksieve._parallel import available_threads, use_threads

DOCUMENTS = 43_000
MAX_COST = 5.0
MAX_FEATURES = 10


def main() -> None:
    root = letor_folder() / "films"
    if not (root / "train.parquet").exists():
        print(f"skipped: no film data in {root} (set RANKSIEVE_LETOR)")
        return
    train, valid = (rs.read_dataset(root / f"{part}.parquet") for part in ("train", "vali"))
    costs = rs.io.read_costs(root / "costs.csv")
    first, second = halves(train)
    budget: dict[str, Any] = {"feature_costs": costs, "max_cost": MAX_COST}
    rs.SparseRanker(**budget).fit(first.select_queries(np.arange(100)))  # compile
    calls: dict[str, Callable[[], object]] = {
        "fit within a cost, one thread": lambda: rs.SparseRanker(**budget).fit(first),
        "fit within a cost": lambda: rs.SparseRanker(**budget).fit(first),
        "new fit": lambda: rs.SparseRanker(MAX_FEATURES).fit(second),
        "update": lambda: rs.SparseRanker(MAX_FEATURES).fit(second, previous=previous_model),
        "frontier, one thread": lambda: rs.frontier(train, valid, feature_costs=costs),
        "frontier by cross-validation, one thread": lambda: rs.frontier(train, feature_costs=costs),
    }
    previous_model = rs.SparseRanker(MAX_FEATURES).fit(first).to_model()
    seconds = {}
    for name, call in calls.items():
        with use_threads(1 if "one thread" in name else None):
            start = perf_counter()
            call()
            seconds[name] = perf_counter() - start
        print(f"{name}: {seconds[name]:.1f} s", flush=True)
    save_result(
        "films", {"documents": train.n_docs, "part": first.n_docs, "threads": available_threads(), **seconds}
    )


def halves(data: rs.Dataset) -> tuple[rs.Dataset, rs.Dataset]:
    """The queries of the first DOCUMENTS documents, and those of the next DOCUMENTS."""
    cuts = np.searchsorted(np.cumsum(data.queries.sizes), [DOCUMENTS, 2 * DOCUMENTS])
    return data.select_queries(np.arange(cuts[0])), data.select_queries(np.arange(*cuts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
