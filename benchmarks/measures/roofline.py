"""Time of the path compared with a lower limit for this machine.

Counts the operations of a 100-point path in the objective: products with X or its transpose, which must read
n·d numbers, or n·k if only k columns are in use; Hessian blocks on k columns, which must read n·k numbers and
need n·k²/2 multiplications; evaluations of the loss, which must sort every list. The limit is the time of
these operations at the measured rates of reading (dot product of long vectors), multiplying (matrix product)
and sorting (rows of the same length), with the same number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import seconds, timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve._parallel import available_threads, single_threaded_blas
from ranksieve.data.dataset import Dataset
from ranksieve.objective import LocalObjective
from ranksieve.path import sparse_path

METHODS = ("scores", "_transposed", "evaluate_scores", "hessian", "hessian_product")


def roofline(run: Run) -> Iterator[Row]:
    data = run.data_set.data
    sparse_path(data, n_alphas=3)  # compile
    with count_work() as counts:
        sparse_path(data)
    times = timings(lambda: sparse_path(data), run.repeats, run.budget)
    rates = machine_rates(data)
    parts = {
        "reading": 8.0 * data.n_docs * counts["columns read"] / rates["bytes"],
        "multiplying": float(data.n_docs * counts["hessian cells"]) / rates["flops"],
        "sorting": data.n_docs * counts["evaluate_scores"] / rates["sorted"],
    }
    limit = sum(parts.values())
    share = limit / float(np.median(times))
    yield row("100-point path", "s", times, counts=dict(counts), share_of_limit=share)
    yield row("the machine's limit for it", "s", [limit], parts=parts, rates=rates)


def columns_read(objective: LocalObjective, name: str, arguments: Sequence[Any]) -> int:
    """Number of columns of X that a call must read."""
    if name == "hessian":
        return len(arguments[-1])
    if name == "scores" and objective.features.keeps(np.flatnonzero(arguments[0])):
        return int(np.count_nonzero(arguments[0]))
    return {"scores": 1, "_transposed": 1, "hessian_product": 1}.get(name, 0) * objective.n_features


@contextmanager
def count_work() -> Iterator[Counter[str]]:
    """Count the calls of the objective's methods, the columns read, and the cells of Hessian blocks."""
    counts: Counter[str] = Counter()
    originals = {name: getattr(LocalObjective, name) for name in METHODS if hasattr(LocalObjective, name)}

    def counting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: LocalObjective, *args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            counts["columns read"] += columns_read(self, name, args)
            if name == "hessian":
                counts["hessian cells"] += len(args[1]) ** 2
            return original(self, *args, **kwargs)

        return method

    for name, original in originals.items():
        setattr(LocalObjective, name, counting(name, original))
    try:
        yield counts
    finally:
        for name, original in originals.items():
            setattr(LocalObjective, name, original)


def machine_rates(data: Dataset) -> dict[str, float]:
    """Bytes read, floating-point operations and sorted numbers per second, with all threads."""
    n = available_threads()
    rng = np.random.default_rng(0)
    vectors = [rng.random(16_000_000) for _ in range(n)]
    tall = [rng.random((2_000, 64)) for _ in range(n)]
    length = max(2, round(data.n_docs / data.n_queries))
    lists = [rng.random((max(1, 400_000 // length), length)) for _ in range(n)]
    with single_threaded_blas(), ThreadPoolExecutor(n) as pool:

        def rate(work: Callable[[Any], Any], parts: list[Any], amount: float) -> float:
            return n * amount / min(seconds(lambda: list(pool.map(work, parts)), 7))

        return {
            "bytes": rate(lambda v: v @ v, vectors, 8.0 * vectors[0].size),
            "flops": rate(lambda m: [m.T @ m for _ in range(20)], tall, 20 * 2.0 * 2_000 * 64 * 64),
            "sorted": rate(lambda m: np.sort(m, axis=1), lists, float(lists[0].size)),
        }


MEASURE = Measure(
    "roofline",
    "The machine's limit",
    roofline,
    ("ohsumed", "long-lists", "250k", "1m"),
    quick=("ohsumed", "long-lists"),
    limit=(120.0, 3600.0),
)
