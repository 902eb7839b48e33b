"""Time and memory of the path of curves against the linear path, on film search with 69 raw features.

Both paths have the same 100 points relative to their largest α, the same loss and the same largest gap, one
thread each; seconds are the best of ``RUNS`` runs. Memory is the peak of both paths down to a tenth of the
largest α, in bytes per value of the data (documents × features), beyond the data. Then the time of a fit of
SparseRanker with ``shape="auto"`` against one of lines, on every data set of the quality benchmark.
"""

from __future__ import annotations

import tracemalloc
import warnings
from time import process_time
from typing import Any

import numpy as np

import ranksieve as rs
from benchmarks.harness import letor_folder, save_result
from benchmarks.quality.data_sets import SOURCES, read_source, split
from ranksieve import sparse_path
from ranksieve._parallel import use_threads
from ranksieve.losses import SquaredHinge

RUNS = 2
LOSS = SquaredHinge(pair_weighting="sqrt")
PATHS: dict[str, dict[str, Any]] = {
    "linear": {"loss": LOSS, "normalise": "z"},
    "curves": {"loss": LOSS, "shape": "curves"},
}


def main() -> None:
    file = letor_folder() / "films" / "train.parquet"
    if not file.exists():
        print(f"skipped: no film data in {file.parent} (set RANKSIEVE_LETOR)")
        return
    warnings.simplefilter("ignore")
    data = rs.read_dataset(file)
    result: dict[str, Any] = {"documents": data.n_docs, "features": data.n_features}
    with use_threads(1):
        for name, options in PATHS.items():
            sparse_path(data.select_queries(np.arange(100)), **options)  # compile
            result[name] = measured_path(data, options)
            print(f"{name}: {result[name]}", flush=True)
        fits = {name: fit_seconds(name) for name in SOURCES}
    result["path, curves against linear"] = result["curves"]["seconds"] / result["linear"]["seconds"]
    result["fit, auto against linear"] = {name: auto / linear for name, (linear, auto) in fits.items()}
    save_result("curves", result)


def measured_path(data: rs.Dataset, options: dict[str, Any]) -> dict[str, float]:
    """Seconds, worst gap, steps and memory of a path."""
    seconds = []
    for _ in range(RUNS):
        start = process_time()
        path = sparse_path(data, **options)
        seconds.append(process_time() - start)
    tracemalloc.start()
    sparse_path(data, min_ratio=0.1, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "seconds": min(seconds),
        "largest relative gap": float(path.relative_gaps.max()),
        "nonzero weights": int(np.count_nonzero(path.coefs[-1])),
        "bytes per value": peak / data.X.size,
    }


def fit_seconds(name: str) -> tuple[float, float]:
    """Seconds of a fit of lines and of one with shape "auto"."""
    train, valid, _ = split(read_source(name), 0)
    best = []
    for shape in ("linear", "auto"):
        runs = []
        for _ in range(RUNS):
            start = process_time()
            rs.SparseRanker(profile=SOURCES[name].profile, shape=shape).fit(train, valid=valid)
            runs.append(process_time() - start)
        best.append(min(runs))
    print(f"{name}: {best[0]:.2f} s, auto {best[1]:.2f} s", flush=True)
    return best[0], best[1]


if __name__ == "__main__":
    main()
