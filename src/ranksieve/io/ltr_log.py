"""Feature logs of search engines, joined with judgements."""

from __future__ import annotations

import gc
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, compress
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, PathLike
from ranksieve._util.files import decode_json
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import ids_from_text
from ranksieve.errors import DataError, ParameterError, shown
from ranksieve.io.tables import Judgements, read_judgements
from ranksieve.io.text_files import content_lines, first_bytes, in_file, read_text, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

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


MODEL_FILE = re.compile(rb'\s*\{\s*"format"\s*:\s*"ranksieve-(linear|boosted)-model"')
UNJUDGED: dict[str, float] = {"drop": math.nan, "zero": 0.0}


class Place(NamedTuple):
    """A line (None if the file is one JSON value) and the part of it, from outside to inside."""

    line: int | None = None
    parts: tuple[str, ...] = ()

    def inside(self, part: str) -> Place:
        return Place(self.line, (*self.parts, part))

    def error(self, reason: str) -> DataError:
        return DataError(None, self.line, f"{', '.join(self.parts)}: {reason}" if self.parts else reason)


class Response(NamedTuple):
    """A search response, the query it answers (if the log says so) and its place in the file.

    ``block`` holds the hits instead of ``content`` where they were read without it.
    """

    place: Place
    query: str | None
    content: Mapping[str, Any]
    block: Block | None = None


class Logged(NamedTuple):
    """The documents of a query as the engine computed their features."""

    query: str
    block: Block


def read_ltr_log(
    path: PathLike,
    judgements: PathLike | Judgements | None = None,
    *,
    entry: str | None = None,
    unjudged: str = "drop",
    missing: str = "keep",
) -> Dataset:
    """Join the features that a search engine logged with judgements.

    Parameters
    ----------
    path : path
        Search responses whose hits hold ``fields._ltrlog``: JSON or JSON lines, one response per query with
        the query's id or keywords beside ``hits`` as ``qid`` or ``query``, or around it as
        ``{"qid": …, "response": {…}}``; or one object ``{query: response, …}``; a list of responses or the
        ``responses`` of a multi-search holds these. One response for one judged query needs no id.
    judgements : path or Judgements
        The grades, see :func:`read_judgements`.
    entry : str, optional
        The log entry to take, such as ``log_entry1``; default: all of them side by side.
    unjudged : {"drop", "zero"}
        Documents without a judgement: leave out, or grade 0. Queries without any are left out.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        What becomes of features without a value (the engine's query did not match the document), see
        :func:`fill_missing`.
    """
    check_policy(missing)
    name = source_name(path)
    if unjudged not in UNJUDGED:
        raise ParameterError("unjudged", unjudged, f"must be one of {', '.join(UNJUDGED)}")
    if MODEL_FILE.match(first_bytes(path, 100)):
        reason = (
            "is a model, not a data set; give LETOR text, CSV, TSV, parquet or a folder that convert made "
            f"(to start a fit from this model, use --from {name})"
        )
        raise DataError(name, None, reason)
    if judgements is None:
        reason = (
            "is a feature log, which has no grades; give `judgements` (on the command line: ranksieve "
            f"convert {name} train.parquet --judgements FILE)"
        )
        raise DataError(name, None, reason)
    judged = judgements if isinstance(judgements, Judgements) else read_judgements(judgements)
    try:
        with in_file(name), _no_search_for_cycles():
            logged = list(_logged(read_text(path), judged, entry))
    except RecursionError:
        raise DataError(name, None, "damaged JSON (nested too deeply); fetch it again") from None
    grades = [_grades(one, judged, UNJUDGED[unjudged]) for one in logged]
    kept = sum(int((~np.isnan(some)).sum()) for some in grades)
    if not kept:
        raise DataError(
            name, None, "no logged document has a judgement; are query and document ids the same?"
        )
    _warn_of_gaps(name, logged, kept, judged)
    with in_file(name):
        return fill_missing(_dataset(logged, grades, name), missing)


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Let Python not look for cycles among objects that JSON makes: there are none, and it takes a sixth."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _grades(one: Logged, judged: Judgements, otherwise: float) -> FloatArray:
    """The grade of each document, NaN for those that are left out."""
    grades = judged.grades.get(one.query)
    if grades is None:
        return np.full(len(one.block.documents), math.nan)
    return np.array([grades.get(document, otherwise) for document in one.block.documents])


def _warn_of_gaps(name: str, logged: list[Logged], n_kept: int, judged: Judgements) -> None:
    seen: dict[str, set[str]] = {}
    for one in logged:
        seen.setdefault(one.query, set()).update(one.block.documents)
    nothing: set[str] = set()
    gaps = {
        "logged documents have no judgement and were left out": sum(map(len, seen.values())) - n_kept,
        "judged documents are not in the log": sum(
            len(grades.keys() - seen.get(query, nothing)) for query, grades in judged.grades.items()
        ),
    }
    said = [f"{count} {what}" for what, count in gaps.items() if count]
    if said:
        warn_caller(f"{name}: {'; '.join(said)}")


def _dataset(logged: list[Logged], grades: list[FloatArray], name: str) -> Dataset:
    """The documents that have a grade, with the features that any of them logs."""
    kept = [(one, some, ~np.isnan(some)) for one, some in zip(logged, grades, strict=True)]
    kept = [(one, some, chosen) for one, some, chosen in kept if chosen.any()]
    names = list(dict.fromkeys(feature for one, _, _ in kept for feature in one.block.features))
    if not names:
        raise DataError(None, None, "no hit logs a feature; is the feature set empty?")
    place = {feature: column for column, feature in enumerate(names)}
    X = np.full((sum(int(chosen.sum()) for _, _, chosen in kept), len(names)), math.nan)
    queries: list[str] = []
    documents: list[str] = []
    for one, _, chosen in kept:
        rows = np.arange(len(queries), len(queries) + int(chosen.sum()))
        columns = np.array([place[feature] for feature in one.block.features], dtype=np.int64)
        X[np.ix_(rows, columns)] = one.block.values[chosen]
        queries += [one.query] * len(rows)
        documents += compress(one.block.documents, chosen)
    y = np.concatenate([some[chosen] for _, some, chosen in kept])
    return Dataset(X, y, ids_from_text(queries), names, documents, source=name)


def _logged(text: str, judged: Judgements, entry: str | None) -> Iterator[Logged]:
    seen: dict[str, set[str]] = {}
    for response in _responses(text, entry):
        query = _query(response, judged)
        before = seen.setdefault(query, set())
        for block in _blocks(response, entry):
            for document in block.documents:
                if document in before:
                    raise response.place.error(f"document {document} of query {query} is logged twice")
                before.add(document)
            yield Logged(query, block)
        del (
            response
        )  # so that the next one takes the same memory, which is in the cache: a quarter of the time


def _blocks(response: Response, entry: str | None) -> Iterator[Block]:
    """The hits of a response together if they log the same features, else one by one."""
    together = response.block or block_of_response(response.content, entry)
    if together is not None:
        yield together
        return
    for hit in _hits(response):
        features = _features(hit, response.place, entry)
        values = np.array([list(features.values())], dtype=np.float64).reshape(1, -1)
        yield Block(tuple(features), [str(hit["_id"])], values)


def _query(response: Response, judged: Judgements) -> str:
    if response.query is not None:
        return judged.query(response.query) or response.query
    if len(judged.grades) == 1:
        return next(iter(judged.grades))
    raise response.place.error(
        f"the response does not name its query, one of {len(judged.grades)} judged ones; "
        'add "qid": … beside "hits"'
    )


def _responses(text: str, entry: str | None) -> Iterator[Response]:
    """The responses of the one JSON value of a file, or of one per line."""
    try:
        yield from _split(decode_json(text), Place(), None)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise DataError(None, error.lineno, f"damaged JSON ({error.msg}); fetch it again") from None
        for (_, number), line in content_lines(text, ""):
            yield from _of_line(line, Place(number), entry)


def _of_line(line: str, place: Place, entry: str | None) -> Iterator[Response]:
    if (quick := block_of_line(line, entry)) is not None:
        query, block = quick
        yield Response(place, query, {}, block)
        return
    try:
        content = decode_json(line)
    except json.JSONDecodeError as fault:
        raise place.error(f"damaged JSON ({fault.msg}); expected one value per line") from None
    yield from _split(content, place, None)


def _split(content: Any, place: Place, query: str | None) -> Iterator[Response]:
    """Responses inside lists, multi-searches, wrappers and objects keyed by query."""
    if isinstance(content, list):
        for number, one in enumerate(content, start=1):
            yield from _split(one, place.inside(f"response {number}"), query)
    elif not isinstance(content, dict):
        raise place.error(f"{str(content)[:40]!r} is not a search response; expected an object with hits")
    elif "hits" in content or "error" in content:
        yield Response(place, _named_query(content, query), content)
    elif inner := next((content[key] for key in ("response", "responses") if key in content), None):
        yield from _split(inner, place, _named_query(content, query))
    else:
        for key, one in content.items():
            yield from _split(one, place.inside(f"query {key}"), key)


def _named_query(content: Mapping[str, Any], otherwise: str | None) -> str | None:
    named = (content[key] for key in QUERY_KEYS if isinstance(content.get(key), str | int))
    return next((str(query) for query in named), otherwise)


def _hits(response: Response) -> list[Mapping[str, Any]]:
    if "error" in response.content:
        reason = json.dumps(response.content["error"])[:120]
        raise response.place.error(f"the engine answered with an error ({reason}); search again")
    hits = response.content["hits"]
    hits = hits.get("hits") if isinstance(hits, dict) else hits
    if not isinstance(hits, list) or not all(isinstance(hit, dict) and "_id" in hit for hit in hits):
        raise response.place.error("hits.hits is not a list of documents with an _id")
    return hits


def _features(hit: Mapping[str, Any], place: Place, entry: str | None) -> dict[str, float]:
    """Features of the chosen log entries; the same name in two of them is refused."""
    where = place.inside(f"document {hit['_id']}")
    features: dict[str, float] = {}
    for name, pairs in _entries(hit, where, entry):
        for feature, value in pairs:
            if feature in features:
                raise where.error(f"{feature} is logged twice; choose one log entry, as `entry={name!r}`")
            features[feature] = _number(value, where.inside(f"feature {feature}"))
    return features


def _entries(
    hit: Mapping[str, Any], where: Place, entry: str | None
) -> list[tuple[str, list[tuple[str, Any]]]]:
    try:
        logs = hit["fields"]["_ltrlog"]
        entries = [(name, _pairs(log)) for one in logs for name, log in one.items()]
        if not entries:
            raise KeyError
    except (KeyError, TypeError, AttributeError):
        raise where.error(
            'has no fields._ltrlog of {"name": …, "value": …}; add ext.ltr_log to the search'
        ) from None
    chosen = [(name, pairs) for name, pairs in entries if entry in (None, name)]
    if not chosen:
        raise where.error(
            f"has no log entry for `entry={entry!r}`; there are {', '.join(name for name, _ in entries)}"
        )
    return chosen


def _pairs(log: Any) -> list[tuple[str, Any]]:
    """``[{"name": n, "value": v}, …]``, in early releases of the plugin ``{n: v, …}``; not extra logging."""
    pairs = log.items() if isinstance(log, dict) else ((one["name"], one.get("value")) for one in log)
    named = [(name, value) for name, value in pairs if name != EXTRA]
    if not all(isinstance(name, str) and name for name, _ in named):
        raise TypeError
    return named


def _number(value: Any, where: Place) -> float:
    if value is None:
        return math.nan
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    try:
        number = float(number)
    except OverflowError:
        number = value = math.inf
    if not math.isfinite(number):
        raise where.error(f"the value is {shown(value)}; expected a finite number")
    return number
