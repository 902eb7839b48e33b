"""Reciprocal rank."""

from __future__ import annotations

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Ranked


def reciprocal_rank(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """RR@k = 1 / (rank of the first relevant document), 0 if there is none in the first k."""
    judged = ranked.judged
    found = (ranked.labels >= profile.relevant_from) & judged.within(k)
    first = np.minimum.reduceat(np.where(found, judged.ranks, np.inf), judged.queries.offsets[:-1])
    return np.asarray(1.0 / first)
