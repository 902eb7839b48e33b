"""A data set whose parts are on workers, and its scores in the row order of the source."""

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
from ranksieve.data.parts import ELSEWHERE, Parts, RemoteRows, changed, for_queries
from ranksieve.errors import DataError, ParameterError

ROWS = ("X", "y", "qid", "doc_ids", "comments")

Origin = tuple[IntArray, IntArray]
"""The piece of the source that each row of a part comes from, and its row there."""


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Part:
    """One part: its name in messages, its rows on a worker, and the numbers of its queries, ascending.

    ``pieces`` of the source are those that its rows are from, if that is known; ``origin`` is a future of
    each row's (piece, row), or None if they are all rows of these pieces, in order.
    """

    name: str
    rows: Future
    numbers: IntArray
    pieces: Sequence[int] = ()
    origin: Future | None = None

    def share(self, per_query: AnyArray | None) -> AnyArray | None:
        """The entries of its own queries."""
        return None if per_query is None else np.asarray(per_query)[self.numbers]


@dataclass(frozen=True, eq=False)
class Layout:
    """How many rows each piece of the source has, and the Dask DataFrame that they are from, if any."""

    sizes: list[int]
    frame: Any


def as_array(data: DistributedDataset, score: Callable[[Dataset], AnyArray]) -> Any:
    """A Dask array with one chunk per piece of the source; of a Dask DataFrame a Series with its index."""
    import dask.array as da
    from dask import delayed

    cluster, layout = data.cluster, data.layout
    chunks = [cluster.submit(score, part.rows) for part in data.members]
    sizes = cluster.round(data.names, len, chunks)  # where a score cannot be had, this says why
    if layout is not None:
        sizes = layout.sizes
        chunks = [
            cluster.submit(chunk, k, size, _sources(data, chunks, k, sizes)) for k, size in enumerate(sizes)
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

    with cluster.plain_faults():
        indexes = cluster.client.compute(list(frame.index.to_delayed()), sync=False)
    parts = [cluster.submit(pd.Series, *pair) for pair in zip(chunks, indexes, strict=True)]
    return dd.from_delayed(
        parts, meta=pd.Series(dtype=np.float64), divisions=frame.divisions, verify_meta=False
    )


def _sources(
    data: DistributedDataset, scores: list[Future], piece: int, sizes: list[int]
) -> list[tuple[Future, Any]]:
    """The scores of the parts that have rows of a piece, and where in them its rows are."""
    sources: list[tuple[Future, Any]] = []
    for values, part in zip(scores, data.members, strict=True):
        if piece in part.pieces:
            begin = sum(sizes[k] for k in part.pieces if k < piece)
            sources.append((values, begin if part.origin is None else part.origin))
    return sources


def chunk(piece: int, size: int, sources: list[tuple[AnyArray, int | Origin]]) -> AnyArray:
    """The scores of a piece: a run of those of one part, or rows of several."""
    scores = np.empty(size)
    for values, origin in sources:
        if isinstance(origin, int):
            return values[origin : origin + size]
        mine = origin[0] == piece
        scores[origin[1][mine]] = values[mine]
    return scores


def by_part(data: DistributedDataset, scores: Any) -> list[Any]:
    """What gives the scores of each part: a model, or scores of source rows in the order of the part."""
    if hasattr(scores, "predict"):
        return [_light(scores)] * data.n_parts
    if data.layout is None:
        reason = "are in the row order of a source that is not known here; give the model instead"
        raise ParameterError("scores", scores, reason)
    sizes = data.layout.sizes
    if hasattr(scores, "to_delayed"):
        chunks = data.cluster.client.compute(np.ravel(scores.to_delayed()).tolist(), sync=False)
        filled = [k for k, size in enumerate(sizes) if size]
        if len(chunks) == len(filled):  # Dask leaves out chunks without rows
            given = dict(zip(filled, chunks, strict=True))
            chunks = [given.get(k, np.empty(0)) for k in range(len(sizes))]
        if len(chunks) != len(sizes):
            reason = (
                f"have {len(chunks)} chunks, but the data came in {len(sizes)}; give them as predict returns "
                "them, or the model"
            )
            raise ParameterError("scores", scores, reason)
    else:
        values = np.asarray(scores)
        if values.shape != (sum(sizes),):
            raise ParameterError(
                "scores", values, f"must have shape ({sum(sizes)},), one score per row, got {values.shape}"
            )
        chunks = np.split(values, np.cumsum(sizes)[:-1])
    return [
        data.cluster.submit(of_part, [chunks[k] for k in part.pieces], part.pieces, part.origin)
        for part in data.members
    ]


def _light(ranker: Any) -> Any:
    """What scores like a ranker and is soon sent: its linear model, if it has one."""
    try:
        return ranker.to_model()
    except (AttributeError, ValueError):
        return ranker


def of_part(chunks: list[Any], pieces: Sequence[int], origin: Origin | None) -> AnyArray:
    """The scores of a part's rows, from those of the pieces that its rows come from."""
    values = [np.asarray(one) for one in chunks]
    if origin is None:
        return np.concatenate(values)
    scores = np.empty(len(origin[0]))
    for piece, of_piece in zip(pieces, values, strict=True):
        mine = origin[0] == piece
        scores[mine] = of_piece[origin[1][mine]]
    return scores


class DistributedDataset(Dataset, RemoteRows):
    """Judged documents on the workers of a Dask cluster; made by :func:`ranksieve.distribute`.

    Methods that work in parts take it where a Dataset goes. What needs all rows at once is refused.
    ``traffic`` counts what went between this process and the workers.
    """

    def __init__(
        self,
        cluster: Cluster,
        pieces: Sequence[Part],
        feature_names: tuple[str, ...],
        query_ids: AnyArray,
        kind: str,
        layout: Layout | None = None,
        source: str | None = None,
        profile: str | None = None,
    ) -> None:
        self.feature_names, self.texts, self.truth, self.document_weight = feature_names, {}, None, None
        self.source, self.profile, self._query_ids = source, profile, query_ids
        self.cluster, self.members, self._kind, self.layout = cluster, list(pieces), kind, layout

    def __getattr__(self, name: str) -> Any:
        if name in ROWS:
            raise DataError(None, None, ELSEWHERE.format(what="this"))
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
        return for_queries(self, operator.attrgetter("queries.sizes"))

    @cached_property
    def pairs_per_query(self) -> IntArray:
        return for_queries(self, operator.attrgetter("pairs_per_query"))

    @cached_property
    def pair_weights(self) -> FloatArray:
        return for_queries(self, operator.attrgetter("pair_weights"))

    @property
    def traffic(self) -> Traffic:
        """What went between this process and the workers since the data were distributed."""
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
        """What parts are called in messages."""
        return [part.name for part in self.members]

    def parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]:
        kept = [
            self.cluster.submit(_settled, part.rows, make, tuple(map(part.share, per_query)))
            for part in self.members
        ]
        return PartsOnWorkers(self, kept)

    def in_parts(self, find: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
        return self.round(_found, [find] * self.n_parts, self._shares(per_query))

    def round(self, find: Callable[..., T], *columns: Sequence[Any], common: tuple[Any, ...] = ()) -> list[T]:
        """One task per part: ``find(rows, its entry of each column, *common)``."""
        rows = [part.rows for part in self.members]
        return self.cluster.round(self.names, find, rows, *columns, common=common)

    def in_order_of_queries(self, found: Sequence[AnyArray]) -> AnyArray:
        numbers = np.concatenate([part.numbers for part in self.members])
        values = np.concatenate(found)
        ordered = np.empty_like(values)
        ordered[numbers] = values
        return ordered

    def _shares(self, per_query: Sequence[AnyArray | None]) -> list[tuple[AnyArray | None, ...]]:
        return [tuple(map(part.share, per_query)) for part in self.members]

    def changed(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        rows = [self.cluster.submit(change, part.rows) for part in self.members]
        pieces = [Part(part.name, new, part.numbers) for part, new in zip(self.members, rows, strict=True)]
        names, kind = self.cluster.round(self.names, _names_and_kind, rows)[0]
        return self._with(pieces, self.query_ids, names, kind)

    def select_features(self, columns: Any) -> Dataset:
        return self.changed(operator.methodcaller("select_features", self._columns(columns)))

    def select_queries(self, queries: IntArray | BoolArray) -> Dataset:
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        return self.in_query_order(np.flatnonzero(chosen))

    def without_weightless(self) -> tuple[Dataset, IntArray]:
        sizes = for_queries(self, _sizes_without_weightless)
        numbers = np.flatnonzero(sizes)
        if len(numbers) == 0 or (sizes == self.query_sizes).all():
            return self, np.arange(self.n_queries)
        kept = self if len(numbers) == self.n_queries else self.select_queries(numbers)
        return changed(kept, _without_weightless), numbers

    def in_query_order(self, queries: IntArray) -> DistributedDataset:
        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))
        pieces = []
        for part in self.members:
            here = np.flatnonzero(place[part.numbers] >= 0)
            here = here[np.argsort(place[part.numbers[here]])]
            if len(here):
                rows = self.cluster.submit(Dataset.in_query_order, part.rows, here)
                pieces.append(Part(part.name, rows, place[part.numbers[here]]))
        if not pieces:
            raise ParameterError("queries", queries, "must choose at least one query")
        return self._with(pieces, self.query_ids[queries])

    def joined(self, other: Dataset) -> Dataset:
        if not isinstance(other, DistributedDataset):
            raise ParameterError("other", other, "must be distributed too")
        later = [Part(part.name, part.rows, part.numbers + self.n_queries) for part in other.members]
        ids = np.arange(self.n_queries + other.n_queries)
        return self._with([*self.members, *later], ids)

    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        from ranksieve.dask.objective import parted_objective

        return parted_objective(self, loss, query_weight)

    def predicted(self, score: Callable[[Dataset], AnyArray]) -> Any:
        return as_array(self, score)

    def measured(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        return self.round(_measured, by_part(self, scores), common=(measure,))

    def _with(
        self,
        pieces: Sequence[Part],
        query_ids: AnyArray,
        names: tuple[str, ...] | None = None,
        kind: str | None = None,
    ) -> DistributedDataset:
        return DistributedDataset(
            self.cluster, pieces, names or self.feature_names, query_ids, kind or self._kind, None,
            self.source, self.profile,
        )  # fmt: skip


class Settled(Generic[T]):
    """What was made of a part. It is never sent or written to disk, but made again from the part's rows."""

    def __init__(self, make: Callable[..., T], shares: tuple[Any, ...]) -> None:
        self._make, self._shares = make, shares
        self._made: T | None = None

    def of(self, rows: Dataset) -> T:
        if self._made is None:
            self._made = self._make(rows, *self._shares)
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}


class PartsOnWorkers(Parts[T]):
    """One object per part of a distributed data set, on the worker that has the part."""

    def __init__(self, data: DistributedDataset, kept: list[Future]) -> None:
        self._data, self._kept = data, kept

    def ask(self, find: Callable[..., R], *args: object) -> list[R]:
        return self._data.round(_asked, self._kept, common=(find, *args))

    def for_queries(self, find: Callable[..., AnyArray], *args: object) -> AnyArray:
        return self._data.in_order_of_queries(self.ask(find, *args))


def _settled(rows: Dataset, make: Callable[..., T], shares: tuple[Any, ...]) -> Settled[T]:
    settled = Settled(make, shares)
    settled.of(rows)
    return settled


def _asked(rows: Dataset, settled: Settled[T], find: Callable[..., R], *args: object) -> R:
    return find(settled.of(rows), *args)


def _found(rows: Dataset, find: Callable[..., T], shares: tuple[AnyArray | None, ...]) -> T:
    return find(rows, *shares)


def _measured(rows: Dataset, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> T:
    return measure(rows, scores.predict(rows) if hasattr(scores, "predict") else scores)


def _names_and_kind(rows: Dataset) -> tuple[tuple[str, ...], str]:
    return rows.feature_names, str(rows.X.dtype.name)


def _sizes_without_weightless(part: Dataset) -> IntArray:
    if part.document_weight is None:
        return part.queries.sizes
    present = part.queries.group(part.document_weight) > 0
    return np.add.reduceat(present, part.queries.offsets[:-1], dtype=np.int64)


def _without_weightless(part: Dataset) -> Dataset:
    """In query order, since a query must not come later because its first document is absent."""
    if part.document_weight is None:
        return part
    order = part.queries.order
    return part.select_rows(order[part.document_weight[order] > 0])
