"""Time of value and gradient, and of one certified ℓ1 fit, as one size changes and the others stay fixed.

Fixed sizes: 40,000 documents in lists of 50, 64 features, 3 label levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import L1
from ranksieve.solvers import Problem, ProxNewton
from ranksieve.synthetic import make_ranking

BASE = {"documents": 40_000, "features": 64, "list length": 50, "levels": 3}
STEPS = {
    "documents": (10_000, 20_000, 40_000, 80_000, 160_000),
    "features": (16, 32, 64, 128, 256),
    "list length": (10, 50, 250, 1_000),
    "levels": (2, 3, 5, 20),
}
ALPHA_SHARE = 0.05  # of the smallest α with w = 0


def growth(run: Run) -> Iterator[Row]:
    for size in STEPS[run.data]:
        data = make_data(**{**BASE, run.data: size})
        objective = make_objective(data)
        w = np.random.default_rng(0).standard_normal(data.n_features) / 10
        alpha = ALPHA_SHARE * float(np.abs(objective.gradient(objective.at_zero)).max())
        with single_threaded_blas():
            work = {
                "value and gradient": partial(_gradient, objective, w),
                "one ℓ1 fit": partial(_fit, data, alpha),
            }
            for name, call in work.items():
                call()
                yield row(f"{name}, {run.data} = {size:,}", "s", timings(call, run.repeats, run.budget))


def make_data(**sizes: int) -> Dataset:
    length, levels = sizes["list length"], sizes["levels"]
    n_queries = sizes["documents"] // length
    return make_ranking(
        n_queries, sizes["features"], 8, docs_per_query=length, n_levels=levels, random_state=0
    )


def _gradient(objective: Objective, w: FloatArray) -> None:
    objective.gradient(objective.evaluate(w))


def _fit(data: Dataset, alpha: float) -> None:
    ProxNewton(1e-6).solve(Problem(make_objective(data), L1(alpha)))


MEASURE = Measure("growth", "How the cost grows", growth, tuple(BASE), limit=(120.0, 600.0))
