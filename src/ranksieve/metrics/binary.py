"""Metrics of binary relevance: precision, recall, average precision, reciprocal rank."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Ranked, ratio


def precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """P@k = (relevant documents in the first k) / k, also for a list shorter than k."""
    return _hits(ranked, k, profile) / (ranked.judged.queries.sizes if k is None else k)


def recall(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """R@k = (relevant documents in the first k) / (relevant documents)."""
    return ratio(_hits(ranked, k, profile), _hits(ranked, None, profile))


def average_precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """AP@k = Σ_{i ≤ k, i relevant} P@i / (relevant documents in the whole list, as trec_eval's map_cut)."""
    judged, relevant = ranked.judged, ranked.relevant(profile)
    precisions = judged.running(relevant) / judged.ranks
    return ratio(judged.total(relevant * precisions * judged.within(k)), judged.total(relevant))


def reciprocal_rank(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """RR@k = 1 / (rank of the first relevant document), 0 if there is none in the first k."""
    judged = ranked.judged
    found = (ranked.labels >= profile.relevant_from) & judged.within(k)
    first = np.minimum.reduceat(np.where(found, judged.ranks, np.inf), judged.queries.offsets[:-1])
    return np.asarray(1.0 / first)


def _hits(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """Relevant documents in the first k."""
    return ranked.judged.total(ranked.relevant(profile) * ranked.judged.within(k))
