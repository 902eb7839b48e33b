"""Precision and recall at a cut-off."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Ranked, ratio


def precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """P@k = (relevant documents in the first k) / k, also for a list shorter than k."""
    return _hits(ranked, k, profile) / (ranked.judged.queries.sizes if k is None else k)


def recall(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """R@k = (relevant documents in the first k) / (relevant documents)."""
    return ratio(_hits(ranked, k, profile), _hits(ranked, None, profile))


def _hits(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    return ranked.judged.total(ranked.relevant(profile) * ranked.judged.within(k))
