"""Read feature logs of search engines and join them with judgements."""

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
from ranksieve.errors import DataError, ParameterError, short_repr, warn_caller
from ranksieve.io.tables import Judgements, read_judgements
from ranksieve.io.text_files import content_lines, first_bytes, in_file, read_text, source_name
from ranksieve.prepare.missing import check_policy, fill_missing

QUERY_KEYS = ("qid", "query_id", "query", "keywords")
EXTRA_LOGGING = "extra_logging"
MODEL_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"ranksieve-(linear|boosted)-model"')
UNJUDGED_GRADES: dict[str, float] = {"drop": math.nan, "zero": 0.0}


class LogPosition(NamedTuple):
    """A line (None if the file is one JSON value) and the path inside it, outermost part first."""

    line: int | None = None
    parts: tuple[str, ...] = ()

    def inside(self, part: str) -> LogPosition:
        return LogPosition(self.line, (*self.parts, part))

    def error(self, reason: str) -> DataError:
        return DataError(None, self.line, f"{', '.join(self.parts)}: {reason}" if self.parts else reason)


class Response(NamedTuple):
    """A search response, its query (None if the log does not name it) and its position in the file."""

    position: LogPosition
    query: str | None
    content: Mapping[str, Any]


class Hit(NamedTuple):
    """A document of a query with its logged features; NaN if a feature has no value."""

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
        Search responses whose hits hold ``fields._ltrlog``: JSON or JSON lines, one response per query. The
        query's id or keywords are next to ``hits`` as ``qid`` or ``query``, or in a wrapper
        ``{"qid": …, "response": {…}}``, or the keys of one object ``{query: response, …}``. Lists of
        responses and the ``responses`` of a multi-search are read too. If only one query is judged, its id
        may be omitted.
    judgements : path or Judgements
        Grades, see :func:`read_judgements`.
    entry : str, optional
        Log entry to read, such as ``log_entry1``; default: the features of all entries.
    unjudged : {"drop", "zero"}
        Treatment of documents without a judgement: leave out, or grade 0. Queries without judgements are
        left out.
    missing : {"keep", "error", "zero", "query_min", "column_mean"}
        Treatment of features without a value (the feature's query did not match the document), see
        :func:`fill_missing`.
    """
    check_policy(missing)
    name = source_name(path)
    if unjudged not in UNJUDGED_GRADES:
        raise ParameterError("unjudged", unjudged, f"must be one of {', '.join(UNJUDGED_GRADES)}")
    if MODEL_START.match(first_bytes(path, 100)):
        reason = (
            "is a model, not a data set; give LETOR text, CSV, TSV, parquet or a folder written by convert "
            f"(to start a fit from this model, use --from {name})"
        )
        raise DataError(name, None, reason)
    if judgements is None:
        reason = (
            "is a feature log, which has no grades; pass `judgements` (on the command line: ranksieve "
            f"convert {name} train.parquet --judgements FILE)"
        )
        raise DataError(name, None, reason)
    judged = judgements if isinstance(judgements, Judgements) else read_judgements(judgements)
    try:
        with in_file(name):
            hits = list(_all_hits(read_text(path), judged, entry))
    except RecursionError:
        raise DataError(name, None, "damaged JSON (nested too deeply); fetch it again") from None
    grades = np.array([_grade(hit, judged, UNJUDGED_GRADES[unjudged]) for hit in hits])
    judged_rows = np.flatnonzero(~np.isnan(grades))
    if not len(judged_rows):
        raise DataError(
            name,
            None,
            "no logged document has a judgement; check that both files use the same query and document ids",
        )
    _warn_about_differences(name, hits, len(judged_rows), judged)
    with in_file(name):
        data = _dataset([hits[row] for row in judged_rows], grades[judged_rows], name)
        return fill_missing(data, missing)


def _grade(hit: Hit, judged: Judgements, default: float) -> float:
    """The grade of a document, NaN if it is left out."""
    grades = judged.grades.get(hit.query)
    return math.nan if grades is None else grades.get(hit.document, default)


def _warn_about_differences(name: str, hits: list[Hit], n_judged: int, judged: Judgements) -> None:
    seen: dict[str, set[str]] = {}
    for hit in hits:
        seen.setdefault(hit.query, set()).add(hit.document)
    nothing: set[str] = set()
    counts = {
        "logged documents have no judgement and were left out": len(hits) - n_judged,
        "judged documents are not in the log": sum(
            len(grades.keys() - seen.get(query, nothing)) for query, grades in judged.grades.items()
        ),
    }
    parts = [f"{count} {what}" for what, count in counts.items() if count]
    if parts:
        warn_caller(f"{name}: {'; '.join(parts)}")


def _dataset(hits: list[Hit], grades: FloatArray, name: str) -> Dataset:
    """The documents with all features that any of them has; NaN where one is not logged."""
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, hit in enumerate(hits):
        rows_of.setdefault(hit.features, []).append(row)
    names = list(dict.fromkeys(feature for features in rows_of for feature in features))
    if not names:
        raise DataError(None, None, "no hit has a logged feature; check that the feature set is not empty")
    column_of = {feature: column for column, feature in enumerate(names)}
    X = np.full((len(hits), len(names)), math.nan)
    for features, rows in rows_of.items():
        if features:
            X[np.ix_(rows, [column_of[feature] for feature in features])] = [hits[row].values for row in rows]
    ids = ids_from_text([hit.query for hit in hits])
    return Dataset(X, grades, ids, names, [hit.document for hit in hits], source=name)


def _all_hits(text: str, judged: Judgements, entry: str | None) -> Iterator[Hit]:
    seen: set[tuple[str, str]] = set()
    responses = (one for at, content in json_values(text) for one in _find_responses(content, at, None))
    for response in responses:
        query = _query_id(response, judged)
        for hit in _hits(response):
            document, hit_position = str(hit["_id"]), response.position.inside(f"document {hit['_id']}")
            if (query, document) in seen:
                raise response.position.error(f"document {document} of query {query} is logged twice")
            seen.add((query, document))
            yield Hit(query, document, *_features(hit, hit_position, entry))


def _query_id(response: Response, judged: Judgements) -> str:
    if response.query is not None:
        return judged.query(response.query) or response.query
    if len(judged.grades) == 1:
        return next(iter(judged.grades))
    raise response.position.error(
        f"the response does not name its query, and {len(judged.grades)} queries are judged; "
        'add "qid": … next to "hits"'
    )


def json_values(text: str) -> Iterator[tuple[LogPosition, Any]]:
    """The value of a file that is one JSON value, or those of its lines, with their positions."""
    try:
        content = decode_json(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise DataError(None, error.lineno, f"damaged JSON ({error.msg}); fetch it again") from None
    else:
        yield LogPosition(), content
        return
    for (_, number), line in content_lines(text, ""):
        position = LogPosition(number)
        try:
            content = decode_json(line)
        except json.JSONDecodeError as fault:
            raise position.error(f"damaged JSON ({fault.msg}); expected one value per line") from None
        yield position, content


def _find_responses(content: Any, position: LogPosition, query: str | None) -> Iterator[Response]:
    """Responses inside lists, multi-searches, wrappers and objects keyed by query."""
    if isinstance(content, list):
        for number, one in enumerate(content, start=1):
            yield from _find_responses(one, position.inside(f"response {number}"), query)
    elif not isinstance(content, dict):
        raise position.error(f"{str(content)[:40]!r} is not a search response; expected an object with hits")
    elif "hits" in content or "error" in content:
        yield Response(position, _query_of(content, query), content)
    elif inner := next((content[key] for key in ("response", "responses") if key in content), None):
        yield from _find_responses(inner, position, _query_of(content, query))
    else:
        for key, one in content.items():
            yield from _find_responses(one, position.inside(f"query {key}"), key)


def _query_of(content: Mapping[str, Any], default: str | None) -> str | None:
    queries = (content[key] for key in QUERY_KEYS if isinstance(content.get(key), str | int))
    return next((str(query) for query in queries), default)


def _hits(response: Response) -> list[Mapping[str, Any]]:
    if "error" in response.content:
        reason = json.dumps(response.content["error"])[:120]
        raise response.position.error(f"the search engine returned an error ({reason}); run the search again")
    hits = response.content["hits"]
    hits = hits.get("hits") if isinstance(hits, dict) else hits
    if not isinstance(hits, list) or not all(isinstance(hit, dict) and "_id" in hit for hit in hits):
        raise response.position.error("hits.hits is not a list of documents with an _id")
    return hits


def _features(
    hit: Mapping[str, Any], hit_position: LogPosition, entry: str | None
) -> tuple[tuple[str, ...], FloatArray]:
    """Names and values of the features in the chosen log entries; a repeated name is an error."""
    entries = _entries(hit, hit_position, entry)
    pairs = [pair for _, logged in entries for pair in logged]
    names, values = tuple(name for name, _ in pairs), [value for _, value in pairs]
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        last = next(label for label, logged in reversed(entries) if any(name == twice for name, _ in logged))
        raise hit_position.error(f"{twice} is logged twice; choose one log entry, such as `entry={last!r}`")
    for name, value in pairs:
        if value is not None and not (type(value) in (float, int) and math.isfinite(value)):
            reason = f"the value is {short_repr(value)}; expected a finite number"
            raise hit_position.inside(f"feature {name}").error(reason)
    return names, np.array(values, dtype=np.float64)


def _entries(
    hit: Mapping[str, Any], hit_position: LogPosition, entry: str | None
) -> list[tuple[str, list[tuple[str, Any]]]]:
    try:
        logs = hit["fields"]["_ltrlog"]
        entries = [(name, _pairs(log)) for one in logs for name, log in one.items()]
        if not entries:
            raise KeyError
    except (KeyError, TypeError, AttributeError):
        raise hit_position.error(
            'has no fields._ltrlog of {"name": …, "value": …}; add ext.ltr_log to the search'
        ) from None
    chosen = [(name, pairs) for name, pairs in entries if entry in (None, name)]
    if not chosen:
        raise hit_position.error(
            f"has no log entry `entry={entry!r}`; its entries are {', '.join(name for name, _ in entries)}"
        )
    return chosen


def _pairs(log: Any) -> list[tuple[str, Any]]:
    """Pairs of ``[{"name": n, "value": v}, …]`` or, in early releases of the plugin, of ``{n: v, …}``."""
    pairs = log.items() if isinstance(log, dict) else ((one["name"], one.get("value")) for one in log)
    named = [(name, value) for name, value in pairs if name != EXTRA_LOGGING]
    if not all(isinstance(name, str) and name for name, _ in named):
        raise TypeError
    return named
