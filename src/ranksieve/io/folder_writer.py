"""Write a data set into a folder, block by block."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve._util.files import decode_json
from ranksieve._version import __version__
from ranksieve.data.dataset import TextColumn
from ranksieve.data.queries import contiguous_queries
from ranksieve.errors import DataError
from ranksieve.io import folder as layout
from ranksieve.prepare.missing import FILLS, MissingPolicy

MAX_BLOCK_ROWS = 16384
MAX_BLOCK_CELLS = 2**24  # 128 MB of float64: blocks of very wide data have fewer rows
SORT_ADVICE = "sort the file by query, or read it whole with read_dataset and write it with write_dataset"


class Batch(NamedTuple):
    """Consecutive documents: the query ``ids[k]`` has the next ``sizes[k]`` of them.

    Later batches may have more features, which are 0 for earlier documents.
    """

    X: AnyArray
    y: FloatArray
    ids: Sequence[Hashable]
    sizes: Sequence[int]
    comments: TextColumn | None = None
    doc_ids: TextColumn | None = None
    document_weight: FloatArray | None = None
    texts: Mapping[str, TextColumn] = MappingProxyType({})


class FolderWriter:
    """Writes batches, in the order of the input, to the files of a folder.

    Blocks of whole queries are written as soon as they are complete, with missing values replaced by the
    policy ``missing``. ``finish`` rewrites the blocks if later ones have more features.
    """

    def __init__(self, folder: Path, dtype: Any, missing: str = "keep") -> None:
        self._folder, self._dtype, self._missing = folder, np.dtype(dtype).newbyteorder("<"), missing
        self._files: dict[str, IO[bytes]] = {}
        self._block = np.zeros((0, 0), self._dtype)  # columns × rows not written yet
        self._starts, self._widths = [0], list[int]()  # of the written blocks
        self._sizes: dict[Hashable, int] = {}  # of the queries, in order of first appearance
        self._cuts: list[int] = []  # first rows of queries among the pending rows
        self._latest: Hashable = None  # query
        self._text_columns: list[str] = []
        self.n_docs, self.width = 0, 0

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for file in self._files.values():
            with nullcontext() if kind is None else suppress(OSError):  # a full disk is reported once
                file.close()

    @property
    def _pending(self) -> int:
        """Number of rows not written yet."""
        return self.n_docs - self._starts[-1]

    @property
    def _n_texts(self) -> int:
        return self._files[layout.TEXTS].tell() if layout.TEXTS in self._files else 0

    # --- Batches ---------------------------------------------------------------------------------------

    def add(self, batch: Batch) -> None:
        """Append documents; the rows of each query must be contiguous."""
        row = self._pending
        for query, size in zip(batch.ids, batch.sizes, strict=True):
            if query not in self._sizes:
                self._sizes[query] = 0
                self._cuts.append(row)
            elif query != self._latest:
                raise DataError(None, None, f"the rows of query {query} are not contiguous; {SORT_ADVICE}")
            self._sizes[query] += size
            self._latest, row = query, row + size
        self._add_features(batch.X)
        self._append(layout.LABELS, np.asarray(batch.y, dtype="<f8"))
        if batch.document_weight is not None:
            self._append(layout.DOCUMENT_WEIGHTS, np.asarray(batch.document_weight, dtype="<f8"))
        self._add_text_columns(batch)
        self.n_docs += len(batch.y)
        self._write_blocks()

    def _append(self, name: str, values: AnyArray | bytes) -> None:
        if name not in self._files:
            self._files[name] = (self._folder / name).open("wb")
        if isinstance(values, bytes):
            self._files[name].write(values)
        else:  # as bytes, because dates do not support the buffer protocol
            self._files[name].write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    def _add_features(self, X: AnyArray) -> None:
        rows, width = X.shape
        if width > self.width:
            self.width = width
            self._write_blocks()  # wide blocks have fewer rows
        pending, stop = self._pending, self._pending + rows
        if self._block.shape[0] < self.width or self._block.shape[1] < stop:
            block_rows = self._block_rows()
            capacity = block_rows if stop <= block_rows else stop + stop // 4
            larger = np.zeros((self.width, capacity), self._dtype)
            larger[: len(self._block), :pending] = self._block[:, :pending]
            self._block = larger
        self._block[:width, pending:stop] = X.T
        self._block[width:, pending:stop] = 0

    def _block_rows(self) -> int:
        return max(1, min(MAX_BLOCK_ROWS, MAX_BLOCK_CELLS // max(1, self.width)))

    def _write_blocks(self) -> None:
        """Write blocks while more than one block is pending; the last query may be incomplete."""
        while self._pending > (max_rows := self._block_rows()):
            cuts = [cut for cut in self._cuts if cut]
            if not cuts:
                return
            self._write_block(max((cut for cut in cuts if cut <= max_rows), default=cuts[0]))

    def _write_block(self, rows: int) -> None:
        if self._missing in FILLS:
            starts = [cut for cut in self._cuts if cut < rows]
            queries = contiguous_queries(np.arange(len(starts)), np.diff([*starts, rows]))
            MissingPolicy(self._missing).fill(self._block[:, :rows].T, queries)
        rest = self._pending - rows
        for column in self._block:
            self._append(layout.FEATURES, column[:rows])
        self._block[:, :rest] = self._block[:, rows : rows + rest].copy()
        self._starts.append(self._starts[-1] + rows)
        self._widths.append(len(self._block))
        self._cuts = [cut - rows for cut in self._cuts if cut >= rows]

    # --- Comments, document ids and texts --------------------------------------------------------------

    def _add_text_columns(self, batch: Batch) -> None:
        if batch.comments is not None:
            self._append(layout.COMMENTS, self._add_texts(batch.comments))
        if batch.doc_ids is not None:
            self._append(layout.DOC_IDS, self._add_texts(batch.doc_ids))
        self._text_columns = list(batch.texts)
        for number, column in enumerate(batch.texts.values()):
            self._append(layout.text_file(number), self._add_texts(column))

    def _add_texts(self, column: TextColumn) -> IntArray:
        """Append the bytes of all entries; return their spans in the file of texts."""
        block, pairs = column.block.data, zip(column.begins.tolist(), column.ends.tolist(), strict=True)
        ends = self._n_texts + np.cumsum(column.ends - column.begins)
        self._append(layout.TEXTS, b"".join(block[begin:end] for begin, end in pairs))
        return np.stack([ends - column.ends + column.begins, ends], axis=1).astype("<i8")

    # --- Header and query ids --------------------------------------------------------------------------

    def finish(
        self,
        names: Sequence[str],
        ids_of: Callable[[list[Any]], AnyArray],
        about: Mapping[str, Any],
        empty_comments: bool = True,
    ) -> None:
        """Write the last block and the header.

        ``ids_of`` makes the array of query ids from those of the batches. Without ``empty_comments``,
        comments that are all empty are left out together with the document ids.
        """
        if self._pending:
            self._write_block(self._pending)
        if self._n_texts == 0 and not empty_comments:
            self._drop(layout.COMMENTS, layout.DOC_IDS)
        query_ids = self._write_query_ids(ids_of(list(self._sizes)))
        self._append(layout.SIZES, np.array(list(self._sizes.values()), dtype="<i8"))
        if self._n_texts == 0:
            self._drop(layout.TEXTS)
        for file in self._files.values():
            file.close()
        if set(self._widths) != {self.width}:
            self._widen()
        self._write_header(
            {
                "n_docs": self.n_docs,
                "n_queries": len(self._sizes),
                "dtype": self._dtype.name,
                "feature_names": list(names),
                "block_starts": self._starts,
                "query_ids": query_ids,
                "text_columns": self._text_columns,
                **about,
            }
        )

    def _drop(self, *names: str) -> None:
        for name in names:
            if name in self._files:
                self._files.pop(name).close()
                (self._folder / name).unlink()

    def _write_query_ids(self, ids: AnyArray) -> str:
        """Write query ids as numbers, or as spans of the file of texts; return their type."""
        if ids.dtype.kind in layout.NUMBER_KINDS:
            self._append(layout.QUERY_IDS, ids.astype(ids.dtype.newbyteorder("<")))
            return str(ids.dtype.name)
        self._append(layout.QUERY_IDS, self._add_texts(TextColumn.of([str(one) for one in ids])))
        return layout.TEXT_IDS

    def _write_header(self, content: Mapping[str, Any]) -> None:
        files = {
            file.name: {"bytes": file.stat().st_size, "edges": layout.checksum_of_edges(file)}
            for file in sorted(self._folder.glob("*.bin"))
        }
        version = {
            "format": layout.FOLDER_FORMAT,
            "format_version": layout.FOLDER_FORMAT_VERSION,
            "version": __version__,
        }
        source = content.get("source")
        if source is not None:  # a file name may be invalid Unicode
            content = {**content, "source": source.encode("utf-8", "backslashreplace").decode()}
        text = json.dumps({**version, **content, "files": files}, allow_nan=False)
        try:
            decode_json(text)
        except json.JSONDecodeError as error:
            raise DataError(
                None, None, f"a name in the data cannot be written ({error.msg}); rename it"
            ) from None
        (self._folder / layout.HEADER_FILE).write_text(text + "\n", encoding="utf-8")

    def _widen(self) -> None:
        """Rewrite all blocks with the same number of columns, 0 in the new ones."""
        path, narrow = self._folder / layout.FEATURES, self._folder / "staged.tmp"
        os.replace(path, narrow)
        with narrow.open("rb") as old, path.open("wb") as new:
            for rows, width in zip(np.diff(self._starts).tolist(), self._widths, strict=True):
                block = np.zeros((self.width, rows), self._dtype)
                old.readinto(block[:width].data)
                new.write(block.data)
        narrow.unlink()
