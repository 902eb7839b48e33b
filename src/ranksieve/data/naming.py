"""Queries and documents by name: how tables, sentences and pages call them, and how they are found."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._types import IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError

NEAREST = 3
BETWEEN = " · "  # between the texts of several columns


@dataclass(frozen=True, eq=False)
class Names:
    """What the documents and queries of a data set are called, and the texts that belong to them.

    A text column is about queries if it has one text in each of them, like the words of the query, else
    about documents, like their titles.
    """

    data: Dataset

    def document(self, row: int) -> Any:
        """The id of a document, or "document 2 of query 7"."""
        return document_name(self.data, row)

    def document_text(self, row: int) -> str:
        """The texts of a document, empty without any."""
        about = [name for name in self.data.texts if name not in self._of_queries]
        return self._joined(about, row)

    def query_text(self, number: int) -> str:
        """The texts of a query, by its number in order of first appearance; empty without any."""
        return self._joined(self._of_queries, int(self.data.queries.rows_of(number)[0]))

    @property
    def query_texts(self) -> dict[Any, str]:
        """The texts of all queries by their ids; nothing if there are none."""
        if not self._of_queries:
            return {}
        return {query: self.query_text(k) for k, query in enumerate(self.data.queries.ids.tolist())}

    @cached_property
    def _of_queries(self) -> tuple[str, ...]:
        grouped = [self.data.queries.rows_of(q) for q in range(self.data.n_queries)]
        if all(len(rows) == 1 for rows in grouped):  # nothing tells; only a name can
            return tuple(name for name in self.data.texts if "query" in name.lower())
        return tuple(
            name
            for name, column in self.data.texts.items()
            if all(len({column[int(row)] for row in rows}) == 1 for rows in grouped)
        )

    def _joined(self, columns: Any, row: int) -> str:
        return BETWEEN.join(filter(None, (str(self.data.texts[name][row] or "").strip() for name in columns)))


def document_name(data: Dataset, row: int) -> Any:
    """What a document is called everywhere: its id, or if it has none, "document 2 of query 7"."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    return document_words(data, row) if name in (None, "") else plain_id(name)


def document_words(data: Dataset, row: int) -> str:
    """ "document D12 of query 7", by its id, or by its number (from 1) within the query."""
    name = None if data.doc_ids is None else data.doc_ids[row]
    query = plain_id(data.qid[row])
    if name in (None, ""):
        name = int(np.flatnonzero(query_rows(data, query) == row)[0]) + 1
    return f"document {name} of query {query}"


def find_document(data: Dataset, qid: Hashable, document: Hashable) -> int:
    """The row of a document of a query, named by its id, or by its number (from 1) within the query.

    ``document`` may also be what :func:`document_name` gives.
    """
    rows = query_rows(data, qid)
    if data.doc_ids is not None:
        names = {int(row): str(data.doc_ids[int(row)]) for row in rows}
        found = [row for row, name in names.items() if name == str(document)]
        if len(found) > 1:
            reason = f"query {qid} has {len(found)} documents of this name; give the number within the query"
            raise ParameterError("document", document, reason)
        if found:
            return found[0]
    number = str(document).removeprefix("document ").removesuffix(f" of query {qid}")
    if number.isdecimal() and 1 <= int(number) <= len(rows):
        return int(rows[int(number) - 1])
    known = [] if data.doc_ids is None else list(names.values())
    reason = (
        f"query {qid} has no such document{_nearest(document, known)}; it has {len(rows)}, named by "
        f"{'id or ' if known else ''}number from 1 to {len(rows)}"
    )
    raise ParameterError("document", document, reason)


def query_rows(data: Dataset, qid: Hashable) -> IntArray:
    """The rows of a query, in order; its id may also be given as text."""
    return data.queries.rows_of(query_number(data, qid))


def query_number(data: Dataset, qid: Hashable) -> int:
    """The number of a query in order of first appearance; its id may also be given as text."""
    ids = data.queries.ids.tolist()
    number = next((q for q, one in enumerate(ids) if one == qid), None)
    if number is None:
        texts = [str(one) for one in ids]
        if str(qid) not in texts:
            raise ParameterError("qid", qid, f"is none of the {len(ids)} queries{_nearest(qid, texts)}")
        number = texts.index(str(qid))
    return number


def plain_id(value: Any) -> Any:
    """An id as Python's own kind of number or text."""
    return value.item() if isinstance(value, np.generic) else value


def _nearest(name: Hashable, known: list[str]) -> str:
    near = get_close_matches(str(name), known, n=NEAREST, cutoff=0.4)
    return f" (nearest: {', '.join(near)})" if near else ""
