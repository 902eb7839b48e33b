"""Gradient, path, reading and a fit with costs, with one and two threads; whether the bits are identical."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.harness import interleaved_timings
from benchmarks.measures.base import Measure, Row, Run, row
from benchmarks.measures.reading import text_file
from ranksieve._parallel import single_threaded_blas, use_threads
from ranksieve._types import FloatArray
from ranksieve.io.letor import read_letor
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.rankers import SparseRanker
from ranksieve.synthetic import make_ranking

THREADS = (1, 2)
POINTS = 25  # of the path, in the short run
TEXT_BYTES = 100_000_000
QUERIES, DOCUMENTS, FEATURES, COST_SHARE = 1000, 40, 70, 0.3  # of the fit with costs


def threads(run: Run) -> Iterator[Row]:
    data = run.data_set.data
    objective = make_objective(data)
    w = np.random.default_rng(0).standard_normal(data.n_features) / 10

    def gradient() -> FloatArray:
        with single_threaded_blas():
            return objective.gradient(objective.evaluate(w))

    points = 100 if run.full else POINTS
    yield from compare_threads(run, "value and gradient", gradient, run.budget)
    yield from compare_threads(
        run, f"path of {points}", lambda: sparse_path(data, n_alphas=points).coefs, 8 * run.budget
    )
    if run.data == MEASURE.data[0]:  # these have data of their own
        text = text_file(TEXT_BYTES)
        yield from compare_threads(run, "reading 100 MB", lambda: np.asarray(read_letor(text).X), run.budget)
        yield from compare_threads(run, "fit with costs", fit_with_costs, 8 * run.budget)


def fit_with_costs() -> FloatArray:
    """Weights of a default fit with costs to 40,000 × 70."""
    data = make_ranking(QUERIES, FEATURES, docs_per_query=DOCUMENTS, random_state=0)
    costs = np.random.default_rng(0).integers(1, 20, FEATURES).astype(float)
    prices = dict(zip(data.feature_names, costs.tolist(), strict=True))
    return SparseRanker(feature_costs=prices, max_cost=COST_SHARE * costs.sum()).fit(data).coef_


def compare_threads(run: Run, name: str, work: Callable[[], FloatArray], budget: float) -> Iterator[Row]:
    """One row per number of threads, with the speed-up over one thread."""
    results: dict[str, FloatArray] = {}

    def run_with(n: int) -> None:
        with use_threads(n):
            results[str(n)] = work()

    run_with(2) if name == "value and gradient" else None  # compile
    times = interleaved_timings({str(n): partial(run_with, n) for n in THREADS}, run.repeats, budget)
    same = all(np.array_equal(results["1"], result) for result in results.values())
    for n in THREADS:
        speed_up = float(np.median(times["1"]) / np.median(times[str(n)]))
        what = f"{name}, {n} thread{'s' if n > 1 else ''}"
        yield row(what, "s", times[str(n)], speed_up=speed_up, same_bits=same)


MEASURE = Measure("threads", "Threads", threads, ("250k", "1m"), limit=(150.0, 3600.0))
