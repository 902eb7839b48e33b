"""Feature logs of search engines, joined with judgements."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import FloatArray, PathLike
from ranksieve._util.files import decode_json
from ranksieve.data.dataset import Dataset
from ranksieve.data.queries import ids_from_text
from ranksieve.errors import DataError, ParameterError, shown, warn_caller
from ranksieve.io.tables import Judgements, read_judgements
from ranksieve.io.text_files import content_lines, first_bytes, in_file, read_text, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

QUERY_KEYS = ("qid", "query_id", "query", "keywords")
EXTRA = "extra_logging"
NUMBERS = (float, int)
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
    """A search response, the query it answers (if the log says so) and its place in the file."""

    place: Place
    query: str | None
    content: Mapping[str, Any]


class Hit(NamedTuple):
    """A document of a query as the engine computed its features; NaN is a feature without a value."""

    query: str
    document: str
    features: tuple[str, ...]
    values: FloatArray


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
        with in_file(name):
            hits = list(_all_hits(read_text(path), judged, entry))
    except RecursionError:
        raise DataError(name, None, "damaged JSON (nested too deeply); fetch it again") from None
    grades = np.array([_grade(hit, judged, UNJUDGED[unjudged]) for hit in hits])
    kept = np.flatnonzero(~np.isnan(grades))
    if not len(kept):
        raise DataError(
            name, None, "no logged document has a judgement; are query and document ids the same?"
        )
    _warn_of_gaps(name, hits, len(kept), judged)
    with in_file(name):
        return fill_missing(_dataset([hits[k] for k in kept], grades[kept], name), missing)


def _grade(hit: Hit, judged: Judgements, otherwise: float) -> float:
    """The grade of a document, NaN if it is left out."""
    grades = judged.grades.get(hit.query)
    return math.nan if grades is None else grades.get(hit.document, otherwise)


def _warn_of_gaps(name: str, hits: list[Hit], n_kept: int, judged: Judgements) -> None:
    seen: dict[str, set[str]] = {}
    for hit in hits:
        seen.setdefault(hit.query, set()).add(hit.document)
    nothing: set[str] = set()
    gaps = {
        "logged documents have no judgement and were left out": len(hits) - n_kept,
        "judged documents are not in the log": sum(
            len(grades.keys() - seen.get(query, nothing)) for query, grades in judged.grades.items()
        ),
    }
    parts = [f"{count} {what}" for what, count in gaps.items() if count]
    if parts:
        warn_caller(f"{name}: {'; '.join(parts)}")


def _dataset(hits: list[Hit], grades: FloatArray, name: str) -> Dataset:
    """The documents with the features that any of them logs."""
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, hit in enumerate(hits):
        rows_of.setdefault(hit.features, []).append(row)
    names = list(dict.fromkeys(feature for features in rows_of for feature in features))
    if not names:
        raise DataError(None, None, "no hit logs a feature; is the feature set empty?")
    place = {feature: column for column, feature in enumerate(names)}
    X = np.full((len(hits), len(names)), math.nan)
    for features, rows in rows_of.items():
        if features:
            X[np.ix_(rows, [place[feature] for feature in features])] = [hits[row].values for row in rows]
    ids = ids_from_text([hit.query for hit in hits])
    return Dataset(X, grades, ids, names, [hit.document for hit in hits], source=name)


def _all_hits(text: str, judged: Judgements, entry: str | None) -> Iterator[Hit]:
    seen: set[tuple[str, str]] = set()
    for response in _responses(text):
        query = _query(response, judged)
        for hit in _hits(response):
            document, where = str(hit["_id"]), response.place.inside(f"document {hit['_id']}")
            if (query, document) in seen:
                raise response.place.error(f"document {document} of query {query} is logged twice")
            seen.add((query, document))
            yield Hit(query, document, *_features(hit, where, entry))


def _query(response: Response, judged: Judgements) -> str:
    if response.query is not None:
        return judged.query(response.query) or response.query
    if len(judged.grades) == 1:
        return next(iter(judged.grades))
    raise response.place.error(
        f"the response does not name its query, one of {len(judged.grades)} judged ones; "
        'add "qid": … beside "hits"'
    )


def _responses(text: str) -> Iterator[Response]:
    """The responses of the one JSON value of a file, or of one per line."""
    try:
        yield from _split(decode_json(text), Place(), None)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise DataError(None, error.lineno, f"damaged JSON ({error.msg}); fetch it again") from None
        for (_, number), line in content_lines(text, ""):
            place = Place(number)
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


def _features(hit: Mapping[str, Any], where: Place, entry: str | None) -> tuple[tuple[str, ...], FloatArray]:
    """Names and values of the chosen log entries; the same name in two of them is refused."""
    entries = _entries(hit, where, entry)
    pairs = [pair for _, some in entries for pair in some]
    names, values = tuple(name for name, _ in pairs), [value for _, value in pairs]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        last = next(label for label, some in reversed(entries) if any(name == twice for name, _ in some))
        raise where.error(f"{twice} is logged twice; choose one log entry, as `entry={last!r}`")
    for name, value in pairs:
        if value is not None and not (type(value) in NUMBERS and math.isfinite(value)):
            reason = f"the value is {shown(value)}; expected a finite number"
            raise where.inside(f"feature {name}").error(reason)
    return names, np.array(values, dtype=np.float64)


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
