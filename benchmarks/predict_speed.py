"""Documents scored per second by a model of k features and by one of all 700, from the same float32 matrix.

`LinearModel.predict` reads only the columns in use. A row of 700 float32 numbers fills 44 cache lines, of
which ten columns touch ten. The product X @ w of the whole matrix is told beside it: it is not what predict
does, because BLAS does not give equal rows equal scores.
"""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.harness import keep, seconds
from ranksieve.model import LinearModel, Term

N_DOCS, N_FEATURES, REPEATS = 100_000, 700, 7
SIZES = (1, 10, 50, N_FEATURES)


def model_of(k: int, rng: np.random.Generator) -> LinearModel:
    columns = np.sort(rng.permutation(N_FEATURES)[:k])
    terms = (Term(f"f{j + 1}", int(j), float(rng.standard_normal())) for j in columns)
    return LinearModel(tuple(terms), N_FEATURES)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((N_DOCS, N_FEATURES), dtype=np.float32)
    models = {k: model_of(k, rng) for k in SIZES}
    took: dict[int, list[float]] = {k: [] for k in SIZES}
    for _ in range(REPEATS):  # in turn, so that a busy moment of the machine meets all of them
        for k, model in models.items():
            took[k] += seconds(lambda model=model: model.predict(X), 1)
    rate = {k: N_DOCS / statistics.median(times) for k, times in took.items()}
    blas = N_DOCS / statistics.median(
        seconds(lambda: X @ models[N_FEATURES].coef.astype(np.float32), REPEATS)
    )
    result = {f"documents_a_second_with_{k}_features": rate[k] for k in SIZES}
    result |= {f"times_faster_than_dense_with_{k}_features": rate[k] / rate[N_FEATURES] for k in SIZES[:-1]}
    keep("predict_speed", {**result, "documents_a_second_dense_float32_product": blas})


if __name__ == "__main__":
    main()
