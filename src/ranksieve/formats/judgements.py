"""Judgement files: which grade a document has for a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ranksieve._types import PathLike
from ranksieve.errors import DataError
from ranksieve.formats.text_files import (
    Place,
    cells_of,
    content_lines,
    csv_rows,
    delimiter_of,
    finite_number,
    read_text,
    source_name,
    text_lines,
)

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
