"""Profiles: metric conventions, which differ between libraries and evaluation scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import map_parts
from ranksieve.errors import ParameterError, lookup, warn_caller

Empty: TypeAlias = float | Literal["skip"]
"""Value of a query without a relevant document: 0, 1, or "skip" (NaN, not part of the mean)."""

Ties: TypeAlias = Literal["order", "mean", "worst"]
"""Order of documents with equal scores: that of the input, the mean over all orders, or the worst order."""


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
    """Metric conventions: gain, discount, relevance, and values of short or empty lists.

    Parameters
    ----------
    name : str
        Shown in results.
    gain : function
        Labels -> gains in DCG and NDCG, finite, at least 0, nondecreasing.
    discount : function
        Ranks (1, 2, …) -> weights, nonincreasing.
    short_list_is_zero : bool
        Whether NDCG@k of a list with fewer than k documents is 0.
    relevant_from : float
        The smallest label that counts as relevant in P, R, AP and RR.
    empty : 0.0, 1.0 or "skip"
        NDCG, AP and R of a query without a relevant document, where they are 0/0; the other metrics are 0.
    max_label : float
        The highest label of the scale, for ERR, whose stopping probability is (2^y − 1) / 2^max_label.
    ties : "order", "mean" or "worst"
        Documents of a query with equal scores: in input order; the mean of the metric over all their orders;
        or by ascending label, which gives the lowest value.
    """

    name: str
    gain: Callable[[FloatArray], FloatArray] = exponential_gain
    discount: Callable[[IntArray], FloatArray] = log2_discount
    short_list_is_zero: bool = False
    relevant_from: float = 1.0
    empty: Empty = 0.0
    max_label: float = 4.0
    ties: Ties = "order"

    def __post_init__(self) -> None:
        check_empty(self.empty)
        as_ties(self.ties)

    @property
    def title(self) -> str:
        """``letor``, or ``letor, ties mean`` if the ties differ from the default for this name."""
        return f"{self.name}{self._other_ties}"

    @property
    def phrase(self) -> str:
        """``letor profile``, or ``letor profile, ties mean``."""
        return f"{self.name} profile{self._other_ties}"

    @property
    def _other_ties(self) -> str:
        default = PROFILES[self.name].ties if self.name in PROFILES else "order"
        return "" if self.ties == default else f", ties {self.ties}"

    def with_ties(self, ties: Ties | None) -> Profile:
        """The profile with this treatment of ties; None: its own."""
        return self if ties in (None, self.ties) else replace(self, ties=ties)


def check_empty(empty: Empty) -> Empty:
    if empty not in (0.0, 1.0, "skip"):
        raise ParameterError("empty", empty, "must be 0, 1 or 'skip'")
    return empty


def as_ties(ties: str) -> Ties:
    if ties not in get_args(Ties):
        raise ParameterError("ties", ties, "must be 'order', 'mean' or 'worst'")
    return cast(Ties, ties)


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("letor", discount=letor_discount, short_list_is_zero=True, max_label=2.0),
        Profile("mslr", discount=letor_discount, short_list_is_zero=True, relevant_from=2.0),
        Profile("standard", ties="mean"),
        Profile("trec", gain=linear_gain),
    )
}
"""``letor``: the official scripts of LETOR 3.0 and 4.0; ``mslr``: the same, relevant from y = 2 on;
``standard``: discount 1/log2(1 + i), no rule for short lists, mean over the orders of tied documents;
``trec``: as ``standard``, but with gain y, as in trec_eval (ERR, which trec_eval lacks, as in TREC's gdeval),
and ties in input order."""
STANDARD_PROFILE = PROFILES["standard"]


def as_profile(profile: str | Profile) -> Profile:
    return profile if isinstance(profile, Profile) else lookup(PROFILES, profile, "profile")


class ProfileWarning(UserWarning):
    """Metrics use the profile of the data, not the standard one."""


def profile_for(profile: str | Profile | None, *data: Dataset) -> Profile:
    """``profile`` if it is given, else the profile of the data, with a warning, else the standard one.

    Data have a profile if all of them name the same one and no label is above its ``max_label``.
    """
    if profile is not None:
        return as_profile(profile)
    names = {part.profile for part in data}
    named = as_profile(name) if len(names) == 1 and (name := names.pop()) else STANDARD_PROFILE
    highest = max((label for one in data for label in map_parts(one, _highest_label)), default=0.0)
    if named is STANDARD_PROFILE or highest > named.max_label:
        return STANDARD_PROFILE
    warn_caller(
        f"metrics follow the {named.name} profile of the data (the default for files in folders such as "
        f"Fold1); use `profile='standard'` or `profile={named.name!r}` to choose",
        ProfileWarning,
    )
    return named


def _highest_label(data: Dataset) -> float:
    return float(data.y.max())


def wider_scales(label: float) -> str:
    """Advice for a label above the ``max_label`` of a profile."""
    *others, last = [name for name, profile in PROFILES.items() if label <= profile.max_label] or [""]
    if last:
        names = f"{', '.join(others)} or {last}" if others else last
        return f"use the profile {names} (--profile {others[0] if others else last})"
    highest = max(profile.max_label for profile in PROFILES.values())
    return f"no profile supports labels above {highest:g}, so map the labels to 0 to {highest:g}"
