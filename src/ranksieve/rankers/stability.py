"""Stability of a selection: how often refits on random parts of the queries use each feature."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.steps import features_in_use
from ranksieve.errors import DataError, ParameterError
from ranksieve.path import Progress
from ranksieve.rankers.sparse_ranker import SparseRanker


def selection_frequency(
    ranker: SparseRanker,
    data: Dataset,
    n_subsamples: int = 50,
    share: float = 0.5,
    random_state: int = 0,
    progress: Progress | None = None,
) -> FloatArray:
    """Selection frequency of each feature in refits of the chosen family on random parts of the queries.

    f_j = (1/B) Σ_b 1[w_j(Q_b) ≠ 0], where w(Q) are the weights that the chosen family gives for the queries Q
    at the chosen point (its α, or its number of features for forward selection), and Q_1, …, Q_B are random
    samples of ``share`` of the queries with pairs, drawn without replacement. A feature with a frequency near
    1 does not depend on a few queries. ``ranker.choice_.confidence.frequency`` is different: without
    refitting, it is how often the best candidate uses a feature when the held-out queries are resampled.
    :class:`ranksieve.baselines.StabilitySelection` selects features by the maximum of f_j over a grid of α.

    Parameters
    ----------
    ranker : SparseRanker
        A fitted ranker without feature costs: with costs, each sample would select among different features,
        so that frequencies at one α would be misleading.
    data : Dataset
        The training data, as passed to ``fit``. They are filled and normalised with the statistics of the
        fitted ranker; query weights are not used.
    n_subsamples : int
        B.
    share : float
        Share of the queries in each sample, between 0 and 1.
    random_state : int
        Seed of the samples.
    progress : callable, optional
        Called with (refits done, total).

    Returns
    -------
    array
        f, one frequency per feature, then one per indicator of missing values.
    """
    check_is_fitted(ranker)
    if ranker.costs_ is not None:
        raise ParameterError(
            "ranker",
            ranker,
            "was fitted with `feature_costs`, which limit the choice of features differently in every sample "
            "of the queries; fit it without `feature_costs`",
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
            "refits on samples of the queries need at least 2 queries with different labels, "
            f"got {len(queries)}",
        )
    rng, prepared = np.random.default_rng(random_state), ranker.preparation_.for_learning(data)
    steps = ranker.preparation_.steps
    columns = None if steps is None else steps.columns
    counts = np.zeros(prepared.n_features if columns is None else columns.n_features)
    for done in range(1, n_subsamples + 1):
        sample = np.sort(rng.choice(queries, max(1, int(share * len(queries))), replace=False))
        coef = ranker.refit_on_sample(prepared.select_queries(sample), tol=1e-4)  # enough to select features
        counts += features_in_use(coef[None], columns)[0]
        if progress is not None:
            progress(done, n_subsamples)
    return counts / n_subsamples
