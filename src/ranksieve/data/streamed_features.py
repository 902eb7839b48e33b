"""The feature matrix of an objective whose values are on disk: every operation is a pass over columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import local

import numpy as np

from ranksieve._parallel import map_shares
from ranksieve._types import AnyArray, FloatArray, IntArray
from ranksieve.data.feature_matrix import NONE_FAR, FeatureMatrix, Read, ordered_sum
from ranksieve.data.queries import Queries
from ranksieve.data.streamed import StreamedMatrix
from ranksieve.kernels.linear import add_column_sums, add_columns, row_products

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
