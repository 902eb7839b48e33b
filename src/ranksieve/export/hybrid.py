"""What hybrid searches share: the score of every sub-query is a feature, and they are added with weights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksieve._util.messages import safe
from ranksieve.errors import DataError
from ranksieve.export.base import (
    ANY_NAME,
    Options,
    constant_left_out,
    engine_names,
    exportable,
    warn_of_means,
    weight32,
    window_of,
)
from ranksieve.export.lucene import feature_list

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

BY_RANGE = "query_min_max"
WINDOW = 100
SHOWN = 10  # documents that the example query returns
WORDS = "WORDS OF THE USER"
PLUGIN_KEYS = ("_source", "featureset", "features")


@dataclass(frozen=True)
class Clause:
    """A feature in use: the sub-query's name, its weight in float32, and what finds and scores documents."""

    name: str
    weight: float
    query: Any


@dataclass(frozen=True)
class Hybrid:
    """A model as a hybrid search.

    ``by_range`` tells whether scores are scaled by their least and greatest value in the result list.
    """

    clauses: tuple[Clause, ...]
    by_range: bool
    window: int
    notes: tuple[str, ...]


def hybrid(model: LinearModel, options: Options, engine: str, query_of: Callable[[str], Any]) -> Hybrid:
    """The sub-queries of a model: those of the feature set, else ``query_of`` the engine's name of a field.

    Scales of the training data fold into the weights. A negative weight is refused. A document that a
    sub-query does not return counts 0 there: after scaling by range that is the query's least value, so
    that this policy for missing values is the engine's own.
    """
    by_range = model.preparation.normalisation.kind == BY_RANGE
    model = exportable(model, engine, within=(BY_RANGE, "query_min") if by_range else (BY_RANGE,))
    warn_of_means(model, engine, f"fit with `missing={'query_min' if by_range else 'zero'!r}`")
    folded, window = model if by_range else model.folded(), window_of(options, WINDOW)
    used = [term for term in folded.terms if term.weight]
    names = engine_names([term.name for term in used], options.names, ANY_NAME, engine)
    for term in used:
        if term.weight < 0:
            raise DataError(
                None,
                None,
                f"the weight of {safe(term.name)} is {term.weight:.6g}, but {engine} takes no negative "
                "weights; fit with its sign + in `signs`, or without it by `must_not`",
            )
    queries = [query_of(name) for name in names]
    if options.featureset is not None:
        queries = _queries_of(sub_queries(options.featureset), names)
    weights = [weight32(term.weight, name) for term, name in zip(used, names, strict=True)]
    notes = (*_notes(by_range, window, queries), *constant_left_out(folded.intercept, engine))
    return Hybrid(tuple(map(Clause, names, weights, queries)), by_range, window, notes)


def _notes(by_range: bool, window: int, queries: Sequence[Any]) -> tuple[str, ...]:
    scaled = "its least and greatest score are taken among these, and " if by_range else ""
    note = (
        f"Each sub-query returns its first {window} documents; {scaled}a document that it does not return "
        "counts 0 there. Log the features that you train on in the same way."
    )
    asked = dict.fromkeys(re.findall(r"\{\{\W*(\w+)\W*\}\}", json.dumps(queries, ensure_ascii=False)))
    if not asked:
        return (note,)
    return note, f"Put values in the place of {', '.join(f'{{{{{name}}}}}' for name in asked)} in the query."


def match(field: str) -> dict[str, Any]:
    """The query that scores a field by the user's words."""
    return {"match": {field: WORDS}}


def sub_queries(content: Any) -> dict[str, Any]:
    """Queries by feature: an object of them, or the feature set of the learning-to-rank plugin."""
    if isinstance(content, dict) and not any(key in content for key in PLUGIN_KEYS):
        queries = content
    else:
        queries = {one["name"]: one.get("template") for one in feature_list(content)}
    for name, query in queries.items():
        if not isinstance(query, dict | list) or not query:
            raise DataError(
                None,
                None,
                f"the feature {name!r} has no query, got {str(query)[:40]!r}; expected an object from "
                "feature names to queries, or a feature set whose templates are queries",
            )
    return queries


def _queries_of(queries: dict[str, Any], names: Sequence[str]) -> list[Any]:
    lacking = [name for name in names if name not in queries]
    if lacking:
        raise DataError(
            None,
            None,
            f"there is no query for {', '.join(map(safe, lacking))}, which the model uses; add them, or give "
            "`names` if they have other names there",
        )
    return [queries[name] for name in names]
