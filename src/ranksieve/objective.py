"""The smooth objective f(Xw): the only owner of the feature matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ranksieve._parallel import map_blocks, split_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.losses.base import BoundLoss, CurvedLoss, ScoreValue


@dataclass(frozen=True)
class Point:
    """Weights with everything known of the loss there; ``value`` and ``slack`` are means."""

    w: FloatArray
    scores: FloatArray
    value: float
    slack: float
    at: ScoreValue


class Objective:
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian.

    ``X`` may be dense float32/float64 (also memory-mapped) or CSR; it is read in fixed blocks of rows, turned
    into float64 a block at a time, and never copied whole. Partial sums are added in block order, so results
    do not depend on the number of threads.
    """

    def __init__(self, X: Matrix, loss: BoundLoss) -> None:
        if X.shape[0] != loss.queries.n_rows:
            raise ValueError(f"X has {X.shape[0]} rows but the labels have {loss.queries.n_rows}")
        self.X = X
        self.loss = loss
        self.n_features = int(X.shape[1])
        self._cuts = split_blocks(np.arange(X.shape[0] + 1))
        self._at_zero: Point | None = None

    def evaluate(self, w: FloatArray) -> Point:
        """Loss at the weights ``w``."""
        return self.evaluate_scores(w, self.scores(w))

    def evaluate_scores(self, w: FloatArray, scores: FloatArray) -> Point:
        """Loss at weights whose scores are known already."""
        at = self.loss.evaluate(self.loss.queries.group(scores))
        return Point(w, scores, at.value / self.loss.normaliser, at.slack / self.loss.normaliser, at)

    def scores(self, w: FloatArray) -> FloatArray:
        """Xw, in input order."""
        return np.concatenate(map_blocks(lambda a, b: self._rows(a, b) @ w, self._cuts))

    def gradient(self, point: Point) -> FloatArray:
        """Xᵀ∇loss / normaliser."""
        return self._transposed(point.at.gradient) / self.loss.normaliser

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        """The block of the (generalised) Hessian on ``columns``: X_Aᵀ S X_A / normaliser."""
        offsets = self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            V = self._grouped_columns(int(offsets[first]), int(offsets[last]), columns)
            return np.asarray(V.T @ self.loss.half_curvature(point.at, first, last, V))

        half = _ordered_sum(map_blocks(work, self.loss.cuts)) / self.loss.normaliser
        return np.asarray(half + half.T)

    def slope_along(self, point: Point, slide: FloatArray) -> float:
        """Derivative of the loss when the scores move along ``slide``."""
        return float(np.sum(self.loss.queries.restore(point.at.gradient) * slide)) / self.loss.normaliser

    def curvature_along(self, point: Point, slide: FloatArray) -> float:
        """Second derivative of the loss when the scores move along ``slide``."""
        grouped, offsets = self.loss.queries.group(slide), self.loss.queries.offsets

        def work(first: int, last: int) -> float:
            V = grouped[offsets[first] : offsets[last], None]
            return float(np.sum(V * self.loss.half_curvature(point.at, first, last, V)))

        return 2.0 * sum(map_blocks(work, self.loss.cuts)) / self.loss.normaliser

    def column(self, j: int) -> FloatArray:
        """Feature ``j`` of every document, in input order: what one unit of its weight adds to the scores."""
        column = self.X[:, [j]].toarray()[:, 0] if sp.issparse(self.X) else self.X[:, j]
        return np.asarray(column, dtype=np.float64)

    def dual(self, point: Point, scale: float) -> float:
        """Dual value of the loss at ``scale`` times the point's own dual variables."""
        return self.loss.dual(point.value, point.slack, scale)

    @property
    def at_zero(self) -> Point:
        """The loss at w = 0."""
        if self._at_zero is None:
            self._at_zero = self.evaluate(np.zeros(self.n_features))
        return self._at_zero

    def _transposed(self, grouped: FloatArray) -> FloatArray:
        """Xᵀ times one number a document, given in grouped order."""
        g = self.loss.queries.restore(grouped)
        return _ordered_sum(map_blocks(lambda a, b: self._rows(a, b).T @ g[a:b], self._cuts))

    def _rows(self, start: int, stop: int) -> Matrix:
        if sp.issparse(self.X):
            return _csr_rows(self.X, start, stop)
        return np.asarray(self.X[start:stop], dtype=np.float64)

    def _grouped_columns(self, start: int, stop: int, columns: IntArray) -> FloatArray:
        queries = self.loss.queries
        rows: AnyArray | slice = slice(start, stop) if queries.contiguous else queries.order[start:stop]
        block = self.X[rows][:, columns]
        dense = block.toarray() if sp.issparse(block) else block
        return np.ascontiguousarray(dense, dtype=np.float64)


class CurvedObjective(Objective):
    """An objective whose loss gives whole Hessian products: what truncated Newton steps need."""

    loss: CurvedLoss

    def __init__(self, X: Matrix, loss: CurvedLoss) -> None:
        super().__init__(X, loss)

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        """The (generalised) Hessian times ``v``, without forming it: Xᵀ S X v / normaliser."""
        slide, offsets = self.loss.queries.group(self.scores(v)), self.loss.queries.offsets

        def work(first: int, last: int) -> FloatArray:
            V = slide[offsets[first] : offsets[last], None]
            return self.loss.curvature(point.at, first, last, V)[:, 0]

        return self._transposed(np.concatenate(map_blocks(work, self.loss.cuts))) / self.loss.normaliser


def _csr_rows(X: Matrix, start: int, stop: int) -> Matrix:
    """Rows of a CSR matrix without copying its entries."""
    lo, hi = X.indptr[start], X.indptr[stop]
    parts = (X.data[lo:hi], X.indices[lo:hi], X.indptr[start : stop + 1] - lo)
    return sp.csr_array(parts, shape=(stop - start, X.shape[1]), copy=False)


def _ordered_sum(parts: list[FloatArray]) -> FloatArray:
    total = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total
