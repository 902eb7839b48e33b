"""Sources of distributed data, and how their rows are grouped into parts of whole queries."""

from __future__ import annotations

import glob
import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Future

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.dask.cluster import Cluster, with_location
from ranksieve.dask.dataset import DistributedDataset, SourceLayout, WorkerPart
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import is_sparse, stack
from ranksieve.data.queries import Queries, as_id_array
from ranksieve.errors import DataError, ParameterError, short_list
from ranksieve.io.folder import is_folder_dataset, open_dataset
from ranksieve.io.frames import from_frame, open_parquet, without_index
from ranksieve.io.text_files import in_file

PARQUET_SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Piece:
    """One partition of a source: its name in messages, and the task ``read(*args)`` that reads its rows.

    ``read`` returns None if there are no rows; ``args`` may contain Dask futures.
    """

    name: str
    read: Callable[..., Dataset | None]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a data frame by role."""

    label: str
    qid: str
    features: tuple[str, ...] | None
    document_weight: str | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that a data frame must have."""
        weight = () if self.document_weight is None else (self.document_weight,)
        return self.label, self.qid, *weight, *(self.features or ())


@dataclass(frozen=True, eq=False)
class PieceSource:
    """The pieces in order, a name, and the Dask DataFrame whose index the scores get, if any."""

    pieces: Sequence[Piece]
    name: str | None = None
    frame: Any = None


def as_source(
    source: Any, y: Any, qid: Any, columns: SourceColumns, cluster: Cluster, n_parts: int | None
) -> PieceSource:
    """The pieces of a Dask DataFrame, Dask arrays, parquet files, a folder or a data set."""
    if isinstance(source, PieceSource):
        return source
    if isinstance(source, Dataset):
        _refuse_weight_column(columns, "a data set has")
        return pieces_of_dataset(source, n_parts or cluster.n_threads)
    if isinstance(source, str | os.PathLike):
        if is_folder_dataset(source):
            _refuse_weight_column(columns, "the folder of a data set has")
            return pieces_of_folder(os.path.abspath(source), n_parts or cluster.n_threads)
        return pieces_of_files(_parquet_paths(source), columns, n_parts or cluster.n_threads)
    if _is_dask(source, "DataFrame"):
        return pieces_of_frame(source, columns, cluster)
    if _is_dask(source, "Array"):
        if columns.document_weight is not None:
            reason = "is a column name, but Dask arrays have no named columns; use a Dask DataFrame"
            raise ParameterError("document_weight", columns.document_weight, reason)
        return pieces_of_arrays(source, y, qid, columns, cluster)
    if (
        isinstance(source, Sequence)
        and all(isinstance(one, str | os.PathLike) for one in source)
        and len(source)
    ):
        paths = [path for one in source for path in _parquet_paths(one)]
        return pieces_of_files(paths, columns, n_parts or cluster.n_threads)
    reason = (
        "must be a Dask DataFrame, Dask arrays X, y and qid, parquet files or a folder that convert_dataset "
        "wrote"
    )
    raise ParameterError("source", type(source).__name__, reason)


def _refuse_weight_column(columns: SourceColumns, subject: str) -> None:
    if columns.document_weight is not None:
        raise ParameterError(
            "document_weight", columns.document_weight, f"{subject} its own document weights; leave it out"
        )


def _is_dask(source: Any, kind: str) -> bool:
    """Return True for a Dask collection of this kind; does not import Dask's collections."""
    return type(source).__module__.startswith("dask") and type(source).__name__ == kind


def pieces_of_frame(source: Any, columns: SourceColumns, cluster: Cluster) -> PieceSource:
    """One piece per partition of a Dask DataFrame."""
    lacking = [name for name in columns.required if name not in source.columns]
    if lacking:
        reason = (
            f"the data frame has no column {lacking[0]!r}; its columns are "
            f"{short_list([str(name) for name in source.columns], 20)}"
        )
        raise DataError(None, None, reason)
    with cluster.readable_errors():
        futures = cluster.client.compute(source.to_delayed(), sync=False)
    pieces = [Piece(f"partition {k}", read_frame, (one, columns)) for k, one in enumerate(futures)]
    return PieceSource(pieces, None, source)


def read_frame(table: Any, columns: SourceColumns) -> Dataset | None:
    """The rows of one partition."""
    if len(table) == 0:
        return None
    return from_frame(
        table, qid=columns.qid, label=columns.label, features=columns.features,
        document_weight=columns.document_weight,
    )  # fmt: skip


def pieces_of_arrays(X: Any, y: Any, qid: Any, columns: SourceColumns, cluster: Cluster) -> PieceSource:
    """One piece per chunk of rows of Dask arrays."""
    import dask.array as da

    if y is None or qid is None or isinstance(qid, str):
        reason = "Dask arrays need all three: distribute(X, y=y, qid=qid)"
        raise ParameterError("y" if y is None else "qid", None if y is None else qid, reason)
    rows = X.rechunk({1: -1})
    sizes = rows.chunks[0]
    known_sizes = not np.isnan(sizes).any()
    others = []
    for name, values in (("y", y), ("qid", qid)):
        values = (
            values if hasattr(values, "to_delayed") else da.from_array(np.asarray(values), chunks=(sizes,))
        )
        if known_sizes and values.chunks[0] != sizes:
            if values.shape[0] != rows.shape[0]:
                raise ParameterError(
                    name, values, f"has {values.shape[0]} entries, but X has {rows.shape[0]} rows"
                )
            values = values.rechunk((sizes,))
        if values.numblocks[0] != rows.numblocks[0]:
            raise ParameterError(
                name, values, f"has {values.numblocks[0]} chunks, but X has {rows.numblocks[0]}; rechunk it"
            )
        others.append(values)
    blocks = [one.to_delayed().ravel().tolist() for one in (rows, *others)]
    with cluster.readable_errors():
        futures = [cluster.client.compute(one, sync=False) for one in blocks]
    return PieceSource(
        [
            Piece(f"chunk {k}", read_arrays, (*parts, columns.features))
            for k, parts in enumerate(zip(*futures, strict=True))
        ]
    )


def read_arrays(X: Any, y: AnyArray, qid: AnyArray, names: tuple[str, ...] | None) -> Dataset | None:
    """The rows of one chunk."""
    return None if X.shape[0] == 0 else Dataset(X, y, qid, names)


def pieces_of_files(paths: Sequence[str], columns: SourceColumns, n_pieces: int) -> PieceSource:
    """Parquet files, which the workers open by path; few files are divided by row groups."""
    name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    shares = -(-n_pieces // len(paths))
    return PieceSource(
        [
            Piece(
                path if shares == 1 else f"{path} ({k + 1} of {shares})",
                read_file,
                (path, k, shares, columns),
            )
            for path in paths
            for k in range(shares)
        ],
        name,
    )


def read_file(path: str, share: int, shares: int, columns: SourceColumns) -> Dataset | None:
    """Read one of ``shares`` equal shares of the row groups of a parquet file."""
    with open_parquet(path) as file:
        cuts = [file.num_row_groups * (share + k) // shares for k in (0, 1)]
        table = file.read_row_groups(list(range(*cuts)))
    with in_file(path):
        return read_frame(without_index(table), columns)


def _parquet_paths(source: str | os.PathLike[str]) -> list[str]:
    """A file, the parquet files of a folder, or the files that match a pattern."""
    path = os.fspath(source)
    if glob.has_magic(path) and not os.path.exists(path):
        matches = sorted(glob.glob(path))
        if not matches:
            raise DataError(path, None, "no file matches this pattern")
        return matches
    if os.path.isdir(path):
        files = sorted(
            os.fspath(one) for one in Path(path).iterdir() if one.suffix.lower() in PARQUET_SUFFIXES
        )
        if not files:
            raise DataError(path, None, "the folder contains no parquet file")
        return files
    return [os.path.abspath(path)]


def pieces_of_folder(path: str, n_pieces: int) -> PieceSource:
    """A folder that :func:`ranksieve.io.convert_dataset` wrote, which the workers open by path."""
    data = open_dataset(path)
    cuts = _cuts(data.queries, n_pieces)
    pieces = [
        Piece(f"queries {a} to {b - 1} of {path}", read_folder, (path, a, b)) for a, b in pairwise(cuts)
    ]
    return PieceSource(pieces, path)


def read_folder(path: str, first: int, last: int) -> Dataset:
    """Read the queries ``first:last`` of a folder into memory."""
    data = open_dataset(path)
    return data.select_rows(np.arange(*data.queries.offsets[[first, last]]))


def _cuts(queries: Queries, n_pieces: int) -> list[int]:
    """Cut the queries into pieces of about equal numbers of rows."""
    cuts = np.searchsorted(queries.offsets, np.linspace(0, queries.n_rows, n_pieces + 1))
    return list(np.unique(cuts).tolist())


def pieces_of_dataset(data: Dataset, n_pieces: int) -> PieceSource:
    """A data set, in pieces of whole queries.

    Workers read features on disk from their files; features in memory are sent with the tasks, as labels are.
    """
    queries, on_disk = data.queries, not isinstance(data.X, np.ndarray) and not is_sparse(data.X)
    if not queries.contiguous:
        raise DataError(
            data.source, None, "the rows of each query must be contiguous to distribute a data set"
        )
    name, rest = data.source or "the data", (data.feature_names, data.profile)
    pieces = []
    for first, last in pairwise(_cuts(queries, n_pieces)):
        a, b = queries.offsets[[first, last]].tolist()
        X, rows = (data.X, (a, b)) if on_disk else (data.X[a:b], (0, b - a))
        ids = (queries.ids[first:last], queries.sizes[first:last])
        weight = take_rows(data.document_weight, slice(a, b))
        args = (X, rows, data.y[a:b], ids, *rest, weight)
        pieces.append(Piece(f"rows {a} to {b - 1} of {name}", read_rows, args))
    return PieceSource(pieces, data.source)


def read_rows(
    X: Any,
    rows: tuple[int, int],
    y: AnyArray,
    ids: tuple[AnyArray, IntArray],
    names: tuple[str, ...],
    profile: str | None,
    document_weight: FloatArray | None,
) -> Dataset:
    """Some rows of a matrix, in memory; ``ids`` are the query ids and the number of rows of each query."""
    return Dataset(
        X[slice(*rows)], y, np.repeat(*ids), names, profile=profile, document_weight=document_weight
    )


@dataclass(frozen=True)
class Summary:
    """Metadata of a piece that the client needs to lay out the parts."""

    names: tuple[str, ...]
    kind: str
    n_rows: int
    ids: AnyArray
    profile: str | None
    weighted: bool


@dataclass(frozen=True, eq=False)
class PieceGroup:
    """Consecutive pieces that become one part: their numbers, names, rows on a worker, and summaries.

    ``leaving`` lists the queries whose rows move to another group, by the number of that group.
    """

    pieces: range
    names: Sequence[str]
    rows: Future
    summaries: list[Summary | None]
    leaving: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]} to {self.names[-1]}"

    @property
    def leaving_queries(self) -> list[Any]:
        """All queries that move to another group."""
        return [query for queries in self.leaving.values() for query in queries]

    @property
    def ids(self) -> list[Any]:
        """The queries in order of first appearance, without those that move to another group."""
        summaries = [one for one in self.summaries if one is not None]
        queries = dict.fromkeys(query for one in summaries for query in one.ids.tolist())
        leaving = set(self.leaving_queries)
        return [query for query in queries if query not in leaving]


def lay_out(cluster: Cluster, source: PieceSource, shuffle: bool, n_parts: int | None) -> DistributedDataset:
    """Read the pieces on the workers and group them into parts of whole queries."""
    groups = _read(cluster, source.pieces, n_parts or cluster.n_threads)
    summaries = {
        name: one for group in groups for name, one in zip(group.names, group.summaries, strict=True)
    }
    nonempty = {name: one for name, one in summaries.items() if one is not None}
    if not nonempty:
        raise DataError(None, None, "the source has no rows; a data set needs at least one document")
    columns = _common_columns(nonempty)
    _plan_moves(groups, shuffle)
    parts: list[WorkerPart] = []
    ids: list[Any] = []
    for k, group in enumerate(groups):
        if group_ids := group.ids:
            parts.append(_part(cluster, groups, k, columns, len(ids) + np.arange(len(group_ids))))
            ids += group_ids
    profiles = {one.profile for one in nonempty.values()}
    sizes = [0 if one is None else one.n_rows for group in groups for one in group.summaries]
    profile = profiles.pop() if len(profiles) == 1 else None
    layout = SourceLayout(sizes, source.frame)
    return DistributedDataset(
        cluster, parts, columns[0], as_id_array(ids), columns[1], layout, source.name, profile
    )


def _read(cluster: Cluster, pieces: Sequence[Piece], n_parts: int) -> list[PieceGroup]:
    """Read the pieces in groups of about equal numbers of pieces."""
    cuts = np.linspace(0, len(pieces), min(len(pieces), n_parts) + 1).round().astype(int).tolist()
    groups = []
    for a, b in pairwise(cuts):
        rows = cluster.submit(read_group, [(piece.name, piece.read, *piece.args) for piece in pieces[a:b]])
        groups.append(PieceGroup(range(a, b), [piece.name for piece in pieces[a:b]], rows, []))
    answers = cluster.round([group.name for group in groups], summarise, [group.rows for group in groups])
    for group, summaries in zip(groups, answers, strict=True):
        group.summaries.extend(summaries)
    return groups


def read_group(pieces: list[tuple[Any, ...]]) -> list[Dataset | None]:
    """Read the rows of consecutive pieces; an error names its piece."""
    rows = []
    for name, read, *args in pieces:
        try:
            rows.append(read(*args))
        except ValueError as error:
            raise with_location(error, name) from None
    return rows


def summarise(pieces: list[Dataset | None]) -> list[Summary | None]:
    return [None if data is None else _summary(data) for data in pieces]


def _summary(data: Dataset) -> Summary:
    weighted = data.document_weight is not None
    return Summary(data.feature_names, _kind(data), data.n_docs, data.queries.ids, data.profile, weighted)


def _kind(data: Dataset) -> str:
    return "sparse" if is_sparse(data.X) else str(data.X.dtype.name)


def _common_columns(summaries: dict[str, Summary]) -> tuple[tuple[str, ...], str]:
    """The columns of the first piece, which all pieces must have in any order, and a common dtype."""
    where, first = next(iter(summaries.items()))
    for name, one in summaries.items():
        for has, lacks in (((where, first), (name, one)), ((name, one), (where, first))):
            if lacking := [column for column in has[1].names if column not in set(lacks[1].names)]:
                reason = (
                    f"lacks the column {short_list(lacking, 5)}, which {has[0]} has; all pieces need the "
                    "same columns"
                )
                raise DataError(lacks[0], None, reason)
    for name, one in summaries.items():
        if one.weighted != first.weighted:
            weighted, unweighted = (where, name) if first.weighted else (name, where)
            reason = f"has no document weights, but {weighted} has; give both or neither"
            raise DataError(unweighted, None, reason)
    kinds = {one.kind for one in summaries.values()}
    if len(kinds) == 1:
        return first.names, kinds.pop()
    if "sparse" in kinds:
        raise DataError(
            None, None, "some pieces of the source are sparse and others dense; use one of the two for all"
        )
    return first.names, str(np.result_type(*kinds).name)


def _plan_moves(groups: Sequence[PieceGroup], shuffle: bool) -> None:
    """Move the rows of queries in several groups to the first of these groups."""
    first_group: dict[Any, int] = {}
    for k, group in enumerate(groups):
        for query in group.ids:
            first = first_group.setdefault(query, k)
            if first == k:
                continue
            if not shuffle:
                reason = (
                    f"query {query} is in {groups[first].name} and in {group.name}; sort the data by query, "
                    "or choose `shuffle=True`"
                )
                raise DataError(None, None, reason)
            group.leaving.setdefault(first, []).append(query)


def _part(
    cluster: Cluster,
    groups: Sequence[PieceGroup],
    k: int,
    columns: tuple[tuple[str, ...], str],
    numbers: IntArray,
) -> WorkerPart:
    """The part of a group, without the rows that leave it and with those from other groups."""
    group, others = groups[k], [other for other in groups if k in other.leaving]
    if not (group.leaving_queries or others):
        rows = cluster.submit(stack_pieces, group.rows, columns)
        return WorkerPart(group.name, rows, numbers, list(group.pieces))
    arriving = [
        cluster.submit(rows_of_queries, other.rows, columns, other.leaving[k], other.pieces.start)
        for other in others
    ]
    both = cluster.submit(
        exchange_rows, group.rows, columns, group.leaving_queries, arriving, group.pieces.start
    )
    rows, origin = (cluster.submit(operator.itemgetter(k), both) for k in (0, 1))
    pieces = [piece for one in (group, *others) for piece in one.pieces]
    return WorkerPart(group.name, rows, numbers, pieces, origin)


RowsWithOrigin = tuple[Dataset, tuple[IntArray, IntArray]]
"""Some rows, and the piece and row in the source of each."""


def align_columns(data: Dataset, columns: tuple[tuple[str, ...], str]) -> Dataset:
    """The data with the common order and type of columns."""
    names, kind = columns
    if data.feature_names != names:
        index = {name: j for j, name in enumerate(data.feature_names)}
        data = data.select_features(np.array([index[name] for name in names]))
    if _kind(data) == kind:
        return data
    return data.replace_features(np.asarray(data.X).astype(kind))


def stack_pieces(pieces: list[Dataset | None], columns: tuple[tuple[str, ...], str]) -> Dataset:
    """All rows of a group of pieces."""
    return _stack_rows([align_columns(data, columns) for data in pieces if data is not None])


def _stack_rows(parts: Sequence[Dataset]) -> Dataset:
    """Concatenate rows with the same columns; a query may continue in the next part."""
    if len(parts) == 1:
        return parts[0]
    ids = [query for part in parts for query in part.qid.tolist()]
    same = len({part.qid.dtype.kind for part in parts}) == 1
    qid = np.concatenate([part.qid for part in parts]) if same else as_id_array(ids)
    X, y = stack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    weights = [part.document_weight for part in parts if part.document_weight is not None]
    return Dataset(
        X, y, qid, parts[0].feature_names, profile=parts[0].profile,
        document_weight=np.concatenate(weights) if weights else None,
    )  # fmt: skip


def rows_of_queries(
    pieces: list[Dataset | None],
    columns: tuple[tuple[str, ...], str],
    queries: list[Any],
    first: int,
    inside: bool = True,
) -> RowsWithOrigin:
    """The rows of some queries in a group of pieces, or all other rows; ``first`` numbers its first piece."""
    data, sizes = stack_pieces(pieces, columns), [0 if one is None else one.n_docs for one in pieces]
    rows = np.flatnonzero(_are_in(data.qid, set(queries)) == inside)
    piece = np.repeat(np.arange(first, first + len(sizes)), sizes)
    return data.select_rows(rows), (piece[rows], np.concatenate([np.arange(size) for size in sizes])[rows])


def _are_in(qid: AnyArray, queries: set[Any]) -> BoolArray:
    if qid.dtype == object or not queries:
        return np.array([query in queries for query in qid])
    return np.isin(qid, as_id_array(list(queries)))


def exchange_rows(
    pieces: list[Dataset | None],
    columns: tuple[tuple[str, ...], str],
    leaving: list[Any],
    arriving: list[RowsWithOrigin],
    first: int,
) -> RowsWithOrigin:
    """The rows of a group of pieces without the leaving queries, followed by the rows that arrive."""
    blocks = [rows_of_queries(pieces, columns, leaving, first, inside=False), *arriving]
    piece, row = (np.concatenate([origin[k] for _, origin in blocks]) for k in (0, 1))
    return _stack_rows([data for data, _ in blocks]), (piece, row)
