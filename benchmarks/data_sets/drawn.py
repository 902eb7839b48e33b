"""Drawn data with a planted sparse truth, kept as arrays so that every process reads the same ones."""

from __future__ import annotations

import numpy as np
from papers.stand_ins import CORRELATION, N_INFORMATIVE, NOISE, Shape, spread

from benchmarks.harness import OUT
from ranksieve.data.dataset import Dataset
from ranksieve.synthetic import labels_of_best, noisy_scores, planted_features

SEED = 0


def draw(shape: Shape, seed: int = SEED) -> Dataset:
    """Data of a shape, made as `ranksieve.make_stand_in` makes those of known collections."""
    rng = np.random.default_rng(seed)
    sizes = spread(rng, shape.n_docs, shape.n_queries)
    d = shape.n_features
    X, truth = planted_features(rng, sizes, d, N_INFORMATIVE, d // 20, CORRELATION)
    relevant = spread(rng, round(shape.relevant * shape.n_queries), shape.n_queries).astype(np.float64)
    y = labels_of_best(noisy_scores(rng, X, truth, NOISE), sizes, relevant, shape.n_levels)
    return Dataset(X, y, np.repeat(np.arange(1, shape.n_queries + 1), sizes))


def cached(name: str, shape: Shape) -> Dataset:
    """Drawn data, read from benchmarks/out if they were drawn before."""
    folder = OUT / "data"
    files = [folder / f"{name}.{part}.npy" for part in ("X", "y", "qid")]
    if not all(file.exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        data = draw(shape)
        for file, array in zip(files, (data.X, data.y, data.qid), strict=True):
            part = file.with_suffix(".part.npy")
            np.save(part, array)
            part.replace(file)
    return Dataset(*(np.load(file) for file in files))
