"""Potential problems of a data set, in sentences and on a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksieve._version import __version__
from ranksieve.data.describe import Description
from ranksieve.inspection import Inspection
from ranksieve.prepare.scaling import TOO_DIFFERENT
from ranksieve.report.page import MAX_ROWS, Answer, counted, listed, metric_title, percent_text, render_page

NAMED = 4  # features in a sentence
OFTEN_MISSING = 0.01
KNOWS, CHANCE = 0.99, 0.9  # shares of the best possible: a feature reaches the first, chance not the second
MANY_QUERIES = 0.1
MANY_LABELS = 64


def remarks(figures: Description, inspection: Inspection, texts: Sequence[str] = ()) -> list[str]:
    """What may make trouble later, the worst first."""
    sentences = [words for check in CHECKS for words in check(figures, inspection)]
    return [
        *sentences,
        *([f"Text columns, kept beside the features: {listed(list(texts))}."] if texts else []),
    ]


def between(found: Mapping[str, Any]) -> str:
    """What a metric is between, to end a sentence with; nothing if it cannot be measured."""
    if found["chance"] is None:
        return ", but these labels do not allow to measure it"
    return f"; a random order has {found['chance']:.4f}, the best possible {found['ideal']:.4f}"


def _answers(figures: Description, inspection: Inspection) -> Iterator[str]:
    ideal, chance = inspection.ideal, inspection.chance
    if ideal is None or chance is None or chance > CHANCE * ideal:
        return
    for one in inspection.features:
        if one.metric >= KNOWS * ideal:
            yield (
                f"{one.name} alone ranks with {metric_title(inspection.metric)} {one.metric:.3f}, where "
                f"{ideal:.3f} is the best possible: does it know the answer? Check that it is not logged "
                "after the click, or made from the label."
            )


def _infinite(figures: Description, inspection: Inspection) -> Iterator[str]:
    names = [one.name for one in inspection.features if one.n_infinite]
    if names:
        yield (
            f"{counted(figures.n_infinite, 'value is', 'values are')} infinite, in {listed(names, NAMED)}: "
            "fit refuses them."
        )


def _labels(figures: Description, inspection: Inspection) -> Iterator[str]:
    labels = list(figures.label_counts)
    if min(labels) < 0:
        yield f"The lowest label is {min(labels):g}: NDCG, for one, needs labels of 0 and more."
    if len(labels) > MANY_LABELS:
        yield f"Labels have {len(labels)} different values: is the label a score rather than a grade?"


def _queries(figures: Description, inspection: Inspection) -> Iterator[str]:
    alike = figures.n_queries_without_pairs
    if figures.n_pairs == 0:
        yield "No query has documents of different labels: there is nothing to learn from."
    elif alike >= MANY_QUERIES * figures.n_queries:
        yield (
            f"{percent_text(alike / figures.n_queries)} of the queries have documents of one label only, "
            "from which nothing is learned."
        )
    if figures.n_scattered_queries:
        rows = counted(figures.n_scattered_queries, "query has rows", "queries have rows")
        yield f"{rows} of other queries between its own: is this the order that you expect?"


def _missing(figures: Description, inspection: Inspection) -> Iterator[str]:
    never = [one.name for one in inspection.features if one.missing == 1]
    if never:
        yield f"{listed(never, NAMED)} {_verb(never, 'has', 'have')} no value in any row."
    some = [one for one in inspection.features if OFTEN_MISSING <= one.missing < 1]
    some.sort(key=lambda one: -one.missing)
    if some:
        shares = [f"{percent_text(one.missing)} of {one.name}" for one in some]
        yield (
            f"{listed(shares, NAMED)} {_verb(some, 'is', 'are')} missing: fit fills them with means; "
            "--missing indicator also tells the model that they are missing."
        )


def _scales(figures: Description, inspection: Inspection) -> Iterator[str]:
    varying = [one for one in inspection.features if one.deviation > 0]
    if not varying:
        return
    small, large = (choose(varying, key=lambda one: one.deviation) for choose in (min, max))
    ratio = large.deviation / small.deviation
    if ratio > TOO_DIFFERENT:
        yield (
            f"Scales differ {_fold(ratio)}: within queries {large.name} deviates by {large.deviation:.3g}, "
            f"{small.name} by {small.deviation:.3g}; --normalise auto, the default of fit, scales them."
        )


def _fold(ratio: float) -> str:
    return f"10^{math.floor(math.log10(ratio))}-fold" if ratio >= 1e6 else f"{ratio:,.0f}-fold"


def _same(figures: Description, inspection: Inspection) -> Iterator[str]:
    useless = [one.name for one in inspection.features if one.constant_within_queries and one.missing < 1]
    if useless:
        yield (
            f"{listed(useless, NAMED)} {_verb(useless, 'is', 'are')} the same for all documents of a query "
            "and cannot change a ranking."
        )
    for equal in figures.duplicate_features:
        if not set(equal) <= set(useless):
            yield f"{listed(equal, NAMED)} are equal in every row: one of them is enough."
    known = {frozenset(equal) for equal in figures.duplicate_features}
    for group in inspection.alike:
        if frozenset(group.features) not in known:
            yield (
                f"{listed(group.features, NAMED)} rank nearly alike: |correlation| within queries "
                f"{group.correlation:.3f}."
            )


def _verb(names: Sequence[object], one: str, more: str) -> str:
    return one if len(names) == 1 else more


CHECKS: tuple[Callable[[Description, Inspection], Iterator[str]], ...] = (
    _answers, _infinite, _labels, _queries, _missing, _scales, _same,
)  # fmt: skip


FLAGS = {"constant": "constant", "constant_within_queries": "constant within queries"}
DOWN = "↓"
LEAST_HEIGHT = 0.4


@dataclass(frozen=True)
class Bar:
    """A value or range, how many have it, and which share of all that is."""

    name: str
    count: int
    share: float


def inspect_page(found: Mapping[str, Any], source: str) -> str:
    """The page of what ``ranksieve inspect --json`` prints."""
    ranked = sorted(found["features"], key=lambda one: -one["metric"])
    content = {
        "found": found,
        "title": f"What {Path(source).name} holds",
        "metric": metric_title(found["metric"]),
        "answers": _page_answers(found),
        "between": between(found),
        "labels": _bars(list(found["label_counts"].items())),
        "lengths": _bars([(_range(*ends), count) for *ends, count in found["list_lengths"]]),
        "features": [
            {**one, "flag": _flag(one), "bars": _heights(one["histogram"])} for one in ranked[:MAX_ROWS]
        ],
    }
    return render_page("inspect.html.j2", {"figures": {}}, content=content, version=__version__, down=DOWN)


def _page_answers(found: Mapping[str, Any]) -> list[Answer]:
    """How much there is, what is learned from, what is missing."""
    lengths = f"{found['list_length_min']} to {found['list_length_max']}"
    without = counted(found["n_queries_without_pairs"], "query has", "queries have")
    partly = sum(one["missing"] > 0 for one in found["features"])
    missing = percent_text(found["n_missing"] / (found["n_docs"] * found["n_features"]))
    how_much = (
        f"{found['n_queries']:,} queries of {lengths} documents, {found['list_length_median']:g} in "
        f"the median; {found['n_features']} features."
    )
    learned = f"Pairs of documents of one query with different labels; {without} none."
    what_lacks = (
        f"{partly} of {found['n_features']} features have missing values; "
        f"{percent_text(found['zero_share'])} of all values are 0."
    )
    return [
        Answer("How much?", f"{found['n_docs']:,} documents", how_much),
        Answer("What is learned from?", f"{found['n_pairs']:,} pairs", learned),
        Answer("What is missing?", f"{missing} of the values", what_lacks),
    ]


def _bars(counts: Sequence[tuple[str, int]]) -> list[Bar]:
    total = sum(count for _, count in counts)
    return [Bar(str(name), count, count / total) for name, count in counts[:MAX_ROWS]]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _flag(one: Mapping[str, Any]) -> str:
    return next((words for name, words in FLAGS.items() if one[name]), "")


def _heights(counts: Sequence[int]) -> list[float]:
    """Heights of the bars of a histogram from 0 to 10, by square roots, so that rare values can be seen."""
    most = max(counts, default=0)
    return [max(10 * math.sqrt(count / most), LEAST_HEIGHT) if count else 0.0 for count in counts]
