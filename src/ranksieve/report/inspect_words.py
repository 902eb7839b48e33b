"""What is worth a look in a data set before a model is fitted to it, in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ranksieve.data.describe import Description
from ranksieve.measures.inspection import FeatureFigures, Inspection
from ranksieve.preparation.scales import TOO_DIFFERENT
from ranksieve.report.words import counted, listed, metric_title, percent_text

NAMED = 4  # features in a sentence
OFTEN_MISSING = 0.01
KNOWS, CHANCE = 0.99, 0.9  # shares of the best possible: a feature reaches the first, chance not the second
MANY_QUERIES = 0.1
MANY_LABELS = 64


def remarks(figures: Description, inspection: Inspection, texts: Sequence[str] = ()) -> list[str]:
    """What may make trouble later, the worst first."""
    return [words for check in CHECKS for words in check(figures, inspection)] + (
        [f"Text columns, kept beside the features: {listed(list(texts))}."] if texts else []
    )


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
    some = sorted((one for one in inspection.features if OFTEN_MISSING <= one.missing < 1), key=_by_missing)
    if some:
        shares = [f"{percent_text(one.missing)} of {one.name}" for one in some]
        yield (
            f"{listed(shares, NAMED)} {_verb(some, 'is', 'are')} missing: fit fills them with means; "
            "--missing indicator also tells the model that they are missing."
        )


def _by_missing(one: FeatureFigures) -> float:
    return -one.missing


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
    _answers,
    _infinite,
    _labels,
    _queries,
    _missing,
    _scales,
    _same,
)
