"""The feature matrix as an objective reads it: products and columns, in memory or block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import local
from typing import TypeAlias

import numpy as np

from ranksieve._parallel import map_blocks, map_shares, split_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.data.magnitudes import check_features
from ranksieve.data.matrix import (
    dense_block,
    in_rows,
    is_sparse,
    rows_to_multiply,
    spread_and_largest,
    with_columns,
)
from ranksieve.data.queries import Queries
from ranksieve.data.streamed import StreamedMatrix
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


class FeatureMatrix:
    """X, dense float32/float64 (also memory-mapped) or CSR, read in fixed blocks of rows.

    It is copied only if it is dense, not in C order, and small enough (:func:`in_rows`).

    Sums are in float64. Partial sums are added in block order, so results do not depend on the number of
    threads, nor on where the values are read from.

    Only differences within a query count. A feature whose values lie far from zero for their spread is
    therefore read less the value of the query's first document, so that its differences keep their digits.
    ``extremes`` tells spread and largest value of each feature if X is but a part of the data.

    Attributes
    ----------
    reach : array
        max |x_j| of each feature as it is read.
    varies : array of bool
        Features that are not constant within every query.
    """

    def __init__(
        self,
        X: Matrix,
        queries: Queries,
        cuts: IntArray,
        names: Sequence[str] | None = None,
        extremes: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        self.X, self.queries = X, queries
        self.n_features = int(X.shape[1])
        self._cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._kept: tuple[IntArray, AnyArray] | None = None  # columns side by side, in grouped order
        self._columns: dict[int, FloatArray] = {}
        spread, largest = extremes or spread_and_largest(X, queries, cuts)
        self.varies = spread > 0
        self._far = np.flatnonzero(largest > np.where(self.varies, FAR * spread, NOISY * _least(spread)))
        self.reach = largest
        self.reach[self._far] = spread[self._far]
        check_features(spread, self.reach, names)
        self._centre_far()
        self._values = in_rows(self.X)

    def _centre_far(self) -> None:
        """Keep the first value of each query in the far columns; a sparse matrix is centred here."""
        self._query, self._first = np.empty(0, dtype=np.int64), np.empty((0, 0))
        if not len(self._far):
            return
        queries = self.queries
        self._query = queries.restore(queries.query_of_grouped)
        self._first = dense_block(self.X, queries.order[queries.offsets[:-1]], self._far)
        if is_sparse(self.X):
            values = dense_block(self.X, slice(None), self._far)
            self.X = with_columns(self.X, self._far, values - self._first[self._query])
            self._far = self._far[:0]

    def scores(self, w: FloatArray) -> FloatArray:
        """Xw, in input order."""
        used = self._used(w)
        if used is not None and (kept := self._kept) is not None and _holds(kept[0], used):
            values, places, weights = kept[1], np.searchsorted(kept[0], used), w[used]
            parts = np.empty(len(values))
            map_shares(
                lambda a, b: chosen_products(values, places, weights, *NONE_FAR, a, b, parts[a:b]), self._cuts
            )
            return np.asarray(self.queries.restore(parts))
        scores = np.empty(self.X.shape[0])

        def work(first: int, last: int) -> None:
            scores[first:last] = self.scores_of(w, first, last)

        map_shares(work, self._cuts)
        return scores

    def _used(self, w: FloatArray) -> IntArray | None:
        """The columns of the weights that are not 0, far ones last, if they are few."""
        used = np.flatnonzero(w)
        if FEW * len(used) > self.n_features:
            return None
        return np.concatenate([np.setdiff1d(used, self._far), np.intersect1d(used, self._far)])

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        """Some rows of X times w."""
        if self._values is None:
            return np.asarray(self._rows(first, last) @ w)
        scores, far = np.empty(last - first), (self._far, w[self._far], self._first, self._query)
        used = self._used(w)
        if used is None:
            near = w.copy()
            near[self._far] = 0.0
            row_products(self._values, near, *far, first, last, scores)
        else:
            columns = used[: len(used) - np.count_nonzero(far[1])]
            chosen_products(self._values, columns, w[columns], *far, first, last, scores)
        return scores

    def transposed_of(self, g: FloatArray, first: int, last: int) -> FloatArray:
        """Some rows of Xᵀ times g, which has one number for each of them."""
        if self._values is None:
            return np.asarray(self._rows(first, last).T @ g)
        sums = np.zeros((1, self.n_features))
        column_sums(self._values, g, self._far, self._first, self._query, np.array([first, last]), sums)
        return np.asarray(sums[0])

    def transposed(self, g: FloatArray) -> FloatArray:
        """Xᵀg, g in input order."""
        return ordered_sum(self.transposed_parts(g, self._cuts))

    def transposed_columns(self, g: FloatArray, columns: IntArray) -> FloatArray:
        """Some entries of Xᵀg, g in input order."""
        return self.transposed(g)[columns]

    def transposed_parts(self, g: FloatArray, cuts: IntArray) -> FloatArray:
        """Xᵀg for the rows between each two cuts."""
        if (values := self._values) is None:
            return np.array(map_blocks(lambda a, b: self._rows(a, b).T @ g[a:b], cuts))
        sums = np.zeros((len(cuts) - 1, self.n_features))

        def work(first: int, last: int) -> None:
            rows, far = cuts[first : last + 1], (self._far, self._first, self._query)
            column_sums(values, g[rows[0] : rows[-1]], *far, rows, sums[first:last])

        map_shares(work, np.arange(len(cuts)))
        return sums

    def _rows(self, start: int, stop: int) -> Matrix:
        block = rows_to_multiply(self.X, start, stop)
        if not len(self._far):
            return block
        block = block.copy() if np.may_share_memory(block, self.X) else block
        block[:, self._far] -= self._first[self._query[start:stop]]
        return block

    def keep(self, columns: IntArray) -> None:
        """Copy some columns side by side, for scores and Hessians of these; less is read of X then."""
        kept = np.sort(columns)
        kind = np.dtype(np.float64) if len(np.intersect1d(kept, self._far)) else self.X.dtype
        n_bytes = self.queries.n_rows * len(kept) * kind.itemsize
        if n_bytes > KEPT_BYTES or 2 * len(kept) > self.n_features:
            self._kept = None
            return
        values = np.empty((self.queries.n_rows, len(kept)), kind)

        def work(first: int, last: int) -> None:
            self._put_columns(first, last, kept, values[first:last])

        map_shares(work, self._cuts)
        self._kept = (kept, values)

    def keeps(self, columns: IntArray) -> bool:
        """Whether these columns are kept side by side."""
        kept = self._kept
        return kept is not None and _holds(kept[0], columns)

    def reader(self, columns: IntArray) -> Read:
        """Reads some columns of rows that are counted in grouped order; not to be written to."""
        if (kept := self._kept) is not None and _holds(kept[0], columns):
            held, block = kept
            places = np.searchsorted(held, columns)
            return lambda a, b: (block[a:b], places)
        values = self._values
        if values is not None and not len(self._far) and self.queries.contiguous:
            return lambda a, b: (values[a:b], columns)
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

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        rows = self.queries.rows_between(start, stop)
        if self._values is not None:
            gather(self._values, rows, columns, block)
        else:
            block[:] = dense_block(self.X, slice(start, stop) if self.queries.contiguous else rows, columns)
        self._centre_block(rows, columns, block)

    def _centre_block(self, rows: IntArray, columns: IntArray, block: AnyArray) -> None:
        """Take the first value of each query off the far ones among some columns of some rows."""
        _, among, far = np.intersect1d(columns, self._far, return_indices=True)
        if len(far):
            block[:, among] -= self._first[self._query[rows]][:, far]

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        """Some columns only."""
        part = object.__new__(type(self))
        part.__dict__ |= self.__dict__
        part.X = self.X[:, columns] if self._values is None else np.take(self._values, columns, axis=1)
        part.n_features, part._kept, part._columns = len(columns), None, {}
        part._values = in_rows(part.X)
        part.varies, part.reach = self.varies[columns], self.reach[columns]
        _, part._far, among = np.intersect1d(columns, self._far, return_indices=True)
        if len(self._far):
            part._first = np.ascontiguousarray(self._first[:, among])
        return part


NONE_FAR = (np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0)), np.empty(0, dtype=np.int64))


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


def _holds(kept: IntArray, columns: IntArray) -> bool:
    return set(kept.tolist()) >= set(columns.tolist())


def _least(spread: FloatArray) -> float:
    """The smallest spread of a feature that varies: the scale on which a constant must not make noise."""
    return float(np.min(spread[spread > 0], initial=np.inf))


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
        self,
        X: StreamedMatrix,
        queries: Queries,
        cuts: IntArray,
        names: Sequence[str] | None = None,
        extremes: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        super().__init__(X, queries, cuts, names, extremes)
        self.passes, self._latest = Passes(self.n_features), local()
        self.passes.add(self.n_features)  # that over the ranges of the features

    def scores(self, w: FloatArray) -> FloatArray:
        used = np.flatnonzero(w)
        if not (self._used(w) is not None and self.keeps(used)):
            self.passes.add(len(used))
        return super().scores(w)

    def scores_of(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores = self._used(w), np.zeros(last - first)
        if used is None:
            return self._scores_of_many(w, first, last)
        far = np.intersect1d(used, self._far)
        among, weights = np.searchsorted(self._far, far), w[used]
        for a, b, columns in self._pieces(first, last, used):
            add_columns(
                columns,
                weights,
                len(used) - len(far),
                *self._shifts(a, b, among),
                scores[a - first : b - first],
            )
        return scores

    def _scores_of_many(self, w: FloatArray, first: int, last: int) -> FloatArray:
        used, scores, near = np.flatnonzero(w), np.empty(last - first), w.copy()
        near[self._far] = 0.0
        for a, b, values in self._chunks(first, last, used):
            wide = np.zeros((b - a, self.n_features), values.dtype)
            wide[:, used] = values
            far = (self._far, w[self._far], *self._shifts(a, b))
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
        _, far, among = np.intersect1d(columns, self._far, return_indices=True)
        for a, b, values in self._pieces(first, last, columns):
            add_column_sums(values, g[a - first : b - first], far, *self._shifts(a, b, among), sums[0])

    def reader(self, columns: IntArray) -> Read:
        if self.keeps(columns):
            return super().reader(columns)
        self.passes.add(len(columns))
        places = np.arange(len(columns))
        return lambda a, b: (self._grouped_columns(a, b, columns), places)

    def _put_columns(self, start: int, stop: int, columns: IntArray, block: AnyArray) -> None:
        if not self.queries.contiguous:
            super()._put_columns(start, stop, columns, block)
            return
        for a, b, values in self._chunks(start, stop, columns):
            block[a - start : b - start] = values
            self._centre_block(np.arange(a, b), columns, block[a - start : b - start])

    def restricted(self, columns: IntArray) -> FeatureMatrix:
        part = super().restricted(columns)
        part.__dict__["_latest"] = local()  # a piece is known by its columns, which have other numbers here
        return part

    def _shifts(self, first: int, last: int, among: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """What far columns (some ``among`` them) are read less of, and the query of some rows."""
        if not len(self._far):
            return NONE_FAR[2:]
        query = self._query[first:last]
        if among is None:
            return self._first, query
        queries, place = np.unique(query, return_inverse=True)
        return np.ascontiguousarray(self._first[queries][:, among]), place

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
