"""Write a folder of a data set, with the rows of each query brought together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
from ranksieve.prepare.missing import MissingPolicy, has_missing

ROWS_AT_ONCE = 2**16
RUNS_AT_ONCE = 2**16
CODES, PARTS, NEW = "codes.tmp", "parts.tmp", "new.tmp"


class Regrouping:
    """Rows in the order of the input -> blocks of whole queries, rows of a query in the order of the input.

    ``runs`` is a file of (query, rows that follow each other), ``sizes`` has the documents of each query and
    ``starts`` the first row of each block, in the new order.
    """

    def __init__(self, folder: Path, runs: Path, sizes: IntArray, starts: IntArray) -> None:
        self._folder, self._runs, self._starts = folder, runs, starts
        first_rows = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self._block_of = np.searchsorted(starts, first_rows, side="right") - 1
        self._n_rows = int(starts[-1])
        self._open_files = ExitStack()
        self._codes = self._distributed(self._all_codes(), self._folder / CODES, np.dtype("<i8"))

    def __enter__(self) -> Regrouping:
        return self

    def __exit__(self, *error: object) -> None:
        self._open_files.close()
        (self._folder / CODES).unlink(missing_ok=True)

    def blocks(self, rows: Iterator[AnyArray], drop: Path | None = None) -> Iterator[AnyArray]:
        """The blocks of an array that is given in pieces; ``drop`` is a file not needed once all are read."""
        first = next(rows)
        kind = np.dtype((first.dtype, first.shape[1:]))
        path = self._folder / PARTS
        with self._distributed(_chained(first, rows), path, kind) as file:
            if drop is not None:
                drop.unlink()
            for begin, end in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True):
                order = np.argsort(_read(self._codes, begin, end, np.dtype("<i8")), kind="stable")
                yield _read(file, begin, end, kind)[order]
        path.unlink()

    def rewrite(self, path: Path, kind: np.dtype[Any]) -> None:
        """Regroup a file that has one entry per row."""
        with (self._folder / NEW).open("wb") as new:
            for block in self.blocks(_pieces(path, kind, self._n_rows)):
                new.write(block.data)
        os.replace(self._folder / NEW, path)

    def _all_codes(self) -> Iterator[IntArray]:
        """The query of each row."""
        with self._runs.open("rb") as file:
            while raw := file.read(16 * RUNS_AT_ONCE):
                runs = np.frombuffer(raw, dtype="<i8").reshape(-1, 2)
                ends = np.cumsum(runs[:, 1])
                for begin in range(0, int(ends[-1]), ROWS_AT_ONCE):
                    rows = np.arange(begin, min(begin + ROWS_AT_ONCE, int(ends[-1])))
                    yield runs[np.searchsorted(ends, rows, side="right"), 0]

    def _distributed(self, pieces: Iterator[AnyArray], path: Path, kind: np.dtype[Any]) -> IO[bytes]:
        """A file with the rows of each block together, in the order of the input."""
        filled, codes = self._starts[:-1].copy(), _Stream(self._all_codes())
        with path.open("wb") as file:
            for rows in pieces:
                block = self._block_of[codes.take(len(rows))]
                order = np.argsort(block, kind="stable")
                cuts = np.flatnonzero(np.diff(block[order])) + 1
                for some in np.split(order, cuts):
                    place = int(block[some[0]])
                    file.seek(int(filled[place]) * kind.itemsize)
                    file.write(np.ascontiguousarray(rows[some]).data)
                    filled[place] += len(some)
        return self._open_files.enter_context(path.open("rb"))


class _Stream:
    """An array that comes in pieces, taken in pieces of other lengths."""

    def __init__(self, pieces: Iterator[IntArray]) -> None:
        self._pieces, self._rest = pieces, np.empty(0, dtype=np.int64)

    def take(self, count: int) -> IntArray:
        parts = [self._rest]
        while sum(map(len, parts)) < count:
            parts.append(next(self._pieces))
        joined = np.concatenate(parts)
        self._rest = joined[count:]
        return joined[:count]


def _chained(first: AnyArray, rest: Iterator[AnyArray]) -> Iterator[AnyArray]:
    yield first
    yield from rest


def _pieces(path: Path, kind: np.dtype[Any], n_rows: int) -> Iterator[AnyArray]:
    with path.open("rb") as file:
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            yield _read(file, begin, min(begin + ROWS_AT_ONCE, n_rows), kind)


def _read(file: IO[bytes], begin: int, end: int, kind: np.dtype[Any]) -> AnyArray:
    file.seek(begin * kind.itemsize)
    values = np.empty((end - begin, *kind.shape), kind.base)
    file.readinto(values.reshape(-1).view(np.uint8).data)  # type: ignore[attr-defined]
    return values


BLOCK_ROWS = 16384
BLOCK_CELLS = 2**24  # 128 MB of float64: blocks of very wide data have fewer rows
MOST_LABELS = 64  # different labels that the header counts
RUNS, STAGED = "runs.tmp", "staged.tmp"


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
        self._open_files = ExitStack()
        self._files: dict[str, IO[bytes]] = {}
        self._block = np.zeros((0, 0), self._dtype)  # columns × rows, those that are not written yet
        self._pending = 0
        self._run_starts: list[int] = []  # of the pending rows
        self._last_id: Hashable = None
        self._codes: dict[Hashable, int] = {}
        self._sizes = GrowingArray(np.int64)
        self._starts, self._widths = [0], list[int]()
        self._labels: dict[float, int] | None = {}
        self._doc_id_kind: np.dtype[Any] | None = None
        self._n_texts, self._has_gaps = 0, False
        self._text_columns: list[str] = []
        self.n_docs, self.width, self.bytes_written = 0, 0, 0
        self.scattered = False
        self.has_missing = False

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            self._open_files.close()
        except OSError:  # a full disk is told once
            if kind is None:
                raise

    @property
    def n_queries(self) -> int:
        return len(self._codes)

    # --- Batches ---------------------------------------------------------------------------------------

    def add(self, batch: Batch) -> None:
        """Append documents."""
        self._add_runs(batch)
        self._add_features(batch.X)
        self._append(layout.LABELS, np.asarray(batch.y, dtype="<f8"))
        self._count_labels(batch.y)
        if batch.document_weight is not None:
            self._append(layout.DOCUMENT_WEIGHTS, np.asarray(batch.document_weight, dtype="<f8"))
        self._add_names(batch)
        self.n_docs += len(batch.y)
        self._write_blocks()

    def _append(self, name: str, values: AnyArray | bytes) -> None:
        if name not in self._files:
            self._files[name] = self._open_files.enter_context((self._folder / name).open("wb"))
        data = values if isinstance(values, bytes) else np.ascontiguousarray(values).data
        self.bytes_written += len(data) if isinstance(values, bytes) else values.nbytes
        self._files[name].write(data)

    def _add_runs(self, batch: Batch) -> None:
        """Number the queries in order of first appearance, and keep which rows are theirs."""
        runs, row = [], self._pending
        for query, size in zip(batch.ids, batch.sizes, strict=True):
            code = self._codes.get(query)
            if code is None:
                code = self._codes[query] = len(self._codes)
                self._sizes.extend(1)[0] = 0
                self._run_starts.append(row)
            elif query != self._last_id:
                self.scattered = True
                self._run_starts.append(row)
            self._sizes.held[code] += size
            self._last_id = query
            runs.append((code, size))
            row += size
        self._append(RUNS, np.array(runs, dtype="<i8").reshape(-1, 2))

    def _add_features(self, X: AnyArray) -> None:
        rows, width = X.shape
        if width > self.width:
            self.width = width
            self._write_blocks()  # wide blocks have fewer rows
        stop = self._pending + rows
        if self._block.shape[0] < self.width or self._block.shape[1] < stop:
            enough = self._block_rows()
            room = enough if stop <= enough else stop + stop // 4
            wider = np.zeros((self.width, room), self._dtype)
            wider[: len(self._block), : self._pending] = self._block[:, : self._pending]
            self._block = wider
        self._block[:width, self._pending : stop] = X.T
        self._block[width:, self._pending : stop] = 0
        self._pending = stop

    def _block_rows(self) -> int:
        return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, self.width)))

    def _write_blocks(self) -> None:
        """Write blocks while more rows are pending than a block has; the last query may go on."""
        while self._pending > (most := self._block_rows()):
            inside = [start for start in self._run_starts if 0 < start <= self._pending]
            fitting = [start for start in inside if start <= most]
            if not inside:
                return
            self._write_block(fitting[-1] if fitting else inside[0])

    def _write_block(self, rows: int) -> None:
        for column in self._block:
            self._append(layout.FEATURES, column[:rows])
        self._starts.append(self._starts[-1] + rows)
        self._widths.append(len(self._block))
        rest = self._pending - rows
        self._block[:, :rest] = self._block[:, rows : self._pending].copy()
        self._pending = rest
        self._run_starts = [start - rows for start in self._run_starts if start >= rows]

    def _count_labels(self, y: FloatArray) -> None:
        if self._labels is None:
            return
        for label, count in zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True):
            self._labels[label] = self._labels.get(label, 0) + count
        if len(self._labels) > MOST_LABELS:
            self._labels = None

    # --- Comments and document ids ---------------------------------------------------------------------

    def _add_names(self, batch: Batch) -> None:
        comments, names = batch.comments, batch.doc_ids
        begin = self._n_texts
        if comments is not None:
            self._append(layout.COMMENTS, self._add_texts(comments))
        if isinstance(comments, TextColumn) and isinstance(names, TextColumn) and _is_inside(names, comments):
            shift = begin - int(comments.begins[0])
            self._append(layout.DOC_IDS, _places(names.begins + shift, names.ends + shift))
        elif names is not None:
            self._add_doc_ids(names)
        self._text_columns = list(batch.texts)
        for number, column in enumerate(batch.texts.values()):
            self._append(layout.text_file(number), self._add_texts(column))

    def _add_doc_ids(self, names: TextColumn | WithGaps | AnyArray) -> None:
        if isinstance(names, WithGaps):
            self._append(layout.DOC_ID_GAPS, np.asarray(names.gaps, dtype=bool))
            self._has_gaps |= bool(names.gaps.any())
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
        if _is_run(column):
            first, before = int(column.begins[0]), self._n_texts
            text = column.block[first : column.ends[-1]].tobytes()
            places = _places(column.begins - first + before, column.ends - first + before)
        else:
            parts = [column.raw(row) for row in range(len(column))]
            text, ends = b"".join(parts), self._n_texts + np.cumsum([len(part) for part in parts])
            places = _places(np.concatenate(([self._n_texts], ends[:-1])), ends)
        self._n_texts += len(text)
        self._append(layout.TEXTS, text)
        return places

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
        del self._block
        text_comments = self._n_texts > 0 or empty_comments
        query_ids = self._write_query_ids(ids_of(list(self._codes)))
        self._append(layout.SIZES, self._sizes.held.astype("<i8"))
        doc_ids = None
        if layout.DOC_IDS in self._files and text_comments:
            doc_ids = layout.TEXT if self._doc_id_kind is None else self._doc_id_kind.name
        self._open_files.close()
        if not text_comments:
            for name in (layout.COMMENTS, layout.DOC_IDS):
                (self._folder / name).unlink(missing_ok=True)
        if not self._n_texts:
            (self._folder / layout.TEXTS).unlink(missing_ok=True)
        if not self._has_gaps:
            (self._folder / layout.DOC_ID_GAPS).unlink(missing_ok=True)
        if self.scattered:
            self._regroup()
        elif len(set(self._widths)) > 1:
            self._widen()
        (self._folder / RUNS).unlink()
        if self.has_missing and missing != "keep":
            self._fill(missing, names)
        self._write_header(
            {
                "n_docs": self.n_docs,
                "n_queries": self.n_queries,
                "dtype": self._dtype.name,
                "feature_names": list(names),
                "block_starts": self._starts,
                "query_ids": query_ids,
                "doc_ids": doc_ids,
                "text_columns": self._text_columns,
                "label_counts": self._labels_in_order(),
                **(about or {}),
            }
        )

    def _write_query_ids(self, ids: AnyArray) -> str:
        """Numbers, or texts by their places; returns the kind."""
        if ids.dtype.kind in layout.NUMBER_KINDS:
            self._append(layout.QUERY_IDS, ids.astype(ids.dtype.newbyteorder("<")))
            return str(ids.dtype.name)
        self._append(layout.QUERY_IDS, self._add_texts(text_column([str(one) for one in ids])))
        return layout.TEXT

    def _labels_in_order(self) -> dict[str, int] | None:
        if self._labels is None:
            return None
        return {repr(label).removesuffix(".0"): self._labels[label] for label in sorted(self._labels)}

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

    def _regroup(self) -> None:
        """Bring the rows of each query together, in every file that has an entry per row."""
        sizes = self._sizes.held.copy()
        starts = block_starts(sizes, self._block_rows())
        os.replace(self._folder / layout.FEATURES, self._folder / STAGED)
        with Regrouping(self._folder, self._folder / RUNS, sizes, starts) as regrouping:
            with (self._folder / layout.FEATURES).open("wb") as file:
                rows = (np.ascontiguousarray(block.T) for block in self._staged())
                for block in regrouping.blocks(rows, drop=self._folder / STAGED):
                    file.write(np.ascontiguousarray(block.T).data)
            kinds: dict[str, np.dtype[Any]] = {
                layout.LABELS: np.dtype("<f8"),
                layout.DOCUMENT_WEIGHTS: np.dtype("<f8"),
                layout.DOC_ID_GAPS: np.dtype(np.uint8),
            }
            kinds |= {layout.COMMENTS: layout.PLACE, layout.DOC_IDS: self._doc_id_kind or layout.PLACE}
            kinds |= {layout.text_file(k): layout.PLACE for k in range(len(self._text_columns))}
            for name, kind in kinds.items():
                if (self._folder / name).exists():
                    regrouping.rewrite(self._folder / name, kind)
        self._starts = starts.tolist()

    def _fill(self, policy: str, names: Sequence[str]) -> None:
        """Replace missing values in the file, block by block."""
        path, sizes = self._folder / layout.FEATURES, self._sizes.held
        matrix = DiskMatrix(path, self._starts, self.width, self._dtype)
        how = MissingPolicy(policy)
        if policy == "column_mean":
            how = MissingPolicy(
                policy, tuple(names), tuple(_present_mean(matrix, j) for j in range(self.width))
            )
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        with path.open("r+b") as file:
            for first, last in zip(self._starts[:-1], self._starts[1:], strict=True):
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


def _is_run(column: TextColumn) -> bool:
    """Whether each entry begins where the one before ends."""
    return bool(np.array_equal(column.begins[1:], column.ends[:-1]) and column.begins[0] <= column.ends[-1])


def _is_inside(names: TextColumn, comments: TextColumn) -> bool:
    """Whether document ids are parts of comments that lie one behind another."""
    first, last = comments.begins[0], comments.ends[-1]
    within = (names.begins >= first).all() and (names.ends <= last).all()
    return names.block is comments.block and _is_run(comments) and bool(within)


def _places(begins: IntArray, ends: IntArray) -> IntArray:
    return np.stack([begins, ends], axis=1).astype("<i8")


def _present_mean(matrix: DiskMatrix, column: int) -> float:
    values = matrix[:, column].astype(np.float64)
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else 0.0
