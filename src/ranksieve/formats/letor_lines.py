"""The lines of LETOR text that hold a data set, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import AnyArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.matrix import first_place, stored_rows
from ranksieve.data.row_values import TextColumn
from ranksieve.errors import DataError
from ranksieve.kernels.letor_lines import Lines, write_lines
from ranksieve.kernels.shortest_text import LONGEST

ROWS_AT_ONCE, CELLS_AT_ONCE = 1024, 1 << 15  # of a piece: so few that its text stays in the cache
PIECES_AT_ONCE = 8  # which threads share
AROUND_LABEL = len(" qid:") + len("\n")
AROUND_VALUE = len(" ") + len(":")


def letor_lines(dataset: Dataset) -> Iterator[memoryview]:
    """The text in pieces of whole lines; a piece is to be used before the next is asked for."""
    queries = _one_block([text.encode() for text in _query_texts(dataset)])
    query_of_row = dataset.queries.of_rows(np.arange(dataset.n_queries))
    rooms, step = [_Room() for _ in range(PIECES_AT_ONCE)], _rows_at_once(dataset)
    for first in range(0, dataset.n_docs, step * PIECES_AT_ONCE):
        starts = range(first, min(first + step * PIECES_AT_ONCE, dataset.n_docs), step)
        for room, start in zip(rooms, starts, strict=False):
            room.prepare(dataset, start, min(start + step, dataset.n_docs), query_of_row, queries)
        yield from map_blocks(lambda k, _: rooms[k].write(), np.arange(len(starts) + 1))


class _Room:
    """Some rows and their text; used again for other rows, because fresh memory costs time."""

    def __init__(self) -> None:
        self._values: AnyArray = np.empty(0)
        self._text: AnyArray = np.empty(0, dtype=np.uint8)

    def prepare(
        self,
        dataset: Dataset,
        start: int,
        stop: int,
        query_of_row: IntArray,
        queries: tuple[AnyArray, IntArray],
    ) -> None:
        """Take some rows in; refuse them if LETOR text cannot hold them."""
        block = dataset.X[start:stop]
        _check_finite(dataset, start, block)
        starts, places, columns, stored = stored_rows(block)
        self._values = _with_room(self._values, len(stored))
        self._values[: len(stored)] = stored
        self._lines = Lines(
            dataset.y[start:stop], starts, places, columns, self._values, dataset.X.dtype == np.float32,
            query_of_row[start:stop], *queries, *_tails(dataset, start, stop),
        )  # fmt: skip
        self._text = _with_room(self._text, _most_bytes(self._lines, dataset.n_features))

    def write(self) -> memoryview:
        """The text of these rows."""
        return self._text[: write_lines(self._lines, self._text)].data


def _with_room(array: AnyArray, size: int) -> AnyArray:
    return array if len(array) >= size else np.empty(size, dtype=array.dtype)


def _rows_at_once(dataset: Dataset) -> int:
    cells = max(dataset.X.size, 1)  # of a sparse matrix the stored ones
    return int(np.clip(CELLS_AT_ONCE * dataset.n_docs // cells, 1, ROWS_AT_ONCE))


def _most_bytes(lines: Lines, n_features: int) -> int:
    entry = AROUND_VALUE + len(str(n_features)) + LONGEST
    queries = np.diff(lines.query_starts)[lines.query_of_row].sum()
    row = LONGEST + AROUND_LABEL
    return int(lines.starts[-1] * entry + len(lines.labels) * row + queries + len(lines.tails))


def _one_block(texts: Sequence[bytes]) -> tuple[AnyArray, IntArray]:
    """Texts one after another, and where each begins, with the end of the last."""
    starts = np.fromiter(accumulate(map(len, texts), initial=0), dtype=np.int64, count=len(texts) + 1)
    return np.frombuffer(bytearray(b"".join(texts)), dtype=np.uint8), starts


def _query_texts(dataset: Dataset) -> list[str]:
    """The id of each query as one token."""
    texts = [str(query) for query in dataset.queries.ids]
    for text in texts:
        if not text or "#" in text or any(c in text for c in " \t\r\n\0"):
            raise DataError(
                None, None, f"the query id {text!r} is not one word without #; LETOR text cannot hold it"
            )
    if len(set(texts)) < len(texts):
        raise DataError(None, None, "two query ids look the same as text; LETOR text cannot tell them apart")
    return texts


def _check_finite(dataset: Dataset, start: int, block: Matrix) -> None:
    place = first_place(block, np.isinf)
    if place is not None:
        row, column = place
        name = dataset.feature_names[column]
        raise DataError(
            None, None, f"feature {name} of row {start + row} is infinite; LETOR text cannot hold it"
        )


def _tails(dataset: Dataset, start: int, stop: int) -> tuple[AnyArray, IntArray]:
    """What follows the features of each row: its comment, else its document id."""
    if dataset.comments is None and dataset.doc_ids is None:
        return np.empty(0, dtype=np.uint8), np.zeros(stop - start + 1, dtype=np.int64)
    return _one_block([_tail(dataset, row) for row in range(start, stop)])


def _tail(dataset: Dataset, row: int) -> bytes:
    comment = _raw(dataset.comments, row)
    if comment or dataset.doc_ids is None:
        end = b"\r" if comment.endswith(b"\r") else b""  # readers take one away, as part of the line's end
        return b" #" + comment + end if comment else b""
    doc_id = _raw(dataset.doc_ids, row)
    if len(doc_id.split()) > 1:
        raise DataError(
            None, None, f"the document id {doc_id.decode()!r} is not one word; LETOR text cannot hold it"
        )
    return b" #docid = " + doc_id if doc_id else b""


def _raw(column: Sequence[Any] | None, row: int) -> bytes:
    if column is None:
        return b""
    text = column.raw(row) if isinstance(column, TextColumn) else str(column[row]).encode()
    if b"\n" in text or b"\0" in text:
        raise DataError(None, None, f"the comment or document id of row {row} holds a line break or NUL byte")
    return text
