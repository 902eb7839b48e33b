"""Metrics of graded relevance: discounted cumulative gain, its normalised form, expected reciprocal rank."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile, wider_scales
from ranksieve.metrics.ranked import Judged, Ranked, ratio


def dcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """DCG@k = Σ_{i ≤ k} gain(y_i)·discount(i)."""
    judged = ranked.judged
    discounts = judged.once(
        (profile.discount, k), lambda: np.where(judged.within(k), profile.discount(judged.ranks), 0.0)
    )
    return judged.total(ranked.gains(profile) * discounts)


def ndcg(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """NDCG@k = DCG@k / DCG@k of the ideal ranking; 0 for a list shorter than k if the profile says so."""
    judged = ranked.judged
    ideal = judged.once((ndcg, k, profile), lambda: dcg(judged.ideal, k, profile))
    values = ratio(dcg(ranked, k, profile), ideal)
    if profile.short_list_is_zero and k is not None:
        values[(judged.queries.sizes < k) & (ideal > 0)] = 0.0
    return values


def expected_reciprocal_rank(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """ERR@k = Σ_{i ≤ k} (1/i)·R_i·Π_{j < i} (1 − R_j), R = gain(y) / (1 + gain(max_label)).

    With gain 2^y − 1, R = (2^y − 1) / 2^max_label (Chapelle et al., 2009). The scale's highest label comes
    from the profile, not from the data, so that values of different data sets can be compared.
    """
    judged = ranked.judged
    stop = judged.once((expected_reciprocal_rank, profile), lambda: _stop_probability(judged, profile))[
        ranked.order
    ]
    starts, sizes = judged.queries.offsets[:-1], judged.queries.sizes
    value, reach = np.zeros(len(sizes)), np.ones(len(sizes))
    for rank in range(1, min(k or sizes.max(), sizes.max()) + 1):
        long = sizes >= rank
        here = stop[starts[long] + rank - 1]
        value[long] += reach[long] * here / rank
        reach[long] *= 1.0 - here
    return value


def _stop_probability(judged: Judged, profile: Profile) -> FloatArray:
    """R of each document, in grouped order."""
    scale = f"ERR in the {profile.name} profile is for labels up to {profile.max_label:g}"
    advice = wider_scales(float(judged.labels.max()))
    judged.refuse(judged.labels > profile.max_label, f"{scale}: {advice}")
    highest = float(profile.gain(np.array([profile.max_label]))[0])
    return judged.gains(profile) / (1.0 + highest)
