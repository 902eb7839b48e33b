"""What changed from the model before, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranksieve.estimators.changes import Changes


def change_sentences(found: Changes, file: str) -> Iterator[str]:
    """Which features came and went, and how the held-out queries fare."""
    entered, left = ([one.feature for one in found.features if one.status == s] for s in ("in", "out"))
    kept = sum(one.status == "kept" for one in found.features)
    if not entered and not left:
        yield f"The {kept} features of {file} are kept: no other candidate is better by more than chance."
    else:
        yield f"Of the features of {file} {kept} are kept; in: {_listed(entered)}; out: {_listed(left)}."
    if not len(found.after):
        yield f"The data lack features of {file}, so it cannot be measured on them."
        return
    gain, low, high = found.gain
    yield (
        f"{found.metric.upper()} ({found.profile} profile) over {len(found.after):,} held-out queries: "
        f"{found.before.mean():.4f} before, {found.after.mean():.4f} now: {gain:+.4f}, 95 % interval "
        f"{low:+.4f} to {high:+.4f}; {found.won:,} queries won, {found.lost:,} lost."
    )
    if found.seen:
        yield f"{file} was fitted on these queries, so what it had before is too high."
    if not found.raw:
        yield "Weights are per normalised unit, because features are scaled within each query."


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
