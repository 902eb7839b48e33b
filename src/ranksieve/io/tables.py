"""Small tables: costs and signs of features, weights and texts of queries, judgements."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import PathLike
from ranksieve._util.files import decode_json
from ranksieve._util.messages import warn_caller
from ranksieve.data.costs import FeatureCosts, as_cost, make_costs
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import as_sign
from ranksieve.errors import DataError, ParameterError, shown
from ranksieve.io.folder_writer import text_column
from ranksieve.io.text_files import (
    Place,
    cells_of,
    content_lines,
    csv_rows,
    delimiter_of,
    finite_number,
    first_content,
    read_text,
    source_name,
    text_lines,
)

JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def read_costs(path: PathLike, default: float | None = None) -> FeatureCosts:
    """Read what features cost, in any unit.

    CSV or TSV with the header ``feature,cost`` or ``feature,cost,group``: the features of a group share one
    cost, which is on each of their lines and is paid once. Or JSON, ``{"feature": cost}`` or
    ``{"features": {"feature": cost}, "groups": {"name": {"cost": cost, "features": ["feature"]}}}``. The
    feature ``*`` prices all that are not listed, as ``default`` does; without either, a feature of the data
    that is not listed is an error. A shell pattern such as ``bm25_*`` prices each feature that it matches and
    that has no line of its own; with a group, all of them are of the group.
    """
    text = read_text(path)
    costs = _from_json(text, path) if text.lstrip().startswith("{") else _from_table(text, path)
    return costs if default is None else replace(costs, default=default)


def as_costs(given: Any, names: Sequence[str]) -> FeatureCosts:
    """Costs from a file, a mapping, one number per column, or as they are; of features, not of patterns."""
    if isinstance(given, FeatureCosts):
        return given.resolved(names)
    if isinstance(given, str | os.PathLike):
        return read_costs(given).resolved(names)
    if isinstance(given, Mapping):
        return make_costs(given).resolved(names)
    if not isinstance(given, Collection):
        raise ParameterError("feature_costs", given, "must be a file, a mapping or one number per feature")
    if len(given) != len(names):
        raise ParameterError("feature_costs", given, f"has {len(given)} numbers for {len(names)} features")
    return make_costs(dict(zip(names, given, strict=True)))


def read_signs(path: PathLike) -> dict[str, float]:
    """Read the signs of features: CSV or TSV with the header ``feature,sign``, the signs +, - or 0.

    A feature may be a shell pattern such as ``bm25_*``.
    """
    rows = _lines_by_feature(read_text(path), path, ("sign",))
    return {feature: as_sign(row.cells["sign"], feature, row.place) for feature, row in rows.items()}


def _from_table(text: str, path: PathLike) -> FeatureCosts:
    rows = _lines_by_feature(text, path, ("cost",), ("group",))
    alone: dict[str, float] = {}
    groups: dict[str, dict[str, Any]] = {}
    places = {feature: row.place for feature, row in rows.items()}
    for feature, row in rows.items():
        cost, group = as_cost(row.cells["cost"], feature, row.place), row.cells.get("group")
        if not group:
            alone[feature] = cost
            continue
        entry = groups.setdefault(group, {"cost": cost, "features": []})
        entry["features"].append(feature)
        if entry["cost"] != cost:
            raise DataError(
                *row.place,
                f"group {group!r} costs {cost:g} here but {entry['cost']:g} before; "
                "give the same cost on each of its lines",
            )
    of_groups = {group: places[entry["features"][0]] for group, entry in groups.items()}
    return make_costs({"features": alone, "groups": groups}, (str(path), None), of_groups | places)


def _from_json(text: str, path: PathLike) -> FeatureCosts:
    try:
        content = decode_json(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise DataError(path, error.lineno, f"damaged JSON ({error.msg})") from None
    except DataError as error:
        raise error.at(path) from None
    places: dict[str, Place] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        for written in JSON_STRING.findall(line):
            places.setdefault(json.loads(written), (str(path), number))
    return make_costs(content, (str(path), None), places)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise DataError(None, None, f"{name!r} occurs twice; list it once")
    return dict(pairs)


class FeatureLine(NamedTuple):
    """One line of a table: its place and its cells by column name."""

    place: Place
    cells: dict[str, str]


def _lines_by_feature(
    text: str, path: PathLike, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, FeatureLine]:
    """The lines by feature; the header has ``feature``, the ``required`` and perhaps ``optional`` columns."""
    rows: dict[str, FeatureLine] = {}
    for row in _lines(text, path, ("feature", *required), optional):
        feature = row.cells["feature"]
        if not feature:
            raise DataError(*row.place, "the feature has no name; name it or drop the line")
        if feature in rows:
            raise DataError(*row.place, f"{feature!r} is on line {rows[feature].place[1]} too; list it once")
        rows[feature] = row
    return rows


def _lines(
    text: str, path: PathLike, required: Sequence[str], optional: Sequence[str]
) -> Iterator[FeatureLine]:
    lines = text_lines(text)  # a quoted name may go over several
    rows = csv_rows(lines, delimiter_of(first_content(lines)), source_name(path))
    first, cells = next(rows, ((source_name(path), 1), []))
    header = [name.strip().lower() for name in cells]
    if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) < len(header):
        expected = ",".join(required) + "".join(f"[,{name}]" for name in optional)
        raise DataError(*first, f"the header is {shown(','.join(header))}; expected {expected}")
    for place, cells in rows:
        if len(cells) != len(header):
            raise DataError(*place, f"has {len(cells)} cells; expected {len(header)}: {','.join(header)}")
        yield FeatureLine(place, {name: cell.strip() for name, cell in zip(header, cells, strict=True)})


HEADER = (("query", "qid", "query_id"), ("weight", "query_weight"))


def read_query_weights(path: PathLike) -> dict[str, float]:
    """Read the weights of queries, as ``query_weight=`` of fits takes them: CSV or TSV, ``query,weight``.

    A header is known by its names: ``query``, ``qid`` or ``query_id``, and ``weight`` or ``query_weight``.
    """
    lines, name = text_lines(read_text(path)), source_name(path)
    weights: dict[str, float] = {}
    lines_of: dict[str, int] = {}
    delimiter = "\t" if "\t" in first_content(lines) else ","
    for row, (place, cells) in enumerate(csv_rows(lines, delimiter, name)):
        if len(cells) != 2:
            raise DataError(*place, f"has {len(cells)} cells; expected two: query,weight")
        query, weight = (cell.strip() for cell in cells)
        if row == 0 and query.lower() in HEADER[0] and weight.lower() in HEADER[1]:
            continue
        if not query:
            raise DataError(*place, "the query has no id; name it or drop the line")
        if query in lines_of:
            raise DataError(*place, f"query {query!r} is on line {lines_of[query]} too; list it once")
        weights[query], lines_of[query] = finite_number(weight, place, "weight"), place[1]
        if weights[query] < 0:
            raise DataError(*place, f"the weight of query {query!r} is {weight}; expected a number ≥ 0")
    if not weights:
        raise DataError(name, None, "holds no weights; expected lines query,weight")
    return weights


QUERY = "query"  # the text column that they become
IDS = ("qid", "query_id", "queryid", "id", "topic")  # what the first column of a header may be called


def read_queries(path: PathLike) -> dict[str, str]:
    """Read the texts of queries by id: TSV or CSV of two columns, id and text, with or without a header."""
    name, texts = source_name(path), dict[str, str]()
    lines = list(content_lines(read_text(path), name))
    delimiter = delimiter_of(lines[0][1]) if lines else ""
    for place, line in lines:
        query, *text = cells_of(line, delimiter)
        if len(text) != 1:
            raise DataError(*place, f"has {1 + len(text)} cells; expected two, a query id and its text")
        if not texts and place == lines[0][0] and query.strip().lower() in IDS:
            continue
        if query.strip() in texts:
            raise DataError(*place, f"query {query.strip()} has a second text; keep one of them")
        texts[query.strip()] = text[0].strip()
    if not texts:
        raise DataError(name, None, "holds no query")
    return texts


def with_query_texts(data: Dataset, queries: PathLike | Mapping[str, str]) -> Dataset:
    """The data with a text column ``query``: the text of each row's query, found by the query's id.

    Parameters
    ----------
    data : Dataset
        Its ``texts`` are added to.
    queries : path or mapping
        TSV or CSV with query id and text, with or without a header; or texts by id.
    """
    given = isinstance(queries, Mapping)
    texts = queries if isinstance(queries, Mapping) else read_queries(queries)
    name = "`queries`" if given else source_name(queries)  # type: ignore[arg-type]
    ids = [str(query) for query in data.query_ids.tolist()]
    lacking = [query for query in ids if query not in texts]
    if len(lacking) == len(ids):
        reason = f"has none of the {len(ids)} queries of {data.source or 'the data'}, such as {ids[0]}"
        raise ParameterError("queries", queries, reason) if given else DataError(name, None, reason)
    if lacking:
        warn_caller(f"{name}: has no text for {len(lacking)} of {len(ids)} queries, such as {lacking[0]}")
    column = text_column([texts.get(query, "") for query in ids])
    data.texts[QUERY] = column[data.queries.of_rows(np.arange(data.n_queries))]
    return data


NumbersOfDocuments = dict[str, dict[str, float]]
"""query → document → number: the grades of judgements, the scores of a run."""

KEYWORDS = re.compile(r"#\s*qid:([^\s:]+):\s*(.+)")
LTR_LINE = re.compile(r"(\S+)\s+qid:(\S+)\s[^#]*#\s*(\S+)")
COLUMNS = {
    "query": ("query", "qid", "query_id", "queryid", "keywords", "topic"),
    "document": ("doc", "doc_id", "docid", "document", "_id", "docno"),
    "grade": ("grade", "label", "relevance", "rel", "rating", "judgement", "judgment"),
}


@dataclass(frozen=True)
class Judgements:
    """``grades[query][document]``, and the ids of queries that the file gives ``keywords`` for."""

    grades: Mapping[str, Mapping[str, float]]
    keywords: Mapping[str, str] = field(default_factory=dict)

    def query(self, name: str) -> str | None:
        """The id of a query named by its id or its keywords; None if it has no judgement."""
        return name if name in self.grades else self.keywords.get(name)


class Entry(NamedTuple):
    """The number of a document for a query, and its place in the file."""

    place: Place
    query: str
    document: str
    value: float


class JudgementFormat(NamedTuple):
    """How a kind of file is recognised by its first line of content, and read."""

    example: str
    recognises: Callable[[str], bool]
    entries: Callable[[str, str], Iterator[Entry]]


def read_judgements(path: PathLike) -> Judgements:
    """Read judgements in any of three forms, told apart by the first line of content.

    ``4 qid:1 # 7555 Rambo`` (the Elasticsearch LTR demo; lines ``# qid:1: rambo`` give the keywords),
    ``1 0 7555 4`` (TREC qrels), or CSV or TSV whose header names query, document and grade, such as
    ``query,doc,grade`` or ``grade,keywords,docId``.
    """
    text, name = read_text(path), source_name(path)
    kind = _recognise(text, name)
    keywords = (KEYWORDS.match(line) for _, line in content_lines(text, name))
    named = {match[2].strip(): match[1] for match in keywords if match}
    return Judgements(gathered(kind.entries(text, name), name, "judgement"), named)


def gathered(entries: Iterator[Entry], name: str, what: str) -> NumbersOfDocuments:
    """The numbers of all entries; a second one for a document of a query is refused, an empty file too."""
    numbers: NumbersOfDocuments = {}
    for place, query, document, value in entries:
        documents = numbers.setdefault(query, {})
        if document in documents:
            raise DataError(*place, f"query {query} has a second {what} of {document}; keep one of them")
        documents[document] = value
    if not numbers:
        raise DataError(name, None, f"holds no {what}")
    return numbers


def qrels_entries(text: str, name: str) -> Iterator[Entry]:
    """TREC: ``query iteration document grade``."""
    for place, line in _judged_lines(text, name):
        words = line.split()
        if len(words) != 4:
            raise DataError(
                *place, f"has {len(words)} columns; expected the four of TREC qrels: query 0 document grade"
            )
        yield Entry(place, words[0], words[2], finite_number(words[3], place, "grade"))


def _ltr_entries(text: str, name: str) -> Iterator[Entry]:
    for place, line in _judged_lines(text, name):
        match = LTR_LINE.match(line)
        if match is None:
            raise DataError(*place, f"{line[:40]!r} is not a judgement; expected: 4 qid:1 # 7555 Rambo")
        yield Entry(place, match[2], match[3], finite_number(match[1], place, "grade"))


def _csv_entries(text: str, name: str) -> Iterator[Entry]:
    columns, delimiter = _columns(header := next(_judged_lines(text, name))[1]), delimiter_of(header)
    lines = ("\n" if line.lstrip().startswith("#") else line for line in text_lines(text))
    rows = csv_rows(lines, delimiter, name)
    next(rows)  # the header
    for place, row in rows:
        if len(row) <= max(columns.values()):
            raise DataError(*place, f"has {len(row)} columns, fewer than the header; complete the row")
        query, document, grade = (row[columns[name]].strip() for name in COLUMNS)
        yield Entry(place, query, document, finite_number(grade, place, "grade"))


def _judged_lines(text: str, name: str) -> Iterator[tuple[Place, str]]:
    return ((place, line) for place, line in content_lines(text, name) if not line.startswith("#"))


def _columns(header: str) -> dict[str, int]:
    return _columns_of(cells_of(header, delimiter_of(header)))


def _columns_of(cells: list[str]) -> dict[str, int]:
    """Which cell of a header holds which of the three columns."""
    names = [cell.strip().lower() for cell in cells]
    places = {column: [names.index(n) for n in known if n in names] for column, known in COLUMNS.items()}
    return {column: found[0] for column, found in places.items() if found}


JUDGEMENT_FORMATS = (
    JudgementFormat("4 qid:1 # 7555", lambda line: bool(re.match(r"\S+\s+qid:", line)), _ltr_entries),
    JudgementFormat("query,doc,grade", lambda line: len(_columns(line)) == len(COLUMNS), _csv_entries),
    JudgementFormat("1 0 7555 4", lambda line: len(line.split()) == 4, qrels_entries),
)


def _recognise(text: str, name: str) -> JudgementFormat:
    place, line = next(_judged_lines(text, name), ((name, 1), ""))
    if not line:
        raise DataError(name, None, "holds no judgement")
    for kind in JUDGEMENT_FORMATS:
        if kind.recognises(line):
            return kind
    examples = " or ".join(repr(kind.example) for kind in JUDGEMENT_FORMATS)
    raise DataError(*place, f"{line[:40]!r} is not a judgement; expected {examples}")
