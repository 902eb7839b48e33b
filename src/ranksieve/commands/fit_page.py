"""What the page of a fit shows beyond the fit: how often a feature returns, how strong it is alone."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.commands.show import progress
from ranksieve.data.dataset import Dataset
from ranksieve.estimators import LinearRanker
from ranksieve.measures.importance import single_feature
from ranksieve.path import Progress, sparse_path
from ranksieve.report import Support

N_SUBSAMPLES, SHARE, SEED = 50, 0.5, 0
TOL = 1e-4  # selection needs no sharper optimum
OF_THE_GRID = ("n_alphas", "alphas", "min_ratio", "max_features", "tol")


def support_of(ranker: LinearRanker, data: Dataset) -> Support:
    """How sure each feature is: refits of a path's chosen point on half samples, and its strength alone."""
    filled = ranker.missing_.apply(data) if ranker.missing_.fills else data
    prepared = ranker.normalisation_.for_learning(filled)
    metric = getattr(ranker, "metric", "ndcg@10")
    strength = single_feature(prepared, metric, None)
    # A choice by cost is made among other features in every half: its frequencies would mislead.
    has_path = hasattr(ranker, "path_") and getattr(ranker, "costs_", None) is None
    if not has_path or np.count_nonzero(prepared.pairs_per_query) < 2:
        return Support(strength=strength, metric=metric)
    with progress("refitting on half of the queries") as bar:
        frequency = selection_frequency(ranker, prepared, bar)
    return Support(frequency, N_SUBSAMPLES, strength, metric)


def selection_frequency(ranker: Any, data: Dataset, bar: Progress | None = None) -> FloatArray:
    """Share of fits at the chosen α, each on a random half of the queries with pairs, that use a feature."""
    taken = inspect.signature(sparse_path).parameters.keys() - set(OF_THE_GRID)
    options = {name: value for name, value in ranker.get_params(deep=False).items() if name in taken}
    usable = np.flatnonzero(data.pairs_per_query)
    rng = np.random.default_rng(SEED)
    used = np.zeros(data.n_features)
    for done in range(1, N_SUBSAMPLES + 1):
        half = np.sort(rng.choice(usable, max(1, int(SHARE * len(usable))), replace=False))
        path = sparse_path(data.select_queries(half), alphas=[ranker.alpha_], tol=TOL, **options)
        used += path.coefs[0] != 0
        if bar is not None:
            bar(done, N_SUBSAMPLES)
    return used / N_SUBSAMPLES
