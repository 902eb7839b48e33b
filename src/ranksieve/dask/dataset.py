"""DistributedDataset: parts of whole queries, each a Dataset in the memory of a Dask worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from distributed import Future

from ranksieve._types import AnyArray, IntArray
from ranksieve.dask.cluster import Cluster, Traffic
from ranksieve.data.dataset import Dataset, Parts
from ranksieve.data.remote import RemoteDataset
from ranksieve.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Part:
    """One part: its name in messages, its rows on a worker, and the numbers of its queries, ascending."""

    name: str
    rows: Future
    numbers: IntArray

    def share(self, per_query: AnyArray | None) -> AnyArray | None:
        """The entries of its own queries."""
        return None if per_query is None else np.asarray(per_query)[self.numbers]


class DistributedDataset(RemoteDataset):
    """Judged documents on the workers of a Dask cluster; made by :func:`ranksieve.distribute`.

    Methods that work in parts take it where a Dataset goes. ``traffic`` counts what went between this process
    and the workers.
    """

    def __init__(
        self,
        cluster: Cluster,
        pieces: Sequence[Part],
        feature_names: tuple[str, ...],
        query_ids: AnyArray,
        kind: str,
        layout: Any = None,
        source: str | None = None,
        profile: str | None = None,
    ) -> None:
        super().__init__(feature_names, query_ids, source, profile)
        self.cluster, self.held, self._kind, self.layout = cluster, list(pieces), kind, layout

    @property
    def traffic(self) -> Traffic:
        """What went between this process and the workers since the data were distributed."""
        return self.cluster.traffic

    @property
    def n_parts(self) -> int:
        return len(self.held)

    def __repr__(self) -> str:
        return (
            f"DistributedDataset({self.n_docs} documents, {self.n_queries} queries, {self.n_features} "
            f"features, {self._kind}, {self.n_parts} parts)"
        )

    @property
    def names(self) -> list[str]:
        """What parts are called in messages."""
        return [part.name for part in self.held]

    def parts(self, make: Callable[..., T], *per_query: AnyArray | None) -> Parts[T]:
        kept = [
            self.cluster.submit(_settled, part.rows, make, tuple(map(part.share, per_query)))
            for part in self.held
        ]
        return PartsOnWorkers(self, kept)

    def in_parts(self, find: Callable[..., T], *per_query: AnyArray | None) -> list[T]:
        return self.round(_found, [find] * self.n_parts, self._shares(per_query))

    def round(self, find: Callable[..., T], *columns: Sequence[Any], common: tuple[Any, ...] = ()) -> list[T]:
        """One task per part: ``find(rows, its entry of each column, *common)``."""
        rows = [part.rows for part in self.held]
        return self.cluster.round(self.names, find, rows, *columns, common=common)

    def for_queries(self, find: Callable[..., AnyArray], *per_query: AnyArray | None) -> AnyArray:
        return self.in_order_of_queries(self.in_parts(find, *per_query))

    def in_order_of_queries(self, found: Sequence[AnyArray]) -> AnyArray:
        """What was found for the queries of each part, as one array for all queries."""
        numbers = np.concatenate([part.numbers for part in self.held])
        values = np.concatenate(found)
        ordered = np.empty_like(values)
        ordered[numbers] = values
        return ordered

    def _shares(self, per_query: Sequence[AnyArray | None]) -> list[tuple[AnyArray | None, ...]]:
        return [tuple(map(part.share, per_query)) for part in self.held]

    def changed(self, change: Callable[[Dataset], Dataset]) -> Dataset:
        rows = [self.cluster.submit(change, part.rows) for part in self.held]
        pieces = [Part(part.name, new, part.numbers) for part, new in zip(self.held, rows, strict=True)]
        names, kind = self.cluster.round(self.names, _names_and_kind, rows)[0]
        return self._with(pieces, self.query_ids, names, kind)

    def in_query_order(self, queries: IntArray) -> Dataset:
        place = np.full(self.n_queries, -1)
        place[queries] = np.arange(len(queries))
        pieces = []
        for part in self.held:
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
        later = [Part(part.name, part.rows, part.numbers + self.n_queries) for part in other.held]
        ids = np.arange(self.n_queries + other.n_queries)
        return self._with([*self.held, *later], ids)

    def objective(self, loss: Any, query_weight: AnyArray | None) -> Any:
        from ranksieve.dask.objective import PartedObjective

        return PartedObjective(self, loss, query_weight)

    def predicted(self, score: Callable[[Dataset], AnyArray]) -> Any:
        from ranksieve.dask.scores import as_array

        return as_array(self, score)

    def measured(self, scores: Any, measure: Callable[[Dataset, AnyArray], T]) -> list[T]:
        from ranksieve.dask.scores import by_part

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
