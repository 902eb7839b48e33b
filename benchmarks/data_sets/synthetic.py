"""Synthetic data with planted sparse weights, stored as arrays so that all processes read the same data."""

from __future__ import annotations

import numpy as np
from papers.stand_ins import CORRELATION, N_INFORMATIVE, NOISE, Shape, split_evenly

from benchmarks.harness import OUT
from ranksieve.data.dataset import Dataset
from ranksieve.synthetic import labels_of_best, noisy_scores, planted_features

SEED = 0


def draw(shape: Shape, seed: int = SEED) -> Dataset:
    """Make data of a shape in the same way as :func:`papers.stand_ins.make_stand_in`."""
    rng = np.random.default_rng(seed)
    sizes = split_evenly(rng, shape.n_docs, shape.n_queries)
    d = shape.n_features
    X, truth = planted_features(rng, sizes, d, N_INFORMATIVE, d // 20, CORRELATION)
    relevant = split_evenly(rng, round(shape.relevant * shape.n_queries), shape.n_queries).astype(np.float64)
    y = labels_of_best(noisy_scores(rng, X, truth, NOISE), sizes, relevant, shape.n_levels)
    return Dataset(X, y, np.repeat(np.arange(1, shape.n_queries + 1), sizes))


def load_or_draw(name: str, shape: Shape) -> Dataset:
    """Read the data from benchmarks/out, or draw and store them if they are not there."""
    folder = OUT / "data"
    files = [folder / f"{name}.{part}.npy" for part in ("X", "y", "qid")]
    if not all(file.exists() for file in files):
        folder.mkdir(parents=True, exist_ok=True)
        data = draw(shape)
        for file, array in zip(files, (data.X, data.y, data.qid), strict=True):
            temporary = file.with_suffix(".part.npy")
            np.save(temporary, array)
            temporary.replace(file)
    return Dataset(*(np.load(file) for file in files))
