"""How near the path comes to the machine's limit.

The work of a 100-point path is counted by watching the objective: products with X or its transpose, which
must read n·d numbers; Hessian blocks on k columns, which must read n·k and multiply n·k²; evaluations of the
loss, each of which must sort every list. The limit is what these would take at the measured rates of reading
(a dot product of a long vector), multiplying (a matrix product) and sorting (rows of the same length), with
as many threads as the path has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import repeated, seconds
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve._parallel import available_threads, single_threaded_blas
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective
from ranksieve.path import sparse_path

WATCHED = ("scores", "gradient", "evaluate_scores", "hessian", "hessian_product")


def roofline(run: Run) -> Iterator[Row]:
    data = run.data_set.data
    sparse_path(data, n_alphas=3)  # compiles
    with counted() as counts:
        sparse_path(data)
    times = repeated(lambda: sparse_path(data), run.repeats, run.budget)
    rates = measured_rates(data)
    passes = counts["scores"] + counts["gradient"] + 2 * counts["hessian_product"]
    parts = {
        "reading": 8.0
        * data.n_docs
        * (passes * data.n_features + counts["hessian columns"])
        / rates["bytes"],
        "multiplying": 2.0 * data.n_docs * counts["hessian cells"] / rates["flops"],
        "sorting": data.n_docs * counts["evaluate_scores"] / rates["sorted"],
    }
    limit = sum(parts.values())
    share = limit / float(np.median(times))
    yield row("100-point path", "s", times, counts=dict(counts), share_of_limit=share)
    yield row("the machine's limit for it", "s", [limit], parts=parts, rates=rates)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of the objective's methods, and the sizes of its Hessian blocks."""
    counts: Counter[str] = Counter()
    originals = {name: getattr(Objective, name) for name in WATCHED if hasattr(Objective, name)}

    def watched(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Objective, *given: Any, **named: Any) -> Any:
            counts[name] += 1
            if name == "hessian":
                k = len(given[1])
                counts["hessian columns"] += k
                counts["hessian cells"] += k * k
            return original(self, *given, **named)

        return method

    for name, original in originals.items():
        setattr(Objective, name, watched(name, original))
    try:
        yield counts
    finally:
        for name, original in originals.items():
            setattr(Objective, name, original)


def measured_rates(data: Dataset) -> dict[str, float]:
    """Bytes read, floating-point operations and numbers sorted per second, with all threads."""
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
