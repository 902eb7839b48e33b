"""Write a folder of a data set, with the rows of each query brought together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve._util.files import decode_json
from ranksieve._version import __version__
from ranksieve.data.dataset import TextColumn, WithGaps
from ranksieve.data.disk import DiskMatrix
from ranksieve.data.queries import queries_in_order
from ranksieve.errors import DataError
from ranksieve.io import folder as layout
from ranksieve.io.letor import GrowingArray
from ranksieve.prepare.missing import FILLS, MissingPolicy, has_missing

BLOCK_ROWS = 16384
BLOCK_CELLS = 2**24  # 128 MB of float64: blocks of very wide data have fewer rows
STAGED, PARTS = "staged.tmp", "parts.tmp"


class Batch(NamedTuple):
    """Consecutive documents: the query ``ids[k]`` has the next ``sizes[k]`` of them.

    Later batches may be wider: the features of earlier ones are 0 there.
    """

    X: AnyArray
    y: FloatArray
    ids: Sequence[Hashable]
    sizes: Sequence[int]
    comments: TextColumn | None = None
    doc_ids: TextColumn | WithGaps | AnyArray | None = None
    document_weight: FloatArray | None = None
    texts: Mapping[str, TextColumn] = MappingProxyType({})


class FolderWriter:
    """Takes batches in the order of the input and writes the files of a folder.

    Blocks of whole queries are written as they come. ``finish`` copies them once more if features turned up
    later that the first blocks do not have, and twice if the rows of a query were not together.
    """

    def __init__(self, folder: Path, dtype: Any) -> None:
        self._folder, self._dtype = folder, np.dtype(dtype).newbyteorder("<")
        self._files: dict[str, IO[bytes]] = {}
        self._block = np.zeros((0, 0), self._dtype)  # columns × rows, those that are not written yet
        self._starts, self._widths = [0], list[int]()  # of the blocks that are written
        self._codes: dict[Hashable, int] = {}  # the queries, numbered in order of first appearance
        self._run_queries, self._run_starts = GrowingArray(np.int64), GrowingArray(np.int64)
        self._doc_id_kind: np.dtype[Any] | None = None  # of numbers; None for texts
        self._text_columns: list[str] = []
        self.n_docs, self.width = 0, 0

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for file in self._files.values():
            with nullcontext() if kind is None else suppress(OSError):  # a full disk is reported once
                file.close()

    @property
    def scattered(self) -> bool:
        """Whether rows of a query were not together."""
        return len(self._run_queries) > len(self._codes)

    @property
    def _pending(self) -> int:
        """Rows that are not written yet."""
        return self.n_docs - self._starts[-1]

    @property
    def _n_texts(self) -> int:
        """Bytes of texts."""
        return self._files[layout.TEXTS].tell() if layout.TEXTS in self._files else 0

    # --- Batches ---------------------------------------------------------------------------------------

    def add(self, batch: Batch) -> None:
        """Append documents."""
        self._add_runs(batch)
        self._add_features(batch.X)
        self._append(layout.LABELS, np.asarray(batch.y, dtype="<f8"))
        if batch.document_weight is not None:
            self._append(layout.DOCUMENT_WEIGHTS, np.asarray(batch.document_weight, dtype="<f8"))
        self._add_names(batch)
        self.n_docs += len(batch.y)
        self._write_blocks()

    def _append(self, name: str, values: AnyArray | bytes) -> None:
        if name not in self._files:
            self._files[name] = (self._folder / name).open("wb")
        if isinstance(values, bytes):
            self._files[name].write(values)
        else:  # as bytes, because dates have no buffer of their own
            self._files[name].write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def _add_runs(self, batch: Batch) -> None:
        """Note the query and the first row of each run of rows of one query."""
        codes, rows, row = list[int](), list[int](), self.n_docs
        last = self._run_queries.held[-1] if len(self._run_queries) else None
        for query, size in zip(batch.ids, batch.sizes, strict=True):
            code = self._codes.setdefault(query, len(self._codes))
            if code != last:
                codes.append(code)
                rows.append(row)
            last, row = code, row + size
        self._run_queries.append(np.array(codes, dtype=np.int64))
        self._run_starts.append(np.array(rows, dtype=np.int64))

    def _add_features(self, X: AnyArray) -> None:
        rows, width = X.shape
        if width > self.width:
            self.width = width
            self._write_blocks()  # wide blocks have fewer rows
        pending, stop = self._pending, self._pending + rows
        if self._block.shape[0] < self.width or self._block.shape[1] < stop:
            enough = self._block_rows()
            room = enough if stop <= enough else stop + stop // 4
            wider = np.zeros((self.width, room), self._dtype)
            wider[: len(self._block), :pending] = self._block[:, :pending]
            self._block = wider
        self._block[:width, pending:stop] = X.T
        self._block[width:, pending:stop] = 0

    def _block_rows(self) -> int:
        return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, self.width)))

    def _write_blocks(self) -> None:
        """Write blocks while more rows are pending than a block has; the last query may go on."""
        while (pending := self._pending) > (most := self._block_rows()):
            runs, written = self._run_starts.held, self._starts[-1]
            cuts = runs[slice(*np.searchsorted(runs, [written, written + pending], "right"))] - written
            if not len(cuts):
                return
            self._write_block(int(max(cuts[cuts <= most], default=cuts[0])))

    def _write_block(self, rows: int) -> None:
        rest = self._pending - rows
        for column in self._block:
            self._append(layout.FEATURES, column[:rows])
        self._block[:, :rest] = self._block[:, rows : rows + rest].copy()
        self._starts.append(self._starts[-1] + rows)
        self._widths.append(len(self._block))

    # --- Comments and document ids ---------------------------------------------------------------------

    def _add_names(self, batch: Batch) -> None:
        if batch.comments is not None:
            self._append(layout.COMMENTS, self._add_texts(batch.comments))
        if batch.doc_ids is not None:
            self._add_doc_ids(batch.doc_ids)
        self._text_columns = list(batch.texts)
        for number, column in enumerate(batch.texts.values()):
            self._append(layout.text_file(number), self._add_texts(column))

    def _add_doc_ids(self, names: TextColumn | WithGaps | AnyArray) -> None:
        if isinstance(names, WithGaps):
            self._append(layout.DOC_ID_GAPS, np.asarray(names.gaps, dtype=bool))
            names = names.values  # type: ignore[assignment]
        if isinstance(names, TextColumn):
            self._append(layout.DOC_IDS, self._add_texts(names))
            return
        numbers = np.asarray(names)
        kind = numbers.dtype.newbyteorder("<")
        self._doc_id_kind = self._doc_id_kind or kind
        self._append(layout.DOC_IDS, numbers.astype(self._doc_id_kind))

    def _add_texts(self, column: TextColumn) -> IntArray:
        """Append the bytes of all entries; their places in the file of texts."""
        block, pairs = column.block.data, zip(column.begins.tolist(), column.ends.tolist(), strict=True)
        ends = self._n_texts + np.cumsum(column.ends - column.begins)
        self._append(layout.TEXTS, b"".join(block[begin:end] for begin, end in pairs))
        return np.stack([ends - column.ends + column.begins, ends], axis=1).astype("<i8")

    # --- The end ---------------------------------------------------------------------------------------

    def finish(
        self,
        names: Sequence[str],
        ids_of: Callable[[list[Any]], AnyArray],
        missing: str = "keep",
        about: Mapping[str, Any] | None = None,
        empty_comments: bool = True,
    ) -> None:
        """Bring blocks and rows into their final form and write the header.

        ``ids_of`` makes the array of query ids from what the batches called them. Without
        ``empty_comments``, comments that are all empty are left out, and the document ids with them.
        """
        if self._pending:
            self._write_block(self._pending)
        if self._n_texts == 0 and not empty_comments:
            self._drop(layout.COMMENTS, layout.DOC_IDS)
        query_ids = self._write_query_ids(ids_of(list(self._codes)))
        rows_of_runs = np.diff(np.append(self._run_starts.held, self.n_docs))
        sizes = np.bincount(self._run_queries.held, rows_of_runs).astype("<i8")
        self._append(layout.SIZES, sizes)
        if self._n_texts == 0:
            self._drop(layout.TEXTS)
        for file in self._files.values():
            file.close()
        if (
            layout.DOC_ID_GAPS in self._files
            and not np.fromfile(self._folder / layout.DOC_ID_GAPS, bool).any()
        ):
            self._drop(layout.DOC_ID_GAPS)
        if self.scattered:
            self._regroup(np.repeat(self._run_queries.held, rows_of_runs), sizes)
        elif set(self._widths) != {self.width}:
            self._widen()
        if missing in FILLS:
            self._fill(missing, names, sizes)
        kind = layout.TEXT if self._doc_id_kind is None else self._doc_id_kind.name
        self._write_header(
            {
                "n_docs": self.n_docs,
                "n_queries": len(self._codes),
                "dtype": self._dtype.name,
                "feature_names": list(names),
                "block_starts": self._starts,
                "query_ids": query_ids,
                "doc_ids": kind if layout.DOC_IDS in self._files else None,
                "text_columns": self._text_columns,
                **(about or {}),
            }
        )

    def _drop(self, *names: str) -> None:
        for name in names:
            if name in self._files:
                self._files.pop(name).close()
                (self._folder / name).unlink()

    def _write_query_ids(self, ids: AnyArray) -> str:
        """Numbers, or texts by their places; returns the kind."""
        if ids.dtype.kind in layout.NUMBER_KINDS:
            self._append(layout.QUERY_IDS, ids.astype(ids.dtype.newbyteorder("<")))
            return str(ids.dtype.name)
        self._append(layout.QUERY_IDS, self._add_texts(text_column([str(one) for one in ids])))
        return layout.TEXT

    def _write_header(self, content: Mapping[str, Any]) -> None:
        files = {
            file.name: {"bytes": file.stat().st_size, "edges": layout.edges_of(file)}
            for file in sorted(self._folder.glob("*.bin"))
        }
        opening = {"format": layout.FORMAT, "format_version": layout.FORMAT_VERSION, "version": __version__}
        source = content.get("source")
        if source is not None:  # a file name need not be Unicode
            content = {**content, "source": source.encode("utf-8", "backslashreplace").decode()}
        text = json.dumps({**opening, **content, "files": files}, allow_nan=False)
        try:
            decode_json(text)
        except json.JSONDecodeError as error:
            raise DataError(
                None, None, f"a name in the data cannot be written ({error.msg}); rename it"
            ) from None
        (self._folder / layout.HEADER).write_text(text + "\n", encoding="utf-8")

    def _staged(self) -> Iterator[AnyArray]:
        """The blocks as they were written, columns × rows, with columns of 0 up to the final width."""
        with (self._folder / STAGED).open("rb") as file:
            for rows, width in zip(np.diff(self._starts).tolist(), self._widths, strict=True):
                block = np.zeros((self.width, rows), self._dtype)
                file.readinto(block[:width].data)
                yield block

    def _widen(self) -> None:
        """Give all blocks the same columns."""
        path = self._folder / layout.FEATURES
        os.replace(path, self._folder / STAGED)
        with path.open("wb") as file:
            for block in self._staged():
                file.write(block.data)
        (self._folder / STAGED).unlink()

    def _regroup(self, query: IntArray, sizes: IntArray) -> None:
        """Bring the rows of each query together, rows of a query in the order of the input.

        ``query`` has the number of each row's query. The features are copied twice: first the rows of each
        new block come together, in the order of the input; then each block is sorted by itself.
        """
        order = np.argsort(query, kind="stable")
        for name, kind in self._kinds_of_rows().items():
            if name in self._files:
                values = np.fromfile(self._folder / name, kind)
                (self._folder / name).write_bytes(np.ascontiguousarray(values[order]).data)
        features, staged, parts = (self._folder / name for name in (layout.FEATURES, STAGED, PARTS))
        starts = block_starts(sizes, self._block_rows())
        block_of_query = np.searchsorted(starts, np.cumsum(sizes) - sizes, side="right") - 1
        by_block = np.argsort(block_of_query[query], kind="stable")
        place = np.empty_like(by_block)
        place[by_block] = np.arange(self.n_docs)
        os.replace(features, staged)
        with parts.open("wb") as file:
            for first, block in zip(self._starts, self._staged(), strict=False):
                rows = np.ascontiguousarray(block.T)
                places = place[first : first + len(rows)]
                sorted_rows = np.argsort(places)
                cuts = np.flatnonzero(np.diff(places[sorted_rows]) > 1) + 1
                for some in np.split(sorted_rows, cuts):
                    file.seek(int(places[some[0]]) * rows[0].nbytes)
                    file.write(rows[some].data)
        staged.unlink()
        with parts.open("rb") as file, features.open("wb") as out:
            for begin, end in pairwise(starts.tolist()):
                rows = np.fromfile(file, self._dtype, (end - begin) * self.width).reshape(-1, self.width)
                within = np.argsort(query[by_block[begin:end]], kind="stable")
                out.write(np.ascontiguousarray(rows[within].T).data)
        parts.unlink()
        self._starts = starts.tolist()

    def _kinds_of_rows(self) -> dict[str, np.dtype[Any]]:
        """What the files hold that have an entry per row."""
        numbers, texts = (layout.LABELS, layout.DOCUMENT_WEIGHTS), range(len(self._text_columns))
        return {
            **dict.fromkeys(numbers, np.dtype("<f8")),
            **dict.fromkeys([layout.COMMENTS, *map(layout.text_file, texts)], layout.PLACE),
            layout.DOC_IDS: self._doc_id_kind or layout.PLACE,
            layout.DOC_ID_GAPS: np.dtype(np.uint8),
        }

    def _fill(self, policy: str, names: Sequence[str], sizes: IntArray) -> None:
        """Replace missing values in the file, block by block."""
        path = self._folder / layout.FEATURES
        matrix = DiskMatrix(path, self._starts, self.width, self._dtype)
        how = MissingPolicy(policy)
        if policy == "column_mean":
            how = MissingPolicy(
                policy, tuple(names), tuple(_present_mean(matrix, j) for j in range(self.width))
            )
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        with path.open("r+b") as file:
            for first, last in pairwise(self._starts):
                block = np.empty((self.width, last - first), self._dtype)
                place = first * self.width * self._dtype.itemsize
                file.seek(place)
                file.readinto(block.data)
                if has_missing(block):
                    among = slice(*np.searchsorted(offsets, [first, last]))
                    how.fill(block.T, queries_in_order(np.arange(among.stop - among.start), sizes[among]))
                    file.seek(place)
                    file.write(block.data)


def block_starts(sizes: IntArray, most: int) -> IntArray:
    """Where blocks of whole queries begin, and the end: at most so many rows each, or one longer query."""
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    starts, query = [0], 0
    while query < len(sizes):
        query = max(query + 1, int(np.searchsorted(offsets, offsets[query] + most, side="right")) - 1)
        starts.append(int(offsets[query]))
    return np.array(starts, dtype=np.int64)


def text_column(texts: Sequence[str]) -> TextColumn:
    """Strings in one block of UTF-8."""
    parts = [text.encode("utf-8", errors="surrogateescape") for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    block = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return TextColumn(block, np.concatenate(([0], ends[:-1])), ends)


def _present_mean(matrix: DiskMatrix, column: int) -> float:
    values = matrix[:, column].astype(np.float64)
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else 0.0
