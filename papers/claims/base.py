"""What every claim ends in: a verdict, with the numbers it follows from."""

from __future__ import annotations

from dataclasses import dataclass

from ranksieve.metrics.significance import SIGNIFICANCE_LEVEL

YES, NO = "yes", "no"
IN_DIRECTION = "in direction"  # the difference has the claimed sign, but is not significant


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper as one comparison, what was found, and whether the claim holds by it."""

    paper: str
    claim: str
    comparison: str
    found: str
    holds: str


def by_difference(difference: float, p: float) -> str:
    """Whether a claim "better" holds: by the sign of the difference, and p of it being by chance."""
    if not difference > 0:
        return NO
    return YES if p < SIGNIFICANCE_LEVEL else IN_DIRECTION
