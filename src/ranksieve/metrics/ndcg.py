"""Discounted cumulative gain and its normalised form."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Judged, Ranked, ratio


def dcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """DCG@k = Σ_{i ≤ k} gain(y_i)·discount(i)."""
    return ranked.judged.total(ranked.gains(profile) * _weights(ranked.judged, k, profile))


def ndcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """NDCG@k = DCG@k / DCG@k of the ideal ranking; 0 for a list shorter than k if the profile says so."""
    judged = ranked.judged
    ideal = judged.once((ndcg, k, profile), lambda: dcg(judged.ideal, k, profile))
    values = ratio(dcg(ranked, k, profile), ideal)
    if profile.short_list_is_zero and k is not None:
        values[(judged.queries.sizes < k) & (ideal > 0)] = 0.0
    return values


def _weights(judged: Judged, k: int | None, profile: Profile) -> FloatArray:
    return judged.once(
        (profile.discount, k), lambda: np.where(judged.within(k), profile.discount(judged.ranks), 0.0)
    )
