"""Small tables: costs and signs of features, weights and texts of queries, judgements."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ranksieve._types import PathLike
from ranksieve._util.files import decode_json
from ranksieve.data.costs import FeatureCosts, as_cost, make_costs
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.data.features import as_sign
from ranksieve.errors import DataError, ParameterError, shown, warn_caller
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


class Table(NamedTuple):
    """A CSV or TSV table: its columns, each with the names that a header has for it (none: any name).

    The cells of ``key`` are distinct and not empty. Columns without a header are in this order. Without
    ``quoted_lines``, a cell ends with its line, whatever quotes it holds.
    """

    columns: Mapping[str, tuple[str, ...]]
    key: str = ""
    optional: str = ""
    needs_header: bool = True
    others: bool = False  # whether there may be further columns
    quoted_lines: bool = True

    def places(self, cells: Sequence[str]) -> dict[str, int]:
        """Which cell of a header has which column; empty if this is not the header."""
        header = [cell.strip().lower() for cell in cells]
        names = [(column, name) for column in self.columns for name in reversed(self.columns[column])]
        places = {column: header.index(name) for column, name in names if name in header}
        complete = {column for column, names in self.columns.items() if names} <= {*places, self.optional}
        if self.needs_header:
            return places if complete and (self.others or len(header) == len(places)) else {}
        in_order = all(places.get(column, k) == k for k, column in enumerate(self.columns))
        return places if complete and in_order else {}


COSTS = Table({"feature": ("feature",), "cost": ("cost",), "group": ("group",)}, "feature", "group")
SIGNS = Table({"feature": ("feature",), "sign": ("sign",)}, "feature")
WEIGHT_COLUMNS = {"query": ("query", "qid", "query_id"), "weight": ("weight", "query_weight")}
QUERY_WEIGHTS = Table(WEIGHT_COLUMNS, "query", needs_header=False)
TEXT_COLUMNS = {"query": ("qid", "query_id", "queryid", "id", "topic"), "text": ()}
QUERY_TEXTS = Table(TEXT_COLUMNS, "query", needs_header=False, quoted_lines=False)
COLUMNS = {
    "query": ("query", "qid", "query_id", "queryid", "keywords", "topic"),
    "document": ("doc", "doc_id", "docid", "document", "_id", "docno"),
    "grade": ("grade", "label", "relevance", "rel", "rating", "judgement", "judgment"),
}
JUDGEMENTS = Table(COLUMNS, others=True)


def table_rows(text: str, path: PathLike, table: Table) -> Iterator[tuple[Place, dict[str, str]]]:
    """The cells of each row by column, with the place of the row."""
    name, lines = source_name(path), text_lines(text)
    delimiter = delimiter_of(first_content(lines))
    rows = csv_rows(lines, delimiter, name)
    if not table.quoted_lines:
        rows = ((place, cells_of(line, delimiter)) for place, line in content_lines(text, name))
    place, first = next(rows, ((name, 1), []))
    places = table.places(first)
    if table.needs_header and not places:
        header = ",".join(cell.strip().lower() for cell in first)
        expected = ",".join(name for name in table.columns if name != table.optional)
        expected += f"[,{table.optional}]" if table.optional else ""
        raise DataError(*place, f"the header is {shown(header)}; expected {expected}")
    if not table.needs_header:
        rows = rows if places or not first else chain([(place, first)], rows)
        places = {column: k for k, column in enumerate(table.columns)}
    lines_of: dict[str, int] = {}
    for place, cells in rows:
        if len(cells) <= max(places.values()) or (len(cells) > len(places) and not table.others):
            raise DataError(*place, f"has {len(cells)} cells; expected {','.join(places)}")
        row = {column: cells[k].strip() for column, k in places.items()}
        if table.key:
            what = f"{table.key} {row[table.key]!r}"
            if not row[table.key]:
                raise DataError(*place, f"the {table.key} is empty; name it or drop the line")
            if what in lines_of:
                raise DataError(*place, f"{what} is on line {lines_of[what]} too; list it once")
            lines_of[what] = place[1]
        yield place, row


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
    rows = table_rows(read_text(path), path, SIGNS)
    return {row["feature"]: as_sign(row["sign"], row["feature"], place) for place, row in rows}


def _from_table(text: str, path: PathLike) -> FeatureCosts:
    alone: dict[str, float] = {}
    groups: dict[str, dict[str, Any]] = {}
    places: dict[str, Place] = {}
    for place, row in table_rows(text, path, COSTS):
        feature, group = row["feature"], row.get("group")
        places[feature] = place
        cost = as_cost(row["cost"], feature, place)
        if not group:
            alone[feature] = cost
            continue
        entry = groups.setdefault(group, {"cost": cost, "features": []})
        entry["features"].append(feature)
        if entry["cost"] != cost:
            raise DataError(
                *place,
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


def read_query_weights(path: PathLike) -> dict[str, float]:
    """Read the weights of queries, as ``query_weight=`` of fits takes them: CSV or TSV, ``query,weight``.

    A header is known by its names: ``query``, ``qid`` or ``query_id``, and ``weight`` or ``query_weight``.
    """
    weights: dict[str, float] = {}
    for place, row in table_rows(read_text(path), path, QUERY_WEIGHTS):
        weight = finite_number(row["weight"], place, "weight")
        if weight < 0:
            reason = f"the weight of query {row['query']!r} is {row['weight']}; expected a number ≥ 0"
            raise DataError(*place, reason)
        weights[row["query"]] = weight
    if not weights:
        raise DataError(source_name(path), None, "holds no weights; expected lines query,weight")
    return weights


QUERY = "query"  # the text column that they become


def read_queries(path: PathLike) -> dict[str, str]:
    """Read the texts of queries by id: TSV or CSV of two columns, id and text, with or without a header."""
    texts = {row["query"]: row["text"] for _, row in table_rows(read_text(path), path, QUERY_TEXTS)}
    if not texts:
        raise DataError(source_name(path), None, "holds no query")
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
    column = TextColumn.of([texts.get(query, "") for query in ids])
    data.texts[QUERY] = column[data.queries.of_rows(np.arange(data.n_queries))]
    return data


NumbersOfDocuments = dict[str, dict[str, float]]
"""query → document → number: the grades of judgements, the scores of a run."""

KEYWORDS = re.compile(r"#\s*qid:([^\s:]+):\s*(.+)")
LTR_LINE = re.compile(r"(\S+)\s+qid:(\S+)\s[^#]*#\s*(\S+)")


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


def word_entries(lines: Iterable[tuple[Place, str]], columns: str, kind: str, number: str) -> Iterator[Entry]:
    """Entries of lines of words, of which ``columns`` tells query, document and ``number``."""
    names = columns.split()
    for place, line in lines:
        words = line.split()
        if len(words) != len(names):
            reason = f"has {len(words)} columns; expected the {len(names)} of {kind}: {columns}"
            raise DataError(*place, reason)
        row = dict(zip(names, words, strict=True))
        yield Entry(place, row["query"], row["document"], finite_number(row[number], place, number))


def qrels_entries(text: str, name: str) -> Iterator[Entry]:
    """TREC: ``query iteration document grade``."""
    return word_entries(_judged_lines(text, name), "query 0 document grade", "TREC qrels", "grade")


def _ltr_entries(text: str, name: str) -> Iterator[Entry]:
    for place, line in _judged_lines(text, name):
        match = LTR_LINE.match(line)
        if match is None:
            raise DataError(*place, f"{line[:40]!r} is not a judgement; expected: 4 qid:1 # 7555 Rambo")
        yield Entry(place, match[2], match[3], finite_number(match[1], place, "grade"))


def _csv_entries(text: str, name: str) -> Iterator[Entry]:
    lines = ("\n" if line.lstrip().startswith("#") else line for line in text_lines(text))
    for place, row in table_rows("".join(lines), name, JUDGEMENTS):
        yield Entry(place, row["query"], row["document"], finite_number(row["grade"], place, "grade"))


def _judged_lines(text: str, name: str) -> Iterator[tuple[Place, str]]:
    return ((place, line) for place, line in content_lines(text, name) if not line.startswith("#"))


def _is_judgements_header(line: str) -> bool:
    return bool(JUDGEMENTS.places(cells_of(line, delimiter_of(line))))


JUDGEMENT_FORMATS = (
    JudgementFormat("4 qid:1 # 7555", lambda line: bool(re.match(r"\S+\s+qid:", line)), _ltr_entries),
    JudgementFormat("query,doc,grade", _is_judgements_header, _csv_entries),
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
