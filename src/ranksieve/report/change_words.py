"""What changed from the model before, in sentences and the cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksieve.report.words import counted

if TYPE_CHECKING:
    from ranksieve.estimators.changes import Changes

SHOWN_QUERIES = 5


@dataclass(frozen=True)
class ChangeTable:
    """Sentences, and rows of text: features with both weights, and queries with both metrics."""

    sentences: list[str]
    features: list[tuple[str, str, str, str]]
    queries: list[tuple[str, str, str, str]]
    metric: str


def change_table(
    found: Changes, file: str, texts: Mapping[Any, str], most: int = SHOWN_QUERIES
) -> ChangeTable:
    """What changed since the model of a file; ``texts`` are the words of queries."""
    features = [(one.feature, _weight(one.before), _weight(one.after), one.status) for one in found.features]
    queries = query_cells(found.extremes(most), texts)
    return ChangeTable(list(change_sentences(found, file)), features, queries, found.metric)


def query_cells(
    rows: Iterable[tuple[Any, float, float]], texts: Mapping[Any, str]
) -> list[tuple[str, str, str, str]]:
    """Queries by id and words, with both values and their difference."""
    return [(_called(query, texts), f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}") for query, a, b in rows]


def _weight(weight: float | None) -> str:
    return "" if weight is None else f"{weight:+.5g}"


def _called(query: Any, texts: Mapping[Any, str]) -> str:
    """A query by its id, and its words if they are known."""
    return f"{query}: {texts[query]}" if texts.get(query) else str(query)


def change_sentences(found: Changes, file: str) -> Iterator[str]:
    """Which features came and went, and how the held-out queries fare."""
    entered, left = ([one.feature for one in found.features if one.status == s] for s in ("in", "out"))
    kept = sum(one.status == "kept" for one in found.features)
    if not entered and not left:
        same = f"{counted(kept, 'feature')} of {file} {'is' if kept == 1 else 'are'} kept"
        yield f"The {same}: no other candidate is better by more than chance."
    else:
        yield f"Of the features of {file} {kept} are kept; in: {_listed(entered)}; out: {_listed(left)}."
    if not len(found.after):
        yield f"{file} cannot be measured on these data: {found.unmeasured}."
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
