"""The feature matrix as an objective reads it: products and columns, in memory or block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import local
from typing import Any, TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, map_shares, split_blocks
from ranksieve._types import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.inputs import check_features
from ranksieve.data.matrix import (
    StreamedMatrix,
    dense_block,
    in_rows,
    is_sparse,
    rows_to_multiply,
    spread_and_largest,
    with_columns,
)
from ranksieve.data.queries import Queries
from ranksieve.kernels.linear import (
    add_column_sums,
    add_columns,
    chosen_products,
    column_sums,
    gather,
    row_products,
)

FAR = 32.0  # times the spread of a feature: from here on an offset costs digits of its differences
NOISY = 2.0**20  # times the least spread: a constant so large could pass for a feature by its rounding errors
KEPT_BYTES = 2**26  # of columns kept side by side
COLUMN_CELLS = 2**23  # of single columns: 64 MB
FEW = 4  # a weight vector with a fourth of its weights, or fewer, is multiplied weight by weight

Read: TypeAlias = Callable[[int, int], tuple[AnyArray, IntArray]]
"""The rows first..last, and the places of some columns in them."""


def feature_matrix(
    X: Matrix,
    queries: Queries,
    cuts: IntArray,
    names: Sequence[str] | None = None,
    extremes: tuple[FloatArray, FloatArray] | None = None,
) -> FeatureMatrix:
    """X as an objective reads it; ``cuts`` splits the queries into blocks of work.

    ``extremes`` tells spread and largest value of each feature if X is but a part of the data. A sparse
    matrix with columns far from zero is centred here, once.
    """
    spread, reach = extremes or spread_and_largest(X, queries, cuts)
    varies = spread > 0
    least = float(np.min(spread[varies], initial=np.inf))  # on this scale a constant must not make noise
    columns = np.flatnonzero(reach > np.where(varies, FAR * spread, NOISY * least))
    reach[columns] = spread[columns]
    check_features(spread, reach, names)
    far = NONE_FAR
    if len(columns):
        first = dense_block(X, queries.order[queries.offsets[:-1]], columns)
        far = FarColumns(columns, first, queries.restore(queries.query_of_grouped))
        if is_sparse(X):
            values = dense_block(X, slice(None), columns)
            X, far = with_columns(X, columns, values - first[far.query]), NONE_FAR
    return _features(X, queries, far, varies, reach)


def _features(X: Matrix, *args: Any) -> FeatureMatrix:
    """The kind of feature matrix that X needs."""
    if isinstance(X, StreamedMatrix):
        return StreamedFeatures(X, *args)
    values = in_rows(X)
    return FeaturesByRows(X, *args) if values is None else DenseFeatures(values, *args)


@dataclass(frozen=True, eq=False)
class FarColumns:
    """Columns whose values lie far from zero for their spread, and what is taken off them when they are read.

    Only differences within a query count, so that is the value of the query's first document: ``first`` has
    one row per query, ``query`` is the query of each row of X. So differences keep their digits.
    """

    columns: IntArray
    first: FloatArray
    query: IntArray

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, IntArray]:
        """As kernels take them."""
        return self.columns, self.first, self.query

    def weighted(self, w: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """As kernels take them, with their weights."""
        return self.columns, w[self.columns], self.first, self.query

    def take_off(self, rows: IntArray, columns: IntArray, block: AnyArray) -> None:
        """Centre the far ones among some columns of some rows, in place."""
        _, among, far = np.intersect1d(columns, self.columns, return_indices=True)
        if len(far):
            block[:, among] -= self.first[self.query[rows]][:, far]

    def restricted(self, columns: IntArray) -> FarColumns:
        """Those among some columns of X, whose places are the columns then."""
        if not len(self):
            return self
        _, places, among = np.intersect1d(columns, self.columns, return_indices=True)
        return FarColumns(places, np.ascontiguousarray(self.first[:, among]), self.query)


NO_COLUMNS = np.empty(0, dtype=np.int64)
NONE_FAR = FarColumns(NO_COLUMNS, np.empty((0, 0)), NO_COLUMNS)


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """Some columns side by side, ascending, the rows in grouped order."""

    columns: IntArray
    values: AnyArray

    def places(self, columns: IntArray) -> IntArray:
        return np.searchsorted(self.columns, columns)


class FeatureMatrix(ABC):
    """X, read in fixed blocks of rows; of far columns what :class:`FarColumns` leaves.

    Sums are in float64. Partial sums are added in block order, so results do not depend on the number of
    threads, nor on where the values are read from. Kinds of matrices differ in how some rows are multiplied.

    Attributes
    ----------
    reach : array
        max |x_j| of each feature as it is read.
    varies : array of bool
        Features that are not constant within every query.
    """

    def __init__(
        self, X: Matrix, queries: Queries, far: FarColumns, varies: BoolArray, reach: FloatArray
    ) -> None:
        self.X, self.queries, self.far, self.varies, self.reach = X, queries, far, varies, reach
        self.n_features = int(X.shape[1])
        self._cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._kept: KeptColumns | None = None
        self._columns: dict[int, FloatArray] = {}

    @abstractmethod
    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        """Some rows of X times w."""

    @abstractmethod
    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        """Some rows of Xᵀ times g, which has one number for each of them."""

    @abstractmethod
    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        """Xᵀg for the rows between each two cuts."""

    @abstractmethod
    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        """Write to ``block`` some columns of the rows start..stop, counted in grouped order."""

    def scores(self, w: FloatArray) -> FloatArray:
        """Xw, in input order."""
        used, scores = self._used(w), np.empty(self.X.shape[0])
        if used is not None and (kept := self._kept_with(used)) is not None:
            values, places, weights = kept.values, kept.places(used), w[used]
            far = NONE_FAR.weighted(w)  # these columns are centred already
            map_shares(
                lambda a, b: chosen_products(values, places, weights, *far, a, b, scores[a:b]), self._cuts
            )
            return np.asarray(self.queries.restore(scores))

        def work(first: int, last: int) -> None:
            scores[first:last] = self.scores_of(w, first, last)

        map_shares(work, self._cuts)
        return scores

    def _used(self, w: FloatArray) -> IntArray | None:
        """The columns of the weights that are not 0, far ones last, if they are few."""
        used, far = np.flatnonzero(w), self.far.columns
        if FEW * len(used) > self.n_features:
            return None
        return np.concatenate([np.setdiff1d(used, far), np.intersect1d(used, far)])

    def transposed(self, g: FloatArray) -> FloatArray:
        """Xᵀg, g in input order."""
        return ordered_sum(self.transposed_parts(g, self._cuts))

    def transposed_columns(self, g: FloatArray, columns: IntArray) -> FloatArray:
        """Some entries of Xᵀg, g in input order."""
        return self.transposed(g)[columns]

    def keep(self, columns: IntArray) -> None:
        """Copy some columns side by side, for scores and Hessians of these; less is read of X then."""
        kept = np.sort(columns)
        kind = np.dtype(np.float64) if len(np.intersect1d(kept, self.far.columns)) else self.X.dtype
        n_bytes = self.queries.n_rows * len(kept) * kind.itemsize
        if n_bytes > KEPT_BYTES or 2 * len(kept) > self.n_features:
            self._kept = None
            return
        values = np.empty((self.queries.n_rows, len(kept)), kind)

        def work(first: int, last: int) -> None:
            self._put_columns(first, last, kept, values[first:last])

        map_shares(work, self._cuts)
        self._kept = KeptColumns(kept, values)

    def keeps(self, columns: IntArray) -> bool:
        """Whether these columns are kept side by side."""
        return self._kept_with(columns) is not None

    def _kept_with(self, columns: IntArray) -> KeptColumns | None:
        kept = self._kept  # read once: another thread may keep others
        return kept if kept is not None and set(kept.columns.tolist()) >= set(columns.tolist()) else None

    def reader(self, columns: IntArray) -> Read:
        """Reads some columns of rows that are counted in grouped order; not to be written to."""
        if (kept := self._kept_with(columns)) is not None:
            values, places = kept.values, kept.places(columns)
            return lambda a, b: (values[a:b], places)
        places = np.arange(len(columns))
        return lambda a, b: (self._grouped_columns(a, b, columns), places)

    def column(self, j: int) -> FloatArray:
        """Feature ``j`` of every document, in input order: what one unit of its weight adds to the scores.

        Those that were asked for are kept, because the same few are asked for again; not to be written to.
        """
        columns = self._columns
        if j not in columns:
            if (len(columns) + 1) * self.queries.n_rows > COLUMN_CELLS:
                columns = self._columns = {}
            rows = self._grouped_columns(0, self.queries.n_rows, np.array([j]))
            columns[j] = np.asarray(self.queries.restore(np.ascontiguousarray(rows[:, 0])))
        return columns[j]

    def _grouped_columns(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        """Some columns of rows that are counted in grouped order."""
        block = np.empty((stop - start, len(columns)))
        self._put_columns(start, stop, columns, block)
        return block

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        X, far = self._some_columns(columns), self.far.restricted(columns)
        return _features(X, self.queries, far, self.varies[columns], self.reach[columns])

    def _some_columns(self, columns: IntArray) -> Matrix:
        return self.X[:, columns]


class DenseFeatures(FeatureMatrix):
    """A dense array of float32 or float64 in C order (also memory-mapped), which kernels read row by row."""

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        scores, far, used = np.empty(last - first), self.far.weighted(w), self._used(w)
        if used is None:
            near = w.copy()
            near[self.far.columns] = 0.0
            row_products(self.X, near, *far, first, last, scores)
        else:
            columns = used[: len(used) - np.count_nonzero(far[1])]
            chosen_products(self.X, columns, w[columns], *far, first, last, scores)
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        sums = np.zeros((1, self.n_features))
        column_sums(self.X, g, *self.far.arrays, np.array([first, last]), sums)
        return np.asarray(sums[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        sums = np.zeros((len(cuts) - 1, self.n_features))

        def work(first: int, last: int) -> None:
            rows = cuts[first : last + 1]
            column_sums(self.X, g[rows[0] : rows[-1]], *self.far.arrays, rows, sums[first:last])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def reader(self, columns: IntArray) -> Read:
        if self.keeps(columns) or len(self.far) or not self.queries.contiguous:
            return super().reader(columns)
        return lambda a, b: (self.X[a:b], columns)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = self.queries.rows_between(start, stop)
        gather(self.X, rows, columns, block)
        self.far.take_off(rows, columns, block)

    def _some_columns(self, columns: IntArray) -> Matrix:
        return np.take(self.X, columns, axis=1)


class FeaturesByRows(FeatureMatrix):
    """A CSR matrix, or an array that takes too much memory to be put in row order: products of some rows."""

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        return np.asarray(self._rows(first, last) @ w)

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        return np.asarray(self._rows(first, last).T @ g)

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        return np.array(map_blocks(lambda a, b: self._rows(a, b).T @ g[a:b], cuts))

    def _rows(self, start: int, stop: int) -> Matrix:
        block = rows_to_multiply(self.X, start, stop)
        if not len(self.far):
            return block
        block = block.copy() if np.may_share_memory(block, self.X) else block
        block[:, self.far.columns] -= self.far.first[self.far.query[start:stop]]
        return block

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = self.queries.rows_between(start, stop)
        block[:] = dense_block(self.X, slice(start, stop) if self.queries.contiguous else rows, columns)
        self.far.take_off(rows, columns, block)


PIECE_ROWS = 20_000  # read at a time
CHUNK_ROWS = 5000  # turned from columns into rows at a time: few enough for the cache


@dataclass
class Passes:
    """Passes over the data: ``full`` ones read all features, ``partial`` ones ``columns`` of them in all."""

    n_features: int
    full: int = 0
    partial: int = 0
    columns: int = 0

    def add(self, n_columns: int) -> None:
        """Count a pass over so many columns."""
        if n_columns == self.n_features:
            self.full += 1
        elif n_columns:
            self.partial += 1
            self.columns += n_columns

    @property
    def equivalent(self) -> float:
        """How many full passes read as much."""
        return self.full + self.columns / self.n_features

    def __str__(self) -> str:
        return (
            f"{self.full} full passes over the features and {self.partial} partial ones, which together read "
            f"as much as {self.equivalent:.3g} full passes"
        )


class StreamedFeatures(FeatureMatrix):
    """A :class:`FeatureMatrix` of a :class:`StreamedMatrix`: the same bits, read a few rows at a time.

    Columns that an operation has no use for are not read; ``passes`` counts what was.
    """

    def __init__(
        self, X: StreamedMatrix, queries: Queries, far: FarColumns, varies: BoolArray, reach: FloatArray
    ) -> None:
        super().__init__(X, queries, far, varies, reach)
        self.passes, self._latest = Passes(self.n_features), local()
        self.passes.add(self.n_features)  # that over the ranges of the features

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        part: Any = super().restricted(columns)
        part.passes = self.passes
        return part  # type: ignore[no-any-return]

    def scores(self, w: FloatArray) -> FloatArray:
        used = np.flatnonzero(w)
        if not (self._used(w) is not None and self.keeps(used)):
            self.passes.add(len(used))
        return super().scores(w)

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores = self._used(w), np.zeros(last - first)
        if used is None:
            return self._scores_of_many(w, first, last)
        far = np.intersect1d(used, self.far.columns)
        among, weights = np.searchsorted(self.far.columns, far), w[used]
        for a, b, columns in self._pieces(first, last, used):
            part = scores[a - first : b - first]
            add_columns(columns, weights, len(used) - len(far), *self._shifts(a, b, among), part)
        return scores

    def _scores_of_many(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores, near = np.flatnonzero(w), np.empty(last - first), w.copy()
        near[self.far.columns] = 0.0
        for a, b, values in self._chunks(first, last, used):
            wide = np.zeros((b - a, self.n_features), values.dtype)
            wide[:, used] = values
            far = (self.far.columns, w[self.far.columns], *self._shifts(a, b))
            row_products(wide, near, *far, 0, b - a, scores[a - first : b - first])
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        sums = np.zeros((1, self.n_features))
        self._add_sums(g, first, last, np.arange(self.n_features), sums)
        return np.asarray(sums[0])

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        self.passes.add(self.n_features)
        return self._sums_of_parts(g, cuts, np.arange(self.n_features))

    def transposed_columns(self, g: FloatArray, columns: IntArray) -> FloatArray:
        self.passes.add(len(columns))
        return ordered_sum(self._sums_of_parts(g, self._cuts, columns))

    def _sums_of_parts(self, g: FloatArray, cuts: IntArray, columns: IntArray) -> FloatArray:
        sums = np.zeros((len(cuts) - 1, len(columns)))

        def work(first: int, last: int) -> None:
            for part in range(first, last):
                begin, end = cuts[part : part + 2].tolist()
                self._add_sums(g[begin:end], begin, end, columns, sums[part : part + 1])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def _add_sums(self, g: FloatArray, first: int, last: int, columns: IntArray, sums: FloatArray) -> None:
        """Add to the one row of ``sums`` some rows of Xᵀ times g."""
        _, far, among = np.intersect1d(columns, self.far.columns, return_indices=True)
        for a, b, values in self._pieces(first, last, columns):
            add_column_sums(values, g[a - first : b - first], far, *self._shifts(a, b, among), sums[0])

    def reader(self, columns: IntArray) -> Read:
        if not self.keeps(columns):
            self.passes.add(len(columns))
        return super().reader(columns)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        if not self.queries.contiguous:
            rows = self.queries.rows_between(start, stop)
            block[:] = dense_block(self.X, rows, columns)
            self.far.take_off(rows, columns, block)
            return
        for a, b, values in self._chunks(start, stop, columns):
            block[a - start : b - start] = values
            self.far.take_off(np.arange(a, b), columns, block[a - start : b - start])

    def _shifts(self, first: int, last: int, among: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """What far columns (some ``among`` them) are read less of, and the query of some rows."""
        if not len(self.far):
            return NONE_FAR.first, NONE_FAR.query
        query = self.far.query[first:last]
        if among is None:
            return self.far.first, query
        queries, place = np.unique(query, return_inverse=True)
        return np.ascontiguousarray(self.far.first[queries][:, among]), place

    def _chunks(self, first: int, last: int, columns: IntArray) -> Iterator[tuple[int, int, AnyArray]]:
        """(from, to, values in row order) of some columns, a few rows at a time."""
        for begin, end, values in self._pieces(first, last, columns):
            for a in range(begin, end, CHUNK_ROWS):
                b = min(a + CHUNK_ROWS, end)
                yield a, b, np.ascontiguousarray(values[:, a - begin : b - begin].T)

    def _pieces(self, first: int, last: int, columns: IntArray) -> Iterator[tuple[int, int, AnyArray]]:
        """(from, to, one row per column) of some columns, as many rows at a time as are read at once."""
        for begin, end in self.X.pieces(first, last, PIECE_ROWS):
            a, b = max(begin, first), min(end, last)
            yield a, b, self._piece(begin, end, columns)[:, a - begin : b - begin]

    def _piece(self, begin: int, end: int, columns: IntArray) -> AnyArray:
        """Some columns of some rows, one row per column; each thread keeps its latest for its next call."""
        known = getattr(self._latest, "piece", None)
        if known is None or known[0] != (begin, end) or not np.array_equal(known[1], columns):
            self.X.read_ahead(end, min(2 * end - begin, self.X.shape[0]), columns)
            known = self._latest.piece = ((begin, end), columns, self.X.read(begin, end, columns).T)
        return np.asarray(known[2])


def chosen_columns(values: AnyArray, places: IntArray) -> FloatArray:
    """Some columns, in float64 and C order."""
    return np.ascontiguousarray(values[:, places], dtype=np.float64)


def ordered_sum(parts: Iterable[FloatArray]) -> FloatArray:
    """The sum of arrays, from the first to the last, each taken when the one before has been added."""
    parts = iter(parts)
    total = np.array(next(parts), dtype=np.float64)
    for part in parts:
        total += part
    return total
