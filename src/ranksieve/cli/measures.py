"""What rankings are measured by: the metrics and the profile asked for, else the models', else the data's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ranksieve as rs

if TYPE_CHECKING:  # these take long to load
    from ranksieve.foreign import Scorer
    from ranksieve.metrics import Profile

Own = Mapping[str, Mapping[str, str]]
"""What models were chosen by, ``metric`` and ``profile``, by the names of their files."""


@dataclass(frozen=True)
class Measures:
    """Metrics and their profile; ``words`` say which they are and whose."""

    metrics: Sequence[str]
    profile: Profile
    words: str


def check_measures(metric: Sequence[str] | None, profile: str | None) -> None:
    """Refuse metrics and a profile that do not exist, before any work."""
    from ranksieve.metrics.evaluate import parse_all
    from ranksieve.metrics.profiles import as_profile

    if metric:
        parse_all(metric)
    if profile is not None:
        as_profile(profile)


def measures_of_runs(metric: Sequence[str] | None, profile: str | None) -> Measures:
    """What is asked for, else NDCG@10 and MAP in the trec profile."""
    from ranksieve.metrics.evaluate import DEFAULT_METRICS
    from ranksieve.metrics.profiles import as_profile

    conventions = as_profile(profile or "trec")
    return Measures(metric or DEFAULT_METRICS, conventions, f"{conventions.name} profile")


def measures_for(
    models: Mapping[str, Scorer],
    data: rs.Dataset,
    metric: Sequence[str] | None,
    profile: str | None,
    also: Sequence[str] = (),
) -> Measures:
    """What is asked for, else what all models were chosen by, else NDCG@10 and the profile of the data.

    ``also`` names metrics that come with one that nobody asked for.
    """
    from ranksieve.metrics import profile_for
    from ranksieve.metrics.evaluate import DEFAULT_METRICS

    own = {file: model.chosen_by for file, model in models.items() if model.chosen_by is not None}
    first = metric[0] if metric else _agreed(own, "metric") or DEFAULT_METRICS[0]
    conventions = profile_for(profile or _agreed(own, "profile"), data)
    whose: dict[str, list[str]] = {}
    if not metric and own:
        whose.setdefault(_origin(own, "metric"), []).append(first.upper())
    origin = _origin(own, "profile") if not profile and own else ""
    whose.setdefault(origin, []).append(f"{conventions.name} profile")
    words = "; ".join(", ".join(what) + origin for origin, what in whose.items())
    return Measures(metric or list(dict.fromkeys([first, *also])), conventions, words)


def _agreed(own: Own, what: str) -> str | None:
    """What all models that were chosen by something were chosen by."""
    values = {one[what] for one in own.values()}
    return values.pop() if len(values) == 1 else None


def _origin(own: Own, what: str) -> str:
    if _agreed(own, what):
        return f", as the {'model was' if len(own) == 1 else 'models were'} chosen by"
    each = ", ".join(f"{file} by {one[what]}" for file, one in own.items())
    return f", because the models were chosen by different ones ({each})"
