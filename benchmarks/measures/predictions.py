"""Documents scored per second by models with k of 700 features, from the same float32 matrix.

`LinearModel.predict` reads only the columns in use. A row of 700 float32 numbers fills 44 cache lines; a
model with ten features reads at most ten of them. For comparison: the product X @ w of the whole matrix,
which predict does not use, because BLAS does not give equal scores to equal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import interleaved_timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.model.linear import LinearModel, Term

N_DOCS, N_FEATURES = 100_000, 700
SIZES = (1, 10, 50, N_FEATURES)


def predictions(run: Run) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = rng.random((N_DOCS, N_FEATURES), dtype=np.float32)
    models = {k: model_of(k, rng) for k in SIZES}
    dense = models[N_FEATURES].coef.astype(np.float32)
    calls: dict[str, Callable[[], Any]] = {
        f"{k} of {N_FEATURES} features": partial(m.predict, X) for k, m in models.items()
    }
    calls["dense float32 product (BLAS)"] = lambda: X @ dense
    for call in calls.values():
        call()
    for name, times in interleaved_timings(calls, run.repeats, run.budget).items():
        yield row(name, "documents/s", [N_DOCS / t for t in times])


def model_of(k: int, rng: np.random.Generator) -> LinearModel:
    columns = np.sort(rng.permutation(N_FEATURES)[:k])
    terms = (Term(f"f{j + 1}", int(j), float(rng.standard_normal())) for j in columns)
    return LinearModel(tuple(terms), N_FEATURES)


MEASURE = Measure("predictions", "Predictions", predictions, ("100,000 × 700",))
