"""A data set in parts on Dask workers, and its scores in the row order of the source."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from distributed import Future

from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray
from ranksieve.dask.cluster import Cluster, Traffic
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import NEEDS_MEMORY, PartObjects, RemoteData, map_queries, transform_parts
from ranksieve.errors import DataError, ParameterError

ROW_ATTRIBUTES = ("X", "y", "qid", "doc_ids", "comments")

Origin = tuple[IntArray, IntArray]
"""For each row of a part, the piece of the source that it comes from, and its row in that piece."""


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """A part on a worker: its name in messages, its rows, and the numbers of its queries, ascending.

    ``pieces`` are the pieces of the source that its rows come from, if known; ``origin`` is a future of each
    row's (piece, row), or None if the part consists of all rows of these pieces in order.
    """

    name: str
    rows: Future
    numbers: IntArray
    pieces: Sequence[int] = ()
    origin: Future | None = None

    def share(self, per_query: AnyArray | None) -> AnyArray | None:
        """The entries for the queries of this part."""
        return None if per_query is None else np.asarray(per_query)[self.numbers]


@dataclass(frozen=True, eq=False)
class SourceLayout:
    """Number of rows of each piece of the source, and the Dask DataFrame that they come from, if any."""

    sizes: list[int]
    frame: Any


def scores_as_array(data: DistributedDataset, score: Callable[[Dataset], AnyArray]) -> Any:
    """Scores as a Dask array with one chunk per piece of the source; for a Dask DataFrame, as a Series."""
    import dask.array as da
    from dask import delayed

    cluster, layout = data.cluster, data.layout
    chunks = [cluster.submit(score, part.rows) for part in data.members]
    sizes = cluster.round(data.names, len, chunks)  # raises the errors of scoring
    if layout is not None:
        sizes = layout.sizes
        chunks = [
            cluster.submit(scores_of_piece, k, size, _score_sources(data, chunks, k, sizes))
            for k, size in enumerate(sizes)
        ]
        if layout.frame is not None:
            return _as_series(cluster, layout.frame, chunks)
    return da.concatenate(
        [da.from_delayed(delayed(one), (size,), np.float64) for one, size in zip(chunks, sizes, strict=True)]
    )


def _as_series(cluster: Cluster, frame: Any, chunks: list[Future]) -> Any:
    """The scores of a Dask DataFrame's rows, with its index."""
    import dask.dataframe as dd
    import pandas as pd

    with cluster.readable_errors():
        indexes = cluster.client.compute(list(frame.index.to_delayed()), sync=False)
    parts = [cluster.submit(pd.Series, *pair) for pair in zip(chunks, indexes, strict=True)]
    return dd.from_delayed(
        parts, meta=pd.Series(dtype=np.float64), divisions=frame.divisions, verify_meta=False
    )


def _score_sources(
    data: DistributedDataset, scores: list[Future], piece: int, sizes: list[int]
) -> list[tuple[Future, Any]]:
    """The scores of each part with rows of a piece, and the positions of these rows in the part."""
    sources: list[tuple[Future, Any]] = []
    for values, part in zip(scores, data.members, strict=True):
        if piece in part.pieces:
            begin = sum(sizes[k] for k in part.pieces if k < piece)
            sources.append((values, begin if part.origin is None else part.origin))
    return sources


def scores_of_piece(piece: int, size: int, sources: list[tuple[AnyArray, int | Origin]]) -> AnyArray:
    """The scores of a piece: consecutive scores of one part, or selected scores of several parts."""
    scores = np.empty(size)
    for values, origin in sources:
        if isinstance(origin, int):
            return values[origin : origin + size]
        from_piece = origin[0] == piece
        scores[origin[1][from_piece]] = values[from_piece]
    return scores


def scores_by_part(data: DistributedDataset, scores: Any) -> list[Any]:
    """For each part, its scores in the row order of the part, or a model to compute them."""
    if hasattr(scores, "predict"):
        return [_linear_model(scores)] * data.n_parts
    if data.layout is None:
        reason = (
            "cannot be matched to rows, because the row order of the source is unknown here; give the model"
        )
        raise ParameterError("scores", scores, reason)
    sizes = data.layout.sizes
    if hasattr(scores, "to_delayed"):
        chunks = data.cluster.client.compute(np.ravel(scores.to_delayed()).tolist(), sync=False)
        nonempty = [k for k, size in enumerate(sizes) if size]
        if len(chunks) == len(nonempty):  # Dask leaves out chunks without rows
            by_piece = dict(zip(nonempty, chunks, strict=True))
            chunks = [by_piece.get(k, np.empty(0)) for k in range(len(sizes))]
        if len(chunks) != len(sizes):
            reason = (
                f"have {len(chunks)} chunks, but the data have {len(sizes)}; give the result of predict, or "
                "the model"
            )
            raise ParameterError("scores", scores, reason)
    else:
        values = np.asarray(scores)
        if values.shape != (sum(sizes),):
            raise ParameterError(
                "scores", values, f"must have shape ({sum(sizes)},), one score per row, not {values.shape}"
            )
        chunks = np.split(values, np.cumsum(sizes)[:-1])
    return [
        data.cluster.submit(scores_of_part, [chunks[k] for k in part.pieces], part.pieces, part.origin)
        for part in data.members
    ]


def _linear_model(ranker: Any) -> Any:
    """The model of a linear ranker, which is small to send; else the ranker itself."""
    try:
        return ranker.to_model()
    except (AttributeError, ValueError):
        return ranker


def scores_of_part(chunks: list[Any], pieces: Sequence[int], origin: Origin | None) -> AnyArray:
    """The scores of a part, from the scores of its pieces."""
    values = [np.asarray(one) for one in chunks]
    if origin is None:
        return np.concatenate(values)
    scores = np.empty(len(origin[0]))
    for piece, piece_scores in zip(pieces, values, strict=True):
        from_piece = origin[0] == piece
        scores[from_piece] = piece_scores[origin[1][from_piece]]
    return scores


class DistributedDataset(Dataset, RemoteData):
    """Judged documents on the workers of a Dask cluster; made by :func:`ranksieve.distribute`.

    Methods that work on parts accept it like a Dataset; those that need all rows at once raise an error.
    ``traffic`` counts the messages between this process and the workers.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Sequence[WorkerPart],
        feature_names: tuple[str, ...],
        query_ids: AnyArray,
        kind: str,
        layout: SourceLayout | None = None,
        source: str | None = None,
        profile: str | None = None,
    ) -> None:
        self.feature_names, self.texts, self.truth, self.document_weight = feature_names, {}, None, None
        self.source, self.profile, self._query_ids = source, profile, query_ids
        self.cluster, self.members, self._kind, self.layout = cluster, list(members), kind, layout

    def __getattr__(self, name: str) -> Any:
        if name in ROW_ATTRIBUTES:
            raise DataError(None, None, NEEDS_MEMORY.format(what="this"))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    @property
    def n_docs(self) -> int:
        return int(self.query_sizes.sum())

    @property
    def n_queries(self) -> int:
        return len(self._query_ids)

    @property
    def query_ids(self) -> AnyArray:
        return self._query_ids

    @cached_property
    def query_sizes(self) -> IntArray:
        return map_queries(self, operator.attrgetter("queries.sizes"))

    @cached_property
    def pairs_per_query(self) -> IntArray:
        return map_queries(self, operator.attrgetter("pairs_per_query"))

    @cached_property
    def pair_weights(self) -> FloatArray:
        return map_queries(self, operator.attrgetter("pair_weights"))

    @property
    def traffic(self) -> Traffic:
        """Messages between this process and the workers since the data were distributed."""
        return self.cluster.traffic

    @property
    def n_parts(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return (
            f"DistributedDataset({self.n_docs} documents, {self.n_queries} queries, {self.n_features} "
            f"features, {self._kind}, {self.n_parts} parts)"
        )

    @property
    def names(self) -> list[str]:
        """Names of the parts in messages."""
        return [part.name for part in self.members]

    def make_parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> PartObjects[T]:
        objects = [
            self.cluster.submit(_make_object, part.rows, make, tuple(map(part.share, per_query)))
            for part in self.members
        ]
        return PartsOnWorkers(self, objects)

    def map_parts(self, function: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
        return self.round(_call_on_rows, [function] * self.n_parts, self._shares(per_query))

    def round(
        self, function: Callable[..., T], *columns: Sequence[Any], common: tuple[Any, ...] = ()
    ) -> list[T]:
        """Run ``function(rows, *entries, *common)`` for each part, with its entry of each of ``columns``."""
        rows = [part.rows for part in self.members]
        return self.cluster.round(self.names, function, rows, *columns, common=common)

    def to_query_order(self, part_values: Sequence[AnyArray]) -> AnyArray:
        numbers = np.concatenate([part.numbers for part in self.members])
        values = np.concatenate(part_values)
        ordered = np.empty_like(values)
        ordered[numbers] = values
        return ordered

    def _shares(self, per_query: Sequence[AnyArray | None]) -> list[tuple[AnyArray | None, ...]]:
        return [tuple(map(part.share, per_query)) for part in self.members]

    def transform_parts(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        rows = [self.cluster.submit(change, part.rows) for part in self.members]
        members = [
            WorkerPart(part.name, new, part.numbers) for part, new in zip(self.members, rows, strict=True)
        ]
        names, kind = self.cluster.round(self.names, _names_and_kind, rows)[0]
        return self._with(members, self.query_ids, names, kind)

    def select_features(self, columns: Any) -> Dataset:
        return self.transform_parts(operator.methodcaller("select_features", self._columns(columns)))

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        return self.in_query_order(np.flatnonzero(chosen))

    def without_zero_weights(self) -> tuple[Dataset, IntArray]:
        sizes = map_queries(self, _sizes_without_zero_weights)
        numbers = np.flatnonzero(sizes)
        if len(numbers) == 0 or (sizes == self.query_sizes).all():
            return self, np.arange(self.n_queries)
        weighted = self if len(numbers) == self.n_queries else self.select_queries(numbers)
        return transform_parts(weighted, _drop_zero_weights), numbers

    def in_query_order(self, queries: IntArray) -> DistributedDataset:
        rank = np.full(self.n_queries, -1)  # of each query in the new order
        rank[queries] = np.arange(len(queries))
        members = []
        for part in self.members:
            chosen = np.flatnonzero(rank[part.numbers] >= 0)
            chosen = chosen[np.argsort(rank[part.numbers[chosen]])]
            if len(chosen):
                rows = self.cluster.submit(Dataset.in_query_order, part.rows, chosen)
                members.append(WorkerPart(part.name, rows, rank[part.numbers[chosen]]))
        if not members:
            raise ParameterError("queries", queries, "must choose at least one query")
        return self._with(members, self.query_ids[queries])

    def joined(self, other: Dataset) -> Dataset:
        if not isinstance(other, DistributedDataset):
            raise ParameterError("other", other, "must be distributed too")
        later = [WorkerPart(part.name, part.rows, part.numbers + self.n_queries) for part in other.members]
        ids = np.arange(self.n_queries + other.n_queries)
        return self._with([*self.members, *later], ids)

    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        from ranksieve.dask.objective import parted_objective

        return parted_objective(self, loss, query_weight)

    def predict_parts(self, score: Callable[[Dataset], AnyArray]) -> Any:
        return scores_as_array(self, score)

    def measure_parts(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        return self.round(_measure_rows, scores_by_part(self, scores), common=(measure,))

    def _with(
        self,
        members: Sequence[WorkerPart],
        query_ids: AnyArray,
        names: tuple[str, ...] | None = None,
        kind: str | None = None,
    ) -> DistributedDataset:
        return DistributedDataset(
            self.cluster, members, names or self.feature_names, query_ids, kind or self._kind, None,
            self.source, self.profile,
        )  # fmt: skip


class RemadeObject(Generic[T]):
    """An object made from the rows of a part; it is made again rather than sent or written to disk."""

    def __init__(self, make: Callable[..., T], shares: tuple[Any, ...]) -> None:
        self._make, self._shares = make, shares
        self._object: T | None = None

    def of(self, rows: Dataset) -> T:
        if self._object is None:
            self._object = self._make(rows, *self._shares)
        return self._object

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_object": None}


class PartsOnWorkers(PartObjects[T]):
    """One object per part of a distributed data set, on the worker of the part."""

    def __init__(self, data: DistributedDataset, objects: list[Future]) -> None:
        self._data, self._objects = data, objects

    def map(self, function: Callable[..., R], *args: object) -> list[R]:
        return self._data.round(_call_on_object, self._objects, common=(function, *args))

    def map_queries(self, function: Callable[..., AnyArray], *args: object) -> AnyArray:
        return self._data.to_query_order(self.map(function, *args))


def _make_object(rows: Dataset, make: Callable[..., T], shares: tuple[Any, ...]) -> RemadeObject[T]:
    remade = RemadeObject(make, shares)
    remade.of(rows)
    return remade


def _call_on_object(rows: Dataset, remade: RemadeObject[T], function: Callable[..., R], *args: object) -> R:
    return function(remade.of(rows), *args)


def _call_on_rows(rows: Dataset, function: Callable[..., T], shares: tuple[AnyArray | None, ...]) -> T:
    return function(rows, *shares)


def _measure_rows(rows: Dataset, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> T:
    return measure(rows, scores.predict(rows) if hasattr(scores, "predict") else scores)


def _names_and_kind(rows: Dataset) -> tuple[tuple[str, ...], str]:
    return rows.feature_names, str(rows.X.dtype.name)


def _sizes_without_zero_weights(part: Dataset) -> IntArray:
    if part.document_weight is None:
        return part.queries.sizes
    present = part.queries.group(part.document_weight) > 0
    return np.add.reduceat(present, part.queries.offsets[:-1], dtype=np.int64)


def _drop_zero_weights(part: Dataset) -> Dataset:
    """Drop documents of weight 0; in query order, so that no query moves if its first document is dropped."""
    if part.document_weight is None:
        return part
    order = part.queries.order
    return part.select_rows(order[part.document_weight[order] > 0])
