"""Sentences and page about potential problems of a data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksieve._version import __version__
from ranksieve.data.describe import Description
from ranksieve.inspection import Inspection, reference_values
from ranksieve.prepare.scaling import MAX_SCALE_RATIO
from ranksieve.report.bars import MAX_BARS, Bars, value_bars
from ranksieve.report.page import ALONE, MAX_ROWS, Answer, render_page
from ranksieve.show.formats import join_names, metric_title, percent_text, plural

MAX_NAMED = 4  # features per sentence
OFTEN_MISSING = 0.01
LEAK_SHARE, MAX_CHANCE_SHARE = (
    0.99,
    0.9,
)  # shares of the best possible: a feature reaches the first, chance not the second
MANY_QUERIES = 0.1
MANY_LABELS = 64


def remarks(figures: Description, inspection: Inspection, texts: Sequence[str] = ()) -> list[str]:
    """Potential problems, the most serious first."""
    sentences = [sentence for check in CHECKS for sentence in check(figures, inspection)]
    return [
        *sentences,
        *([f"Text columns, not used as features: {join_names(list(texts))}."] if texts else []),
    ]


def _answers(figures: Description, inspection: Inspection) -> Iterator[str]:
    ideal, chance = inspection.ideal, inspection.chance
    if ideal is None or chance is None or chance > MAX_CHANCE_SHARE * ideal:
        return
    for one in inspection.features:
        if one.metric >= LEAK_SHARE * ideal:
            yield (
                f"{one.name} alone has {metric_title(inspection.metric)} {one.metric:.3f} (ideal ranking: "
                f"{ideal:.3f}), so it may reveal the label: check that it is not logged after the click or "
                "computed from the label."
            )


def _infinite(figures: Description, inspection: Inspection) -> Iterator[str]:
    names = [one.name for one in inspection.features if one.n_infinite]
    if names:
        yield (
            f"{plural(figures.n_infinite, 'value is', 'values are')} infinite, in "
            f"{join_names(names, MAX_NAMED)}: fit refuses them."
        )


def _labels(figures: Description, inspection: Inspection) -> Iterator[str]:
    labels = list(figures.label_counts)
    if min(labels) < 0:
        yield f"The lowest label is {min(labels):g}: some metrics, such as NDCG, need labels of at least 0."
    if len(labels) > MANY_LABELS:
        yield f"The labels have {len(labels)} different values: check that they are grades, not scores."


def _queries(figures: Description, inspection: Inspection) -> Iterator[str]:
    n_useless = figures.n_queries_without_pairs
    if figures.n_pairs == 0:
        yield "No query has documents with different labels, so nothing can be learned."
    elif n_useless >= MANY_QUERIES * figures.n_queries:
        yield (
            f"{percent_text(n_useless / figures.n_queries)} of the queries have only one label and do not "
            "contribute to the fit."
        )
    if figures.n_scattered_queries:
        rows = plural(figures.n_scattered_queries, "query has rows", "queries have rows")
        yield f"{rows} of other queries in between: check that this order is intended."


def _missing(figures: Description, inspection: Inspection) -> Iterator[str]:
    never = [one.name for one in inspection.features if one.missing == 1]
    if never:
        yield f"{join_names(never, MAX_NAMED)} {_verb(never, 'is', 'are')} missing in every row."
    some = [one for one in inspection.features if OFTEN_MISSING <= one.missing < 1]
    some.sort(key=lambda one: -one.missing)
    if some:
        shares = [f"{percent_text(one.missing)} of {one.name}" for one in some]
        yield (
            f"{join_names(shares, MAX_NAMED)} {_verb(some, 'is', 'are')} missing: fit fills them with means; "
            "--missing indicator also adds features that mark missing values."
        )


def _scales(figures: Description, inspection: Inspection) -> Iterator[str]:
    varying = [one for one in inspection.features if one.deviation > 0]
    if not varying:
        return
    small, large = (choose(varying, key=lambda one: one.deviation) for choose in (min, max))
    ratio = large.deviation / small.deviation
    if ratio > MAX_SCALE_RATIO:
        yield (
            f"Scales differ {_fold(ratio)}: the deviation within queries is {large.deviation:.3g} for "
            f"{large.name} and {small.deviation:.3g} for {small.name}; --normalise auto, the default of fit, "
            "scales them."
        )


def _fold(ratio: float) -> str:
    return f"10^{math.floor(math.log10(ratio))}-fold" if ratio >= 1e6 else f"{ratio:,.0f}-fold"


def _same(figures: Description, inspection: Inspection) -> Iterator[str]:
    useless = [one.name for one in inspection.features if one.constant_within_queries and one.missing < 1]
    if useless:
        yield (
            f"{join_names(useless, MAX_NAMED)} {_verb(useless, 'is', 'are')} the same for all documents of a "
            "query and cannot change a ranking."
        )
    for equal in figures.duplicate_features:
        if not set(equal) <= set(useless):
            yield f"{join_names(equal, MAX_NAMED)} are equal in every row; one of them is enough."
    duplicates = {frozenset(equal) for equal in figures.duplicate_features}
    for group in inspection.alike:
        if frozenset(group.features) not in duplicates:
            yield (
                f"{join_names(group.features, MAX_NAMED)} rank nearly the same: |correlation| within queries "
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
    """A value or range with its count and share."""

    name: str
    count: int
    share: float


def inspect_page(inspected: Mapping[str, Any], source: str) -> str:
    """HTML page of the JSON output of ``ranksieve inspect``."""
    ranked = sorted(inspected["features"], key=lambda one: -one["metric"])
    content = {
        "inspected": inspected,
        "lead": _lead(inspected, ranked[0]),
        "how_alone": ALONE,
        "alone": _alone(inspected, ranked[:MAX_BARS]),
        "title": f"Contents of {Path(source).name}",
        "metric": metric_title(inspected["metric"]),
        "answers": _page_answers(inspected),
        "reference_values": reference_values(inspected),
        "labels": _bars(list(inspected["label_counts"].items())),
        "lengths": _bars([(_range(*ends), count) for *ends, count in inspected["list_lengths"]]),
        "features": [
            {**one, "flag": _flag(one), "bars": _heights(one["histogram"])} for one in ranked[:MAX_ROWS]
        ],
    }
    return render_page("inspect.html.j2", {"figures": {}}, content=content, version=__version__, down=DOWN)


def _lead(inspected: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """What can be learned from the data, in one sentence."""
    problems = (
        plural(len(inspected["remarks"]), "potential problem") if inspected["remarks"] else "no problem found"
    )
    metric = metric_title(inspected["metric"])
    if not best["direction"]:
        return f"{problems.capitalize()}; no feature alone ranks the documents."
    return (
        f"{best['name']} is the best feature alone, with {metric} {best['metric']:.4f} (random ranking: "
        f"{inspected['chance']:.4f}); {problems}."
    )


def _alone(inspected: Mapping[str, Any], ranked: Sequence[Mapping[str, Any]]) -> Bars:
    """The metric of the best features alone, with a line at a random ranking."""
    metric, useful = metric_title(inspected["metric"]), [one for one in ranked if one["direction"]]
    values = [(one["name"], one["metric"], f"{one['metric']:.4f}") for one in useful]
    title = (
        f"{metric} of ranking by one feature alone; dashed: a random ranking; the full width: the ideal one."
    )
    return value_bars(
        title, ("feature", metric), values, inspected["ideal"] or 1.0, inspected["chance"] or 0.0
    )


def _page_answers(inspected: Mapping[str, Any]) -> list[Answer]:
    """Size, pairs to learn from, missing values."""
    lengths = f"{inspected['list_length_min']} to {inspected['list_length_max']}"
    without = plural(inspected["n_queries_without_pairs"], "query has", "queries have")
    partly = sum(one["missing"] > 0 for one in inspected["features"])
    missing = percent_text(inspected["n_missing"] / (inspected["n_docs"] * inspected["n_features"]))
    how_much = (
        f"{inspected['n_queries']:,} queries with {lengths} documents (median "
        f"{inspected['list_length_median']:g}); {inspected['n_features']} features."
    )
    pairs = f"Pairs of documents of the same query with different labels; {without} none."
    shares = (
        f"{partly} of {inspected['n_features']} features have missing values; "
        f"{percent_text(inspected['zero_share'])} of all values are 0."
    )
    return [
        Answer("How large?", f"{inspected['n_docs']:,} documents", how_much),
        Answer("How many pairs?", f"{inspected['n_pairs']:,} pairs", pairs),
        Answer("What is missing?", f"{missing} of the values", shares),
    ]


def _bars(counts: Sequence[tuple[str, int]]) -> list[Bar]:
    total = sum(count for _, count in counts)
    return [Bar(str(name), count, count / total) for name, count in counts[:MAX_ROWS]]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _flag(one: Mapping[str, Any]) -> str:
    return next((flag for name, flag in FLAGS.items() if one[name]), "")


def _heights(counts: Sequence[int]) -> list[float]:
    """Heights of histogram bars from 0 to 10: square roots of counts, so that rare values are visible."""
    most = max(counts, default=0)
    return [max(10 * math.sqrt(count / most), LEAST_HEIGHT) if count else 0.0 for count in counts]
