"""How sure a choice of features is: how often refits on parts of the queries use each of them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.path import Progress
from ranksieve.rankers.sparse_ranker import SparseRanker

TOL = 1e-4  # which features are in use needs no sharper optimum


def selection_frequency(
    ranker: SparseRanker,
    data: Dataset,
    n_subsamples: int = 50,
    share: float = 0.5,
    random_state: int = 0,
    progress: Progress | None = None,
) -> FloatArray:
    """How often each feature is used by refits of the chosen family on random parts of the queries.

    f_j = (1/B) Σ_b 1[w_j(Q_b) ≠ 0], where w(Q) is the ranker's family at its chosen point (its α, or for
    forward selection its number of features) over the queries Q, and Q_1, …, Q_B are ``share`` of the queries
    that have pairs, drawn without replacement. A feature that returns in nearly all of them does not owe its
    place to a few queries. ``ranker.choice_.confidence.frequency`` asks another question: how often the
    best of the candidates, none of them fitted again, uses a feature when the held-out queries are resampled.
    :class:`ranksieve.baselines.StabilitySelection` takes the maximum over a grid of α and chooses by it.

    Parameters
    ----------
    ranker : SparseRanker
        Fitted, without feature costs: a choice by cost is made among other features in every part, so
        frequencies at one α would mislead.
    data : Dataset
        The data that it was fitted on, as they were given to ``fit``. They are filled and normalised as the
        ranker learned it from all of them; queries have equal weights.
    n_subsamples : int
        B.
    share : float
        Share of the queries in each part, between 0 and 1.
    random_state : int
        Draws the parts.
    progress : callable, optional
        Called with (refits done, refits in all).

    Returns
    -------
    array
        f, one share per feature, those of indicators of missing values last.
    """
    check_is_fitted(ranker)
    if ranker.costs_ is not None:
        raise ParameterError(
            "ranker",
            ranker,
            "was chosen by `feature_costs`, among other features in every part of the queries, so "
            "frequencies would mislead; fit it without `feature_costs`",
        )
    if n_subsamples < 1:
        raise ParameterError("n_subsamples", n_subsamples, "must be at least 1")
    if not 0 < share < 1:
        raise ParameterError("share", share, "must be between 0 and 1")
    queries = np.flatnonzero(data.pairs_per_query)
    if len(queries) < 2:
        raise DataError(
            None,
            None,
            "refits on a part of the queries need at least 2 that have documents with different labels, "
            f"got {len(queries)}",
        )
    rng, given = np.random.default_rng(random_state), ranker.preparation_.for_learning(data)
    used = np.zeros(given.n_features)
    for done in range(1, n_subsamples + 1):
        part = np.sort(rng.choice(queries, max(1, int(share * len(queries))), replace=False))
        used += ranker.refit_on_part(given.select_queries(part), TOL) != 0
        if progress is not None:
            progress(done, n_subsamples)
    return used / n_subsamples
