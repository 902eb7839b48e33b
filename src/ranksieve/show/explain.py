"""Explanations as sentences and table cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ranksieve.show.formats import by_range, level_text, metric_text, metric_title, number, plural, signed
from ranksieve.show.result import Part, Table

SCALING_TEXTS = {
    "query_z": "minus the mean over the documents of the query, divided by their standard deviation",
    "query_min_max": "minus the minimum over the documents of the query, divided by their range",
}


FILL_TEXTS = {"zero": "0", "query_min": "the minimum of the feature in the query"}


ADD_UP = (
    'Score: divide each value by its "per", multiply by the points and add up. The highest score ranks first.'
)
ADD_UP_RANGES = "Score: find the range of each value and add up the points. The highest score ranks first."


def preparation_sentences(model: Any) -> list[str]:
    """How missing values are filled and values are scaled within queries."""
    missing, normalisation = model.preparation.missing, model.preparation.normalisation
    sentences = [
        f'"{name}" is 1 if {source} is missing, else 0.' for name, source in missing.indicators.items()
    ]
    if missing.policy in FILL_TEXTS:
        sentences.append(f"Missing values are replaced by {FILL_TEXTS[missing.policy]}.")
    if normalisation.kind in SCALING_TEXTS:
        sentences.append(
            f"Values are scaled first: value {SCALING_TEXTS[normalisation.kind]} ({normalisation.kind})."
        )
    return sentences


MAX_TEXT_LENGTH = 60  # characters, in tables and sentences


def value_text(logged: float | None, filled: float | None) -> str:
    """A value of the data, or "missing, filled with 3.1"; "missing" if the model has a level for it."""
    if logged is not None and logged == logged:
        return f"{logged:.4g}" if abs(logged) < 1e4 else number(logged)
    return "missing" if filled is None or filled != filled else f"missing, filled with {filled:.4g}"


def next_step_text(step: tuple[float, float] | None) -> str:
    """``from 8.1 on 0.3 more``: the next threshold of a curve and the change of the contribution there."""
    if step is None or step[0] != step[0]:
        return ""
    return f"from {number(step[0])} on {abs(step[1]):.3g} {'more' if step[1] > 0 else 'less'}"


def level_texts(part: Any) -> tuple[str, str]:
    """``7.9 gives +0.82; from 8.1 on 0.3 more`` for both documents."""
    values, levels = logged_values(part), (part.value_a, part.value_b)
    gives = [f"{v} gives {level_text(part.weight * level)}" for v, level in zip(values, levels, strict=True)]
    steps = map(next_step_text, (part.next_a, part.next_b))
    a, b = ("; ".join(filter(None, one)) for one in zip(gives, steps, strict=True))
    return a, b


def pair_sentence(pair: Any, top: int) -> str:
    """``A ranks above B by 0.42: bm25_title +0.31 (12.9 against 0.2), …``, with values of the data."""
    relation = "above" if pair.difference > 0 else "below" if pair.difference < 0 else "level with"
    by = f" by {abs(pair.difference):.4g}" if pair.difference else ""
    parts = [part for part in pair.parts if part.contribution]
    reasons = [f"{p.feature} {p.contribution:+.4g} ({' against '.join(logged_values(p))})" for p in parts]
    more = f" and {len(reasons) - top} smaller" if len(reasons) > top else ""
    text = ", ".join(reasons[:top]) + more if reasons else "no feature in use differs"
    a, b = with_text(pair.a, pair.text_a), with_text(pair.b, pair.text_b)
    return f"{a} ranks {relation} {b}{by}: {text}."


def logged_values(part: Any) -> tuple[str, str]:
    """Both values of a part, as in the data."""
    return value_text(part.logged_a, part.filled_a), value_text(part.logged_b, part.filled_b)


def query_title(query: object, text: str) -> str:
    """``Query 7: text of the query``."""
    return f"Query {query}{f': {text}' if text else ''}"


def with_text(name: object, text: str) -> str:
    """``D12 “The title”``."""
    return f"{name} “{shortened_text(text)}”" if text else str(name)


def shortened_text(text: str) -> str:
    """One line of at most ``MAX_TEXT_LENGTH`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT_LENGTH else f"{line[: MAX_TEXT_LENGTH - 1]}…"


def value_cells(query: Any, document: int, features: Sequence[int]) -> list[str]:
    """Values of a document, with the scaled values if the model normalises, or the next step of a curve."""
    cells = []
    for j in features:
        logged = value_text(float(query.logged[document, j]), float(query.filled[document, j]))
        if query.next_thresholds is not None and query.next_changes is not None:
            threshold, change = query.next_thresholds[document, j], query.next_changes[document, j]
            cells.append(
                logged if np.isnan(threshold) else f"{logged} ({number(threshold)}: {level_text(change)})"
            )
        else:
            cells.append(f"{logged} → {query.values[document, j]:.3g}" if query.scaled else logged)
    return cells


def drop_name(drop: Any) -> str:
    """A feature, or a group with its features in use."""
    return f"group {drop.feature}: {', '.join(drop.dropped)}" if drop.group else drop.feature


def worst_sentence(worst: Any) -> str:
    """``Query 7: NDCG@10 0.12; its only relevant document is at rank 9 of 30: D4; first is D2.``"""
    title = query_title(worst.query, worst.text)
    best, first = with_text(worst.document, worst.document_text), with_text(worst.first, worst.first_text)
    top = "" if worst.rank == 1 else f"; first is {first}"
    return f"{title}: {metric_title(worst.metric)} {metric_text(worst.value)}; {worst.why}: {best}{top}."


FEATURES_SHOWN = 8


def pair_parts(pair: Any, top: int | None = None) -> list[Part]:
    """Why a document ranks above another: a sentence, the contributions, and their sum."""
    parts: list[Part] = [query_title(pair.query, pair.query_text)] if pair.query_text else []
    parts.append(pair_sentence(pair, top or FEATURES_SHOWN))
    shown, documents = pair.parts[:top], [str(pair.a), str(pair.b)]
    if pair.curves:
        rows: list[Any] = [(p.feature, *level_texts(p), f"{p.contribution:+.4g}") for p in shown]
        parts.append(Table(["feature", *documents, "contribution"], rows))
    else:
        scaled = [f"{name}, scaled" for name in documents] if pair.scaled else []
        rows = [
            (
                p.feature, *logged_values(p), *((p.value_a, p.value_b) if scaled else ()), p.weight,
                f"{p.contribution:+.4g}",
            )
            for p in shown
        ]  # fmt: skip
        weight = "scaled weight" if scaled else "weight"
        parts.append(Table(["feature", *documents, *scaled, weight, "contribution"], rows))
    contributions = (
        "The contribution adds" if len(pair.parts) == 1 else f"The {len(pair.parts)} contributions add"
    )
    parts.append(
        f"{contributions} up to {pair.difference:+.6g} = {pair.score_a:.6g} - "
        f"{pair.score_b:.6g}. Ranks: {pair.rank_a} for {pair.a}, {pair.rank_b} for {pair.b}."
    )
    return parts


def query_parts(query: Any, top: int | None = None) -> list[Part]:
    """Contributions of the features that vary most and the sum of the others, then the feature values."""
    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [top or FEATURES_SHOWN])
    others = ["others"] if len(rest) else []
    texts = ["text"] if query.texts else []
    heads, added, values = [], [], []
    for d, parts in enumerate(query.contributions):
        text = [shortened_text(query.texts[d])] if texts else []
        heads.append((int(query.ranks[d]), query.documents[d]))
        cells = [*parts[shown], *([parts[rest].sum()] if len(rest) else [])]
        facts = (*text, f"{query.labels[d]:g}", f"{query.scores[d]:.4g}")
        added.append((*heads[d], *facts, *(f"{cell:+.4g}" for cell in cells)))
        values.append((*heads[d], *value_cells(query, d, shown.tolist())))
    names = [query.features[j] for j in shown]
    title = query_title(query.query, query.query_text)
    constant = f" minus the constant {query.intercept:.4g}" if query.intercept else ""
    what = "level of the feature's curve" if query.curves else "weight times feature value"
    more = (
        " (next threshold: change of the contribution)"
        if query.curves
        else " → scaled"
        if query.scaled
        else ""
    )
    return [
        Table(["rank", "document", *texts, "label", "score", *names, *others], added, title),
        f"Each row adds up to the score{constant}. Contribution: {what}.",
        Table(["rank", "document", *names], values, f"Values in the data{more}"),
    ]


def drop_parts(drops: Sequence[Any], top: int | None = None) -> list[Part]:
    """One table per metric."""
    priced = any(drop.saved is not None for drop in drops)
    heads = ["without", "metric", "value", "loss", "p (t)", "Holm", "p (random)", "Holm"]
    parts: list[Part] = []
    for metric in dict.fromkeys(drop.metric for drop in drops):
        rows = [
            (drop_name(drop), metric_title(metric), *_drop_cells(drop, priced))
            for drop in drops
            if drop.metric == metric
        ]
        parts.append(Table([*heads, *(["saves"] if priced else [])], rows[:top]))
    return parts


def _drop_cells(drop: Any, priced: bool) -> tuple[Any, ...]:
    p_values = (drop.p_t, drop.p_t_holm, drop.p_randomisation, drop.p_randomisation_holm)
    cells = (f"{drop.without:.4f}", f"{drop.loss:+.4f}", *p_values)
    return (*cells, *([drop.saved] if priced else []))


def card_table(model: Any) -> Table:
    """The points of a scorecard, the largest first; with curves, of each range of values."""
    if model.has_curves:
        rows = [
            row for name, curve in by_range(model.curves).items() for row in _points_by_range(name, curve)
        ]
        return Table(["feature", "points", "from", "to below"], rows)
    card, missing = model.card, model.preparation.missing
    means = dict(zip(missing.features, missing.means, strict=True))
    heads = ["feature", "points", "per", *(["if missing"] if means else [])]
    rows = [
        [name, signed(card.points[name], 0), f"{card.units[name]:g}"]
        + ([f"{means[name]:.6g}" if name not in missing.indicators else ""] if means else [])
        for name in sorted(card.points, key=lambda name: -abs(card.points[name]))
    ]
    return Table(heads, rows)


def _points_by_range(name: str, curve: Any) -> Iterator[list[str]]:
    """One row for each level of a curve, and one for missing values if they have points."""
    ends = ["", *map(repr, curve.thresholds), ""]
    for level, low, high in zip(curve.levels, ends, ends[1:], strict=False):
        yield [name, signed(level, 0) if level else "0", low, high]
    if curve.missing:
        yield [name, signed(curve.missing, 0), "missing", ""]


def card_title(model: Any) -> str:
    """Number of features of a scorecard, and its range of points."""
    points = f"points from −{model.card.levels} to {model.card.levels}"
    each = " per step" if model.has_curves else ""
    return f"Scorecard: {plural(len(model.names), 'feature')}, {points}{each}"


def how_to_add_up(model: Any) -> str:
    return ADD_UP_RANGES if model.has_curves else ADD_UP


def card_parts(model: Any) -> list[Part]:
    """A scorecard, and how to add up its points."""
    return [f"{card_title(model)}.", card_table(model), *preparation_sentences(model), how_to_add_up(model)]
