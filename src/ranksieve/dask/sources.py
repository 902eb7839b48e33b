"""Where distributed data come from, and how their rows become parts with whole queries."""

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
from ranksieve.dask.cluster import Cluster, located
from ranksieve.dask.dataset import DistributedDataset, Layout, Part
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import is_sparse, stack
from ranksieve.data.queries import Queries, as_id_array
from ranksieve.errors import DataError, ParameterError, shortened
from ranksieve.io.folder import is_folder_dataset, open_dataset
from ranksieve.io.frames import from_frame, open_parquet, without_index
from ranksieve.io.text_files import in_file

PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Piece:
    """One partition of a source: its name in messages, and the task ``read(*args)`` that gives its rows.

    ``read`` returns None if there are no rows; ``args`` may hold Dask futures.
    """

    name: str
    read: Callable[..., Dataset | None]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Columns:
    """Which columns of a frame are what."""

    label: str
    qid: str
    features: tuple[str, ...] | None
    document_weight: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """Those that a frame must have."""
        weight = () if self.document_weight is None else (self.document_weight,)
        return self.label, self.qid, *weight, *(self.features or ())


@dataclass(frozen=True, eq=False)
class Source:
    """The pieces in order, a name, and the frame whose index the scores of its rows get, if there is one."""

    pieces: Sequence[Piece]
    name: str | None = None
    frame: Any = None


def as_source(
    source: Any, y: Any, qid: Any, columns: Columns, cluster: Cluster, n_parts: int | None
) -> Source:
    """The pieces of a Dask DataFrame, Dask arrays, parquet files, a folder, a data set, or as they are."""
    if isinstance(source, Source):
        return source
    if isinstance(source, Dataset):
        _no_weights(columns, "a data set brings")
        return rows_of(source, n_parts or cluster.n_threads)
    if isinstance(source, str | os.PathLike):
        if is_folder_dataset(source):
            _no_weights(columns, "the folder of a data set brings")
            return folder(os.path.abspath(source), n_parts or cluster.n_threads)
        return files(_found_files(source), columns, n_parts or cluster.n_threads)
    if _is_dask(source, "DataFrame"):
        return frame(source, columns, cluster)
    if _is_dask(source, "Array"):
        if columns.document_weight is not None:
            reason = "names a column, and Dask arrays have none; give a Dask DataFrame"
            raise ParameterError("document_weight", columns.document_weight, reason)
        return arrays(source, y, qid, columns, cluster)
    if (
        isinstance(source, Sequence)
        and all(isinstance(one, str | os.PathLike) for one in source)
        and len(source)
    ):
        found = [one for given in source for one in _found_files(given)]
        return files(found, columns, n_parts or cluster.n_threads)
    reason = (
        "must be a Dask DataFrame, Dask arrays X, y and qid, parquet files or a folder that convert_dataset "
        "wrote"
    )
    raise ParameterError("source", type(source).__name__, reason)


def _no_weights(columns: Columns, who: str) -> None:
    if columns.document_weight is not None:
        raise ParameterError(
            "document_weight", columns.document_weight, f"{who} its own document weights; leave it out"
        )


def _is_dask(source: Any, kind: str) -> bool:
    """Whether it is a Dask collection of a kind, without loading what it might not be."""
    return type(source).__module__.startswith("dask") and type(source).__name__ == kind


def frame(source: Any, columns: Columns, cluster: Cluster) -> Source:
    """A Dask DataFrame, partition by partition."""
    lacking = [name for name in columns.named if name not in source.columns]
    if lacking:
        reason = (
            f"the data frame has no column {lacking[0]!r}; its columns are "
            f"{shortened([str(name) for name in source.columns], 20)}"
        )
        raise DataError(None, None, reason)
    with cluster.plain_faults():
        futures = cluster.client.compute(source.to_delayed(), sync=False)
    pieces = [Piece(f"partition {k}", read_frame, (one, columns)) for k, one in enumerate(futures)]
    return Source(pieces, None, source)


def read_frame(table: Any, columns: Columns) -> Dataset | None:
    """The rows of one partition."""
    if len(table) == 0:
        return None
    return from_frame(
        table, qid=columns.qid, label=columns.label, features=columns.features,
        document_weight=columns.document_weight,
    )  # fmt: skip


def arrays(X: Any, y: Any, qid: Any, columns: Columns, cluster: Cluster) -> Source:
    """Dask arrays, chunk of rows by chunk of rows."""
    import dask.array as da

    if y is None or qid is None or isinstance(qid, str):
        reason = "Dask arrays need all three: distribute(X, y=y, qid=qid)"
        raise ParameterError("y" if y is None else "qid", None if y is None else qid, reason)
    rows = X.rechunk({1: -1})
    sizes = rows.chunks[0]
    known = not np.isnan(sizes).any()
    others = []
    for name, values in (("y", y), ("qid", qid)):
        values = (
            values if hasattr(values, "to_delayed") else da.from_array(np.asarray(values), chunks=(sizes,))
        )
        if known and values.chunks[0] != sizes:
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
    with cluster.plain_faults():
        futures = [cluster.client.compute(one, sync=False) for one in blocks]
    return Source(
        [
            Piece(f"chunk {k}", read_arrays, (*parts, columns.features))
            for k, parts in enumerate(zip(*futures, strict=True))
        ]
    )


def read_arrays(X: Any, y: AnyArray, qid: AnyArray, names: tuple[str, ...] | None) -> Dataset | None:
    """The rows of one chunk."""
    return None if X.shape[0] == 0 else Dataset(X, y, qid, names)


def files(paths: Sequence[str], columns: Columns, n_pieces: int) -> Source:
    """Parquet files, which the workers open by these names; few files go by groups of rows."""
    name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    shares = -(-n_pieces // len(paths))
    return Source(
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


def read_file(path: str, share: int, shares: int, columns: Columns) -> Dataset | None:
    """Some groups of rows of a parquet file: the ``share``-th of so many shares."""
    with open_parquet(path) as file:
        cuts = [file.num_row_groups * (share + k) // shares for k in (0, 1)]
        table = file.read_row_groups(list(range(*cuts)))
    with in_file(path):
        return read_frame(without_index(table), columns)


def _found_files(given: str | os.PathLike[str]) -> list[str]:
    """A file, the parquet files of a folder, or those that a pattern names."""
    path = os.fspath(given)
    if glob.has_magic(path) and not os.path.exists(path):
        found = sorted(glob.glob(path))
        if not found:
            raise DataError(path, None, "no file matches")
        return found
    if os.path.isdir(path):
        found = sorted(os.fspath(one) for one in Path(path).iterdir() if one.suffix.lower() in PARQUET)
        if not found:
            raise DataError(path, None, "the folder holds no parquet file")
        return found
    return [os.path.abspath(path)]


def folder(path: str, n_pieces: int) -> Source:
    """A folder that :func:`ranksieve.io.convert_dataset` wrote, which the workers open by this name."""
    data = open_dataset(path)
    cuts = _cuts(data.queries, n_pieces)
    pieces = [
        Piece(f"queries {a} to {b - 1} of {path}", read_folder, (path, a, b)) for a, b in pairwise(cuts)
    ]
    return Source(pieces, path)


def read_folder(path: str, first: int, last: int) -> Dataset:
    """The queries first..last of a folder, in memory."""
    data = open_dataset(path)
    return data.select_rows(np.arange(*data.queries.offsets[[first, last]]))


def _cuts(queries: Queries, n_pieces: int) -> list[int]:
    """Where to part the queries into pieces with about as many rows each."""
    places = np.searchsorted(queries.offsets, np.linspace(0, queries.n_rows, n_pieces + 1))
    return list(np.unique(places).tolist())


def rows_of(data: Dataset, n_pieces: int) -> Source:
    """A data set, in pieces of whole queries.

    Workers read features that are on disk, where they lie; those in memory go with the tasks, as labels do.
    """
    queries, on_disk = data.queries, not isinstance(data.X, np.ndarray) and not is_sparse(data.X)
    if not queries.contiguous:
        raise DataError(data.source, None, "the rows of each query must be together to distribute a data set")
    name, rest = data.source or "the data", (data.feature_names, data.profile)
    pieces = []
    for first, last in pairwise(_cuts(queries, n_pieces)):
        a, b = queries.offsets[[first, last]].tolist()
        X, rows = (data.X, (a, b)) if on_disk else (data.X[a:b], (0, b - a))
        ids = (queries.ids[first:last], queries.sizes[first:last])
        weight = take_rows(data.document_weight, slice(a, b))
        args = (X, rows, data.y[a:b], ids, *rest, weight)
        pieces.append(Piece(f"rows {a} to {b - 1} of {name}", read_rows, args))
    return Source(pieces, data.source)


def read_rows(
    X: Any,
    rows: tuple[int, int],
    y: AnyArray,
    ids: tuple[AnyArray, IntArray],
    names: tuple[str, ...],
    profile: str | None,
    document_weight: FloatArray | None,
) -> Dataset:
    """Some rows of a matrix, in memory; ``ids`` are those of the queries, and how many rows each has."""
    return Dataset(
        X[slice(*rows)], y, np.repeat(*ids), names, profile=profile, document_weight=document_weight
    )


NAMED = 5  # columns in a message


@dataclass(frozen=True)
class Summary:
    """What the client must know of a piece to lay out the parts; no rows."""

    names: tuple[str, ...]
    kind: str
    n_rows: int
    ids: AnyArray
    profile: str | None
    weighted: bool


@dataclass(frozen=True, eq=False)
class Run:
    """Neighbouring pieces that become one part: their numbers, names, rows on a worker, and summaries.

    ``leaving`` has the queries whose rows go to other runs, by the number of that run.
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
    def gone(self) -> list[Any]:
        """All queries that leave."""
        return [query for queries in self.leaving.values() for query in queries]

    @property
    def ids(self) -> list[Any]:
        """The queries in order of first appearance, without those that leave."""
        here = dict.fromkeys(query for one in self.summaries if one is not None for query in one.ids.tolist())
        gone = set(self.gone)
        return [query for query in here if query not in gone]


def lay_out(cluster: Cluster, source: Source, shuffle: bool, n_parts: int | None) -> DistributedDataset:
    """Read the pieces on the workers, and make of them parts that hold whole queries."""
    runs = _read(cluster, source.pieces, n_parts or cluster.n_threads)
    summaries = {name: one for run in runs for name, one in zip(run.names, run.summaries, strict=True)}
    known = {name: one for name, one in summaries.items() if one is not None}
    if not known:
        raise DataError(None, None, "the source has no rows; a data set needs at least one document")
    columns = _common_columns(known)
    _note_moves(runs, shuffle)
    parts: list[Part] = []
    ids: list[Any] = []
    for k, run in enumerate(runs):
        if here := run.ids:
            parts.append(_part(cluster, runs, k, columns, len(ids) + np.arange(len(here))))
            ids += here
    profiles = {one.profile for one in known.values()}
    sizes = [0 if one is None else one.n_rows for run in runs for one in run.summaries]
    return DistributedDataset(
        cluster, parts, columns[0], as_id_array(ids), columns[1], Layout(sizes, source.frame), source.name,
        profiles.pop() if len(profiles) == 1 else None,
    )  # fmt: skip


def _read(cluster: Cluster, pieces: Sequence[Piece], n_parts: int) -> list[Run]:
    """The pieces in runs of about as many each."""
    cuts = np.linspace(0, len(pieces), min(len(pieces), n_parts) + 1).round().astype(int).tolist()
    runs = []
    for a, b in pairwise(cuts):
        rows = cluster.submit(read_run, [(piece.name, piece.read, *piece.args) for piece in pieces[a:b]])
        runs.append(Run(range(a, b), [piece.name for piece in pieces[a:b]], rows, []))
    answers = cluster.round([run.name for run in runs], summaries, [run.rows for run in runs])
    for run, summary in zip(runs, answers, strict=True):
        run.summaries.extend(summary)
    return runs


def read_run(run: list[tuple[Any, ...]]) -> list[Dataset | None]:
    """The rows of neighbouring pieces; a failure names its piece."""
    found = []
    for name, read, *args in run:
        try:
            found.append(read(*args))
        except ValueError as error:
            raise located(error, name) from None
    return found


def summaries(pieces: list[Dataset | None]) -> list[Summary | None]:
    """What the client must know of each piece."""
    return [None if data is None else _summary(data) for data in pieces]


def _summary(data: Dataset) -> Summary:
    weighted = data.document_weight is not None
    return Summary(data.feature_names, _kind(data), data.n_docs, data.queries.ids, data.profile, weighted)


def _kind(data: Dataset) -> str:
    return "sparse" if is_sparse(data.X) else str(data.X.dtype.name)


def _common_columns(known: dict[str, Summary]) -> tuple[tuple[str, ...], str]:
    """The columns of the first piece, which all must have in some order, and a kind that holds all values."""
    where, first = next(iter(known.items()))
    for name, one in known.items():
        for has, lacks in (((where, first), (name, one)), ((name, one), (where, first))):
            if lacking := [column for column in has[1].names if column not in set(lacks[1].names)]:
                reason = (
                    f"lacks the column {shortened(lacking, NAMED)}, which {has[0]} has; all need the same "
                    "columns"
                )
                raise DataError(lacks[0], None, reason)
    for name, one in known.items():
        if one.weighted != first.weighted:
            having, without = (where, name) if first.weighted else (name, where)
            raise DataError(without, None, f"has no document weights, but {having} has; give both or neither")
    kinds = {one.kind for one in known.values()}
    if len(kinds) == 1:
        return first.names, kinds.pop()
    if "sparse" in kinds:
        raise DataError(
            None, None, "some pieces of the source are sparse and others dense; give all in one form"
        )
    return first.names, str(np.result_type(*kinds).name)


def _note_moves(runs: Sequence[Run], shuffle: bool) -> None:
    """Let queries whose rows are in several runs leave all but the first of these."""
    home: dict[Any, int] = {}
    for k, run in enumerate(runs):
        for query in run.ids:
            first = home.setdefault(query, k)
            if first == k:
                continue
            if not shuffle:
                reason = (
                    f"query {query} is in {runs[first].name} and in {run.name}; sort the data by query, or "
                    "choose `shuffle=True`"
                )
                raise DataError(None, None, reason)
            run.leaving.setdefault(first, []).append(query)


def _part(
    cluster: Cluster, runs: Sequence[Run], k: int, columns: tuple[tuple[str, ...], str], numbers: IntArray
) -> Part:
    """The part of a run: without the rows that leave it, with those that come from other runs."""
    run, others = runs[k], [other for other in runs if k in other.leaving]
    if not (run.gone or others):
        rows = cluster.submit(whole, run.rows, columns)
        return Part(run.name, rows, numbers, list(run.pieces))
    coming = [
        cluster.submit(taken, other.rows, columns, other.leaving[k], other.pieces.start) for other in others
    ]
    both = cluster.submit(arranged, run.rows, columns, run.gone, coming, run.pieces.start)
    rows, origin = (cluster.submit(operator.itemgetter(place), both) for place in (0, 1))
    pieces = [piece for one in (run, *others) for piece in one.pieces]
    return Part(run.name, rows, numbers, pieces, origin)


Rows = tuple[Dataset, tuple[IntArray, IntArray]]
"""Some rows, and the piece and row that each comes from."""


def aligned(data: Dataset, columns: tuple[tuple[str, ...], str]) -> Dataset:
    """The data with the columns of all pieces, in their order and kind."""
    names, kind = columns
    if data.feature_names != names:
        place = {name: j for j, name in enumerate(data.feature_names)}
        data = data.select_features(np.array([place[name] for name in names]))
    if _kind(data) == kind:
        return data
    return data.replace_features(np.asarray(data.X).astype(kind))


def whole(pieces: list[Dataset | None], columns: tuple[tuple[str, ...], str]) -> Dataset:
    """All rows of a run of pieces."""
    return _stacked([aligned(data, columns) for data in pieces if data is not None])


def _stacked(parts: Sequence[Dataset]) -> Dataset:
    """Rows below rows of the same columns; a query may go on in the next."""
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


def taken(
    pieces: list[Dataset | None],
    columns: tuple[tuple[str, ...], str],
    queries: list[Any],
    first: int,
    inside: bool = True,
) -> Rows:
    """The rows of some queries of a run of pieces, or all others; ``first`` is the number of the first."""
    data, sizes = whole(pieces, columns), [0 if one is None else one.n_docs for one in pieces]
    rows = np.flatnonzero(_among(data.qid, set(queries)) == inside)
    piece = np.repeat(np.arange(first, first + len(sizes)), sizes)
    return data.select_rows(rows), (piece[rows], np.concatenate([np.arange(size) for size in sizes])[rows])


def _among(qid: AnyArray, queries: set[Any]) -> BoolArray:
    """Which rows are of these queries."""
    if qid.dtype == object or not queries:
        return np.array([query in queries for query in qid])
    return np.isin(qid, as_id_array(list(queries)))


def arranged(
    pieces: list[Dataset | None],
    columns: tuple[tuple[str, ...], str],
    gone: list[Any],
    coming: list[Rows],
    first: int,
) -> Rows:
    """The rows of a run of pieces without those of some queries, and below them rows from elsewhere."""
    own = [taken(pieces, columns, gone, first, inside=False), *coming]
    piece, row = (np.concatenate([origin[k] for _, origin in own]) for k in (0, 1))
    return _stacked([data for data, _ in own]), (piece, row)
