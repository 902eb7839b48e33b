"""The verdict on a claim, and the rule for claims about a difference."""

from __future__ import annotations

from dataclasses import dataclass

from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL

YES, NO = "yes", "no"
NOT_SIGNIFICANT = "not significant"  # but the difference has the claimed sign


@dataclass(frozen=True)
class ClaimVerdict:
    """One comparison for a claim: its result as text, and whether the claim holds."""

    paper: str
    claim: str
    comparison: str
    result: str
    holds: str


def holds_by_difference(difference: float, p: float) -> str:
    """Whether a claim "better" holds, by the sign of the difference and its p-value."""
    if not difference > 0:
        return NO
    return YES if p < SIGNIFICANCE_LEVEL else NOT_SIGNIFICANT
