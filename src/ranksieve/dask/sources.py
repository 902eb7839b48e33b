"""Where distributed data come from: of each kind of source a list of pieces, each read by a task on a worker.

One function and one line in ``as_source`` adds a kind.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve._util.messages import shortened
from ranksieve.dask.cluster import Cluster
from ranksieve.data.dataset import Dataset, take_rows
from ranksieve.data.matrix import is_sparse
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError, ParameterError
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
    """A folder that :func:`ranksieve.convert_dataset` wrote, which the workers open by this name."""
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
