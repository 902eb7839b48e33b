"""The hits of a search response together, where all of them log the same features: quicker than one by one.

Lines of a log become such blocks by msgspec, without the objects that are not needed: quicker again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray

QUERY_KEYS = ("qid", "query_id", "query", "keywords")
EXTRA = "extra_logging"
NUMBERS = {float, int, type(None)}
NAME = itemgetter("name")


class Block(NamedTuple):
    """Documents that log the same features: one row of values each; NaN is a feature without a value."""

    features: tuple[str, ...]
    documents: Sequence[str]
    values: FloatArray


def block_of_response(content: Mapping[str, Any], entry: str | None) -> Block | None:
    """All hits of a response; None if one of them is not like the others, or anything is wrong."""
    try:
        hits = content["hits"]["hits"]
        logs = [_only_log(hit["fields"]["_ltrlog"], entry) for hit in hits]
        names = [list(map(NAME, log)) for log in logs]
        values = [[pair.get("value") for pair in log] for log in logs]
        return None if "error" in content else _block([hit["_id"] for hit in hits], names, values)
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        return None


def block_of_line(line: str, entry: str | None) -> tuple[str | None, Block] | None:
    """The query that a line names, if any, and its hits.

    None for lines of another form than one response, and where ``block_of_response`` is.
    """
    try:
        response = _line_reader().decode(line)
        if response.has_error():
            return None
        hits = response.hits.hits
        logs = [_only_log(hit.fields.log, entry) for hit in hits]
        names, values = ([list(map(attrgetter(part), log)) for log in logs] for part in ("name", "value"))
        block = _block([hit.id for hit in hits], names, values)
    except (LookupError, TypeError, ValueError):
        return None
    named = (getattr(response, key) for key in QUERY_KEYS)
    query = next((str(one) for one in named if one is not None), None)
    return None if block is None else (query, block)


def _only_log(logs: Sequence[Mapping[str, Any]], entry: str | None) -> Any:
    ((name, log),) = (pair for one in logs for pair in one.items())
    if entry not in (None, name):
        raise LookupError
    return log


def _block(documents: Sequence[Any], names: Sequence[list[Any]], values: Sequence[list[Any]]) -> Block | None:
    first = names[0]
    if any(some != first for some in names) or not _are_names(first):
        return None
    if not set(map(type, chain.from_iterable(values))) <= NUMBERS:
        return None
    matrix = np.array(values, dtype=np.float64)
    n_holes = sum(row.count(None) for row in values)
    if np.isinf(matrix).any() or np.isnan(matrix).sum() != n_holes:
        return None
    return Block(tuple(first), list(map(str, documents)), matrix)


def _are_names(names: Sequence[Any]) -> bool:
    words = bool(names) and all(isinstance(name, str) and name for name in names)
    return words and len(set(names)) == len(names) and EXTRA not in names


@cache
def _line_reader() -> Any:
    """A reader of lines that hold one response."""
    from msgspec import UNSET, Raw, UnsetType, defstruct  # only logs need it
    from msgspec.json import Decoder

    plain: Any = {"gc": False}
    pair: Any = defstruct("Pair", [("name", str), ("value", float | None, None)], **plain)
    fields = defstruct("Fields", [("log", list[dict[str, list[pair]]])], rename={"log": "_ltrlog"}, **plain)
    hit: Any = defstruct("Hit", [("id", str | int), ("fields", fields)], rename={"id": "_id"}, **plain)
    hits = defstruct("Hits", [("hits", list[hit])], **plain)
    queries = [(key, str | int | None, None) for key in QUERY_KEYS]
    error = ("error", Raw | UnsetType, UNSET)
    has_error = {"has_error": lambda line: line.error is not UNSET}
    return Decoder(defstruct("Line", [("hits", hits), *queries, error], namespace=has_error, **plain))
