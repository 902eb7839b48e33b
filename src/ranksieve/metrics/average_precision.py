"""Average precision."""

from __future__ import annotations

from ranksieve._types import FloatArray
from ranksieve.metrics.profiles import Profile
from ranksieve.metrics.ranked import Ranked, ratio


def average_precision(ranked: Ranked, k: int | None, profile: Profile) -> FloatArray:
    """AP@k = Σ_{i ≤ k, i relevant} P@i / (relevant documents in the whole list, as trec_eval's map_cut)."""
    judged, relevant = ranked.judged, ranked.relevant(profile)
    precisions = judged.running(relevant) / judged.ranks
    return ratio(judged.total(relevant * precisions * judged.within(k)), judged.total(relevant))
