"""Profiles: the conventions on which libraries and evaluation scripts differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import in_parts
from ranksieve.errors import ParameterError, lookup, warn_caller

Empty: TypeAlias = float | Literal["skip"]
"""What a query without a relevant document counts: 0, 1, or "skip" (NaN, left out of the mean)."""


def exponential_gain(labels: FloatArray) -> FloatArray:
    """2^y − 1."""
    gains: FloatArray = np.exp2(labels) - 1.0
    return gains


def linear_gain(labels: FloatArray) -> FloatArray:
    """max(y, 0)."""
    return np.maximum(labels, 0.0)


def letor_discount(ranks: IntArray) -> FloatArray:
    """1 for the ranks 1 and 2, 1/log2(i) from rank 3 on."""
    weights: FloatArray = 1.0 / np.log2(np.maximum(ranks, 2))
    return weights


def log2_discount(ranks: IntArray) -> FloatArray:
    """1/log2(1 + i)."""
    weights: FloatArray = 1.0 / np.log2(1.0 + ranks)
    return weights


@dataclass(frozen=True)
class Profile:
    """How metrics read labels, ranks and short or empty lists.

    Parameters
    ----------
    name : str
        Shown in results.
    gain : function
        Labels -> gains in DCG and NDCG, finite, at least 0, not decreasing.
    discount : function
        Ranks (1, 2, …) -> weights, not increasing.
    short_list_is_zero : bool
        Whether NDCG@k of a list with fewer than k documents is 0.
    relevant_from : float
        The smallest label that counts as relevant in P, R, AP and RR.
    empty : 0.0, 1.0 or "skip"
        NDCG, AP and R of a query without a relevant document, where they are 0/0; the other metrics are 0.
    max_label : float
        The highest label of the scale, for ERR, whose probability to stop is (2^y − 1) / 2^max_label.
    """

    name: str
    gain: Callable[[FloatArray], FloatArray] = exponential_gain
    discount: Callable[[IntArray], FloatArray] = log2_discount
    short_list_is_zero: bool = False
    relevant_from: float = 1.0
    empty: Empty = 0.0
    max_label: float = 4.0

    def __post_init__(self) -> None:
        check_empty(self.empty)


def check_empty(empty: Empty) -> Empty:
    """``empty`` if it is 0, 1 or "skip"."""
    if empty not in (0.0, 1.0, "skip"):
        reason = "queries without a relevant document count 0 or 1, or are left out with `empty='skip'`"
        raise ParameterError("empty", empty, reason)
    return empty


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("letor", discount=letor_discount, short_list_is_zero=True, max_label=2.0),
        Profile("mslr", discount=letor_discount, short_list_is_zero=True, relevant_from=2.0),
        Profile("standard"),
        Profile("trec", gain=linear_gain),
    )
}
"""``letor``: the official scripts of LETOR 3.0 and 4.0; ``mslr``: the same, relevant means y ≥ 2;
``standard``: discount 1/log2(1 + i), short lists use what there is; ``trec``: the same with gain y, as
trec_eval has it (ERR, which trec_eval lacks, as TREC's gdeval)."""
STANDARD = PROFILES["standard"]


def as_profile(profile: str | Profile) -> Profile:
    """A profile by name, or the given one."""
    return profile if isinstance(profile, Profile) else lookup(PROFILES, profile, "profile")


class ProfileWarning(UserWarning):
    """Metrics follow the conventions that the data come with, not the standard ones."""


def profile_for(profile: str | Profile | None, *data: Dataset) -> Profile:
    """The given profile; without one that of the data if they come with one, with a warning; else standard.

    Data come with a profile if all of them name the same and no label is beyond its scale.
    """
    if profile is not None:
        return as_profile(profile)
    names = {part.profile for part in data}
    own = as_profile(name) if len(names) == 1 and (name := names.pop()) else STANDARD
    highest = max((label for one in data for label in in_parts(one, _highest_label)), default=0.0)
    if own is STANDARD or highest > own.max_label:
        return STANDARD
    warn_caller(
        f"metrics follow the {own.name} profile, with which the data come (as all files in folders such as "
        f"Fold1 do); give `profile='standard'` or `profile={own.name!r}` to choose",
        ProfileWarning,
    )
    return own


def _highest_label(data: Dataset) -> float:
    return float(data.y.max())


def wider_scales(label: float) -> str:
    """What to do about a label beyond the scale of a profile, in words."""
    *others, last = [name for name, profile in PROFILES.items() if label <= profile.max_label] or [""]
    if last:
        names = f"{', '.join(others)} or {last}" if others else last
        return f"choose the profile {names} (--profile {others[0] if others else last})"
    highest = max(profile.max_label for profile in PROFILES.values())
    return f"no profile has a longer scale than 0 to {highest:g}, so map the labels to these grades"
