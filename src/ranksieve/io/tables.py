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
from ranksieve.errors import DataError, ParameterError, short_repr, warn_caller
from ranksieve.io.text_files import (
    LinePosition,
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


class TableFormat(NamedTuple):
    """The format of a CSV or TSV table: its columns, each with the names accepted in a header (none: any).

    The cells of ``key`` are distinct and not empty. Without a header, the columns are in this order. Without
    ``quoted_lines``, a line break always ends a cell, even inside quotes.
    """

    columns: Mapping[str, tuple[str, ...]]
    key: str = ""
    optional: str = ""
    needs_header: bool = True
    others: bool = False  # whether further columns are allowed
    quoted_lines: bool = True

    def column_indices(self, cells: Sequence[str]) -> dict[str, int]:
        """The index of each column in a header; empty if the cells are not a header."""
        header = [cell.strip().lower() for cell in cells]
        names = [(column, name) for column in self.columns for name in reversed(self.columns[column])]
        indices = {column: header.index(name) for column, name in names if name in header}
        complete = {column for column, names in self.columns.items() if names} <= {*indices, self.optional}
        if self.needs_header:
            return indices if complete and (self.others or len(header) == len(indices)) else {}
        in_order = all(indices.get(column, k) == k for k, column in enumerate(self.columns))
        return indices if complete and in_order else {}


COST_TABLE = TableFormat(
    {"feature": ("feature",), "cost": ("cost",), "group": ("group",)}, "feature", "group"
)
SIGN_TABLE = TableFormat({"feature": ("feature",), "sign": ("sign",)}, "feature")
QUERY_WEIGHT_COLUMNS = {"query": ("query", "qid", "query_id"), "weight": ("weight", "query_weight")}
QUERY_WEIGHT_TABLE = TableFormat(QUERY_WEIGHT_COLUMNS, "query", needs_header=False)
QUERY_TEXT_COLUMNS = {"query": ("qid", "query_id", "queryid", "id", "topic"), "text": ()}
QUERY_TEXT_TABLE = TableFormat(QUERY_TEXT_COLUMNS, "query", needs_header=False, quoted_lines=False)
JUDGEMENT_COLUMNS = {
    "query": ("query", "qid", "query_id", "queryid", "keywords", "topic"),
    "document": ("doc", "doc_id", "docid", "document", "_id", "docno"),
    "grade": ("grade", "label", "relevance", "rel", "rating", "judgement", "judgment"),
}
JUDGEMENT_TABLE = TableFormat(JUDGEMENT_COLUMNS, others=True)


def table_rows(
    text: str, path: PathLike, table: TableFormat
) -> Iterator[tuple[LinePosition, dict[str, str]]]:
    """The cells of each row by column, with the position of the row."""
    name, lines = source_name(path), text_lines(text)
    delimiter = delimiter_of(first_content(lines))
    rows = csv_rows(lines, delimiter, name)
    if not table.quoted_lines:
        rows = ((position, cells_of(line, delimiter)) for position, line in content_lines(text, name))
    position, first = next(rows, ((name, 1), []))
    indices = table.column_indices(first)
    if table.needs_header and not indices:
        header = ",".join(cell.strip().lower() for cell in first)
        expected = ",".join(name for name in table.columns if name != table.optional)
        expected += f"[,{table.optional}]" if table.optional else ""
        raise DataError(*position, f"the header is {short_repr(header)}; expected {expected}")
    if not table.needs_header:
        rows = rows if indices or not first else chain([(position, first)], rows)
        indices = {column: k for k, column in enumerate(table.columns)}
    lines_of: dict[str, int] = {}
    for position, cells in rows:
        if len(cells) <= max(indices.values()) or (len(cells) > len(indices) and not table.others):
            raise DataError(*position, f"has {len(cells)} cells; expected {','.join(indices)}")
        row = {column: cells[k].strip() for column, k in indices.items()}
        if table.key:
            what = f"{table.key} {row[table.key]!r}"
            if not row[table.key]:
                raise DataError(*position, f"the {table.key} is empty; name it or drop the line")
            if what in lines_of:
                raise DataError(*position, f"{what} is on line {lines_of[what]} as well; list it once")
            lines_of[what] = position[1]
        yield position, row


def read_costs(path: PathLike, default: float | None = None) -> FeatureCosts:
    """Read feature costs, in any unit.

    CSV or TSV with the header ``feature,cost`` or ``feature,cost,group``: the features of a group share one
    cost, which is repeated on each of their lines and paid once. Or JSON, ``{"feature": cost}`` or
    ``{"features": {"feature": cost}, "groups": {"name": {"cost": cost, "features": ["feature"]}}}``. The
    feature ``*`` sets the cost of all features that are not listed, as ``default`` does; without either, a
    feature of the data that is not listed is an error. A shell pattern such as ``bm25_*`` sets the cost of
    each matching feature without a line of its own; in a group, all of them belong to the group.
    """
    text = read_text(path)
    costs = _from_json(text, path) if text.lstrip().startswith("{") else _from_table(text, path)
    return costs if default is None else replace(costs, default=default)


def as_costs(costs: Any, names: Sequence[str]) -> FeatureCosts:
    """Feature costs from a file, a mapping, one number per feature or FeatureCosts; expands patterns."""
    if isinstance(costs, FeatureCosts):
        return costs.resolved(names)
    if isinstance(costs, str | os.PathLike):
        return read_costs(costs).resolved(names)
    if isinstance(costs, Mapping):
        return make_costs(costs).resolved(names)
    if not isinstance(costs, Collection):
        raise ParameterError("feature_costs", costs, "must be a file, a mapping or one number per feature")
    if len(costs) != len(names):
        raise ParameterError("feature_costs", costs, f"has {len(costs)} numbers for {len(names)} features")
    return make_costs(dict(zip(names, costs, strict=True)))


def read_signs(path: PathLike) -> dict[str, float]:
    """Read feature signs: CSV or TSV with the header ``feature,sign``; a sign is +, - or 0.

    A feature may be a shell pattern such as ``bm25_*``.
    """
    rows = table_rows(read_text(path), path, SIGN_TABLE)
    return {row["feature"]: as_sign(row["sign"], row["feature"], position) for position, row in rows}


def _from_table(text: str, path: PathLike) -> FeatureCosts:
    single: dict[str, float] = {}
    groups: dict[str, dict[str, Any]] = {}
    positions: dict[str, LinePosition] = {}
    for position, row in table_rows(text, path, COST_TABLE):
        feature, group = row["feature"], row.get("group")
        positions[feature] = position
        cost = as_cost(row["cost"], feature, position)
        if not group:
            single[feature] = cost
            continue
        entry = groups.setdefault(group, {"cost": cost, "features": []})
        entry["features"].append(feature)
        if entry["cost"] != cost:
            raise DataError(
                *position,
                f"group {group!r} costs {cost:g} here but {entry['cost']:g} on an earlier line; "
                "give the same cost on each of its lines",
            )
    group_positions = {group: positions[entry["features"][0]] for group, entry in groups.items()}
    return make_costs({"features": single, "groups": groups}, (str(path), None), group_positions | positions)


def _from_json(text: str, path: PathLike) -> FeatureCosts:
    try:
        content = decode_json(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise DataError(path, error.lineno, f"damaged JSON ({error.msg})") from None
    except DataError as error:
        raise error.at(path) from None
    positions: dict[str, LinePosition] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        for literal in JSON_STRING.findall(line):
            positions.setdefault(json.loads(literal), (str(path), number))
    return make_costs(content, (str(path), None), positions)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise DataError(None, None, f"{name!r} occurs twice; list it once")
    return dict(pairs)


def read_query_weights(path: PathLike) -> dict[str, float]:
    """Read query weights for the parameter ``query_weight`` of ``fit``: CSV or TSV, ``query,weight``.

    The header is optional: ``query``, ``qid`` or ``query_id``, and ``weight`` or ``query_weight``.
    """
    weights: dict[str, float] = {}
    for position, row in table_rows(read_text(path), path, QUERY_WEIGHT_TABLE):
        weight = finite_number(row["weight"], position, "weight")
        if weight < 0:
            reason = f"the weight of query {row['query']!r} is {row['weight']}; expected a number ≥ 0"
            raise DataError(*position, reason)
        weights[row["query"]] = weight
    if not weights:
        raise DataError(source_name(path), None, "contains no weights; expected lines query,weight")
    return weights


QUERY_COLUMN = "query"  # text column for the query texts


def read_queries(path: PathLike) -> dict[str, str]:
    """Read query texts by id: TSV or CSV of two columns, id and text, with or without a header."""
    texts = {row["query"]: row["text"] for _, row in table_rows(read_text(path), path, QUERY_TEXT_TABLE)}
    if not texts:
        raise DataError(source_name(path), None, "contains no query")
    return texts


def with_query_texts(data: Dataset, queries: PathLike | Mapping[str, str]) -> Dataset:
    """Add a text column ``query`` to the data: the text of each row's query.

    Parameters
    ----------
    data : Dataset
        The column is added to its ``texts``; the data set is changed and returned.
    queries : path or mapping
        TSV or CSV with query id and text, with or without a header; or texts by id.
    """
    is_mapping = isinstance(queries, Mapping)
    texts = queries if isinstance(queries, Mapping) else read_queries(queries)
    name = "`queries`" if is_mapping else source_name(queries)  # type: ignore[arg-type]
    ids = [str(query) for query in data.query_ids.tolist()]
    without_text = [query for query in ids if query not in texts]
    if len(without_text) == len(ids):
        reason = f"has none of the {len(ids)} queries of {data.source or 'the data'}, such as {ids[0]}"
        raise ParameterError("queries", queries, reason) if is_mapping else DataError(name, None, reason)
    if without_text:
        warn_caller(
            f"{name}: has no text for {len(without_text)} of {len(ids)} queries, such as {without_text[0]}"
        )
    column = TextColumn.of([texts.get(query, "") for query in ids])
    data.texts[QUERY_COLUMN] = column[data.queries.of_rows(np.arange(data.n_queries))]
    return data


NumbersOfDocuments = dict[str, dict[str, float]]
"""query → document → number: the grades of judgements, the scores of a run."""

KEYWORDS_LINE = re.compile(r"#\s*qid:([^\s:]+):\s*(.+)")
LTR_LINE = re.compile(r"(\S+)\s+qid:(\S+)\s[^#]*#\s*(\S+)")


@dataclass(frozen=True)
class Judgements:
    """The grades as ``grades[query][document]``, and query ids by their ``keywords``."""

    grades: Mapping[str, Mapping[str, float]]
    keywords: Mapping[str, str] = field(default_factory=dict)

    def query(self, name: str) -> str | None:
        """The id of a query, given by its id or keywords; None if it has no judgement."""
        return name if name in self.grades else self.keywords.get(name)


class DocumentEntry(NamedTuple):
    """The grade or score of a document for a query, and its position in the file."""

    position: LinePosition
    query: str
    document: str
    value: float


class JudgementFormat(NamedTuple):
    """A format of judgements, recognised by the first line of content."""

    example: str
    recognises: Callable[[str], bool]
    entries: Callable[[str, str], Iterator[DocumentEntry]]


def read_judgements(path: PathLike) -> Judgements:
    """Read judgements in one of three formats, detected from the first line of content.

    ``4 qid:1 # 7555 Rambo`` (the Elasticsearch LTR demo; lines such as ``# qid:1: rambo`` define keywords),
    ``1 0 7555 4`` (TREC qrels), or CSV or TSV whose header names query, document and grade, such as
    ``query,doc,grade`` or ``grade,keywords,docId``.
    """
    text, name = read_text(path), source_name(path)
    kind = _recognise(text, name)
    keywords = (KEYWORDS_LINE.match(line) for _, line in content_lines(text, name))
    ids = {match[2].strip(): match[1] for match in keywords if match}
    return Judgements(collect_numbers(kind.entries(text, name), name, "judgement"), ids)


def collect_numbers(entries: Iterator[DocumentEntry], name: str, what: str) -> NumbersOfDocuments:
    """Collect the numbers of all entries; duplicates and an empty file are errors."""
    numbers: NumbersOfDocuments = {}
    for position, query, document, value in entries:
        documents = numbers.setdefault(query, {})
        if document in documents:
            raise DataError(
                *position, f"query {query} has a second {what} for document {document}; keep one of them"
            )
        documents[document] = value
    if not numbers:
        raise DataError(name, None, f"contains no {what}")
    return numbers


def column_entries(
    lines: Iterable[tuple[LinePosition, str]], columns: str, kind: str, number: str
) -> Iterator[DocumentEntry]:
    """Entries of lines in space-separated ``columns``: query, document, ``number`` and others."""
    names = columns.split()
    for position, line in lines:
        cells = line.split()
        if len(cells) != len(names):
            reason = f"has {len(cells)} columns; expected the {len(names)} of {kind}: {columns}"
            raise DataError(*position, reason)
        row = dict(zip(names, cells, strict=True))
        yield DocumentEntry(
            position, row["query"], row["document"], finite_number(row[number], position, number)
        )


def qrels_entries(text: str, name: str) -> Iterator[DocumentEntry]:
    """TREC: ``query iteration document grade``."""
    return column_entries(_judgement_lines(text, name), "query 0 document grade", "TREC qrels", "grade")


def _ltr_entries(text: str, name: str) -> Iterator[DocumentEntry]:
    for position, line in _judgement_lines(text, name):
        match = LTR_LINE.match(line)
        if match is None:
            raise DataError(*position, f"{line[:40]!r} is not a judgement; expected: 4 qid:1 # 7555 Rambo")
        yield DocumentEntry(position, match[2], match[3], finite_number(match[1], position, "grade"))


def _csv_entries(text: str, name: str) -> Iterator[DocumentEntry]:
    lines = ("\n" if line.lstrip().startswith("#") else line for line in text_lines(text))
    for position, row in table_rows("".join(lines), name, JUDGEMENT_TABLE):
        yield DocumentEntry(
            position, row["query"], row["document"], finite_number(row["grade"], position, "grade")
        )


def _judgement_lines(text: str, name: str) -> Iterator[tuple[LinePosition, str]]:
    return ((position, line) for position, line in content_lines(text, name) if not line.startswith("#"))


def _is_judgements_header(line: str) -> bool:
    return bool(JUDGEMENT_TABLE.column_indices(cells_of(line, delimiter_of(line))))


JUDGEMENT_FORMATS = (
    JudgementFormat("4 qid:1 # 7555", lambda line: bool(re.match(r"\S+\s+qid:", line)), _ltr_entries),
    JudgementFormat("query,doc,grade", _is_judgements_header, _csv_entries),
    JudgementFormat("1 0 7555 4", lambda line: len(line.split()) == 4, qrels_entries),
)


def _recognise(text: str, name: str) -> JudgementFormat:
    position, line = next(_judgement_lines(text, name), ((name, 1), ""))
    if not line:
        raise DataError(name, None, "contains no judgement")
    for kind in JUDGEMENT_FORMATS:
        if kind.recognises(line):
            return kind
    examples = " or ".join(repr(kind.example) for kind in JUDGEMENT_FORMATS)
    raise DataError(*position, f"{line[:40]!r} is not a judgement; expected {examples}")
