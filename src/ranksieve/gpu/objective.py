"""The objective for data on a GPU, with the interface of the CPU objective; scores stay on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.inputs import check_features
from ranksieve.data.queries import Queries, contiguous_queries
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu.features import DeviceFeatures, DeviceLists
from ranksieve.gpu.loss import DeviceSquaredHinge, DeviceValue, Hessians
from ranksieve.gpu.matrix import DeviceMatrix
from ranksieve.losses import SquaredHinge
from ranksieve.losses.base import NO_PAIRS, Loss, grouped_weights, query_factors
from ranksieve.losses.squared_hinge import BoundSquaredHinge, checked_levels, checked_table, table_pairs
from ranksieve.objective import DocumentObjective, HessianBlock, Point

OFFERS = frozenset({"hessian", "hessian_product", "largest_at_zero", "line", "part"})
UNSUPPORTED_LOSS = "the loss {name} does not run on a GPU; use `device='cpu'` or the loss squared_hinge"


class DeviceLoss:
    """The squared hinge on a GPU, with the interface of a bound loss."""

    name, offers, dual = SquaredHinge.name, OFFERS, staticmethod(BoundSquaredHinge.dual)

    def __init__(self, sums: DeviceSquaredHinge, queries: Queries) -> None:
        if not sums.normaliser > 0:
            raise DataError(None, None, NO_PAIRS)
        self.sums, self.queries, self.normaliser = sums, queries, sums.normaliser

    def evaluate(self, s: Any) -> DeviceValue:
        """Sum and gradient at the scores ``s``."""
        return self.sums.evaluate(s)

    def line(self, at: DeviceValue, s: Any, d: Any) -> Callable[[float], tuple[float, float]]:
        """Function that returns both derivatives of the loss along d at s + μd."""
        return self.sums.line(s, d)


class DeviceObjective(DocumentObjective):
    """f(w) = loss(Xw) / normaliser, its gradient and blocks of its Hessian, on a GPU.

    X is float32 with rows grouped by query. Scores, sums and gradients, and therefore certificates, are
    float64; Hessians, which only determine the next step, have about the precision of float32.
    """

    def __init__(self, features: DeviceFeatures, loss: DeviceLoss) -> None:
        super().__init__(features, loss)
        self._hessians = Hessians(features, loss.sums)

    def evaluate(self, w: FloatArray) -> Point:
        """Loss at the weights ``w``; also computes the gradient, to synchronise with the GPU only once."""
        sums, scores = self.loss.sums, self.scores(w)
        g, by_query = sums.sums(scores)
        totals = torch.cat([by_query.sum(0), self.features.transposed_on_device(g)]).cpu().numpy()
        at = sums.value(scores, g, totals[:3])
        self._gradient = (at, np.where(self.varies, totals[3:] / self.loss.normaliser, 0.0))
        return self._point(w, scores, at)

    def evaluate_scores(self, w: FloatArray, scores: Any) -> Point:
        return self._point(w, scores, self.loss.evaluate(scores))

    def _point(self, w: FloatArray, scores: Any, at: Any) -> Point:
        if not np.isfinite(at.value):
            return Point(w, scores, np.inf, np.nan, at)
        return Point(w, scores, at.value / self.loss.normaliser, at.slack / self.loss.normaliser, at)

    def hessian(self, point: Point, columns: IntArray) -> FloatArray:
        if (cached := self._cached_hessian(point, columns)) is not None:
            return cached
        all_queries = np.array([0, self.loss.queries.n_queries])
        total = self._hessians.blocks(point.at, columns, all_queries)[0]
        return np.asarray(self._without_constants(total, columns) / self.loss.normaliser)

    def hessians(self, point: Point, columns: IntArray, cuts: IntArray) -> FloatArray:
        hessians = self._without_constants(self._hessians.blocks(point.at, columns, cuts), columns)
        self._hessian = (point.at, HessianBlock(columns, hessians.sum(axis=0) / self.loss.normaliser))
        return hessians

    def curvatures(self, point: Point) -> FloatArray:
        diagonal = self._hessians.diagonal(point.at)
        return np.where(self.varies, diagonal / self.loss.normaliser, 0.0)

    def restricted(self, columns: IntArray) -> DeviceObjective:
        return DeviceObjective(self.features.restricted(columns), self.loss)

    def sample(self, every: int) -> DeviceObjective | None:
        queries, sums = self.loss.queries, self.loss.sums
        chosen = np.arange(0, queries.n_queries, every)
        rows = np.flatnonzero(np.repeat(np.arange(queries.n_queries) % every == 0, queries.sizes))
        some, at = contiguous_queries(queries.ids[chosen], queries.sizes[chosen]), sums.lists.to_device(rows)
        lists = DeviceLists(some.offsets, sums.lists.device)
        try:
            loss = DeviceLoss(sums.part(lists, at, sums.lists.to_device(chosen)), some)
        except ValueError:
            return None
        return DeviceObjective(DeviceFeatures(self.features.X[at], lists), loss)

    def hessian_product(self, point: Point, v: FloatArray) -> FloatArray:
        product = self.loss.sums.product(point.at, self.features.scores(v))
        total = self.features.transposed(product) / self.loss.normaliser
        return np.where(self.varies, total, 0.0)

    def slope_along(self, point: Point, direction_scores: Any) -> float:
        return float((point.at.gradient * direction_scores).sum()) / float(self.loss.normaliser)

    def curvature_along(self, point: Point, direction_scores: Any) -> float:
        product = self.loss.sums.product(point.at, direction_scores)
        return float((product * direction_scores).sum()) / float(self.loss.normaliser)


def device_objective(data: Dataset, loss: Loss, query_weight: FloatArray | None) -> DeviceObjective:
    """The objective for data whose features are on a GPU, grouped by query."""
    if not isinstance(loss, SquaredHinge):
        raise ParameterError("device", "cuda", UNSUPPORTED_LOSS.format(name=loss.name))
    matrix, queries, table, y = data.X, data.queries, loss.level_weights, data.y
    assert isinstance(matrix, DeviceMatrix)
    pairs = data.pair_weights
    if table is not None:
        table = checked_table(table)
        level = checked_levels(queries.group(y), len(table))
        pairs = table_pairs(level, queries, grouped_weights(data.document_weight, queries), table)
    device = matrix.values.device
    lists = DeviceLists(queries.offsets, device)
    features = DeviceFeatures(matrix.values, lists)
    check_features(features.spread, features.max_abs, data.feature_names)
    weight = checked_query_weight(query_weight, queries.n_queries)
    weight = weight * query_factors(pairs, loss.pair_weighting)
    document_weight = (
        None if data.document_weight is None else lists.to_device(data.document_weight, np.float64)
    )
    sums = DeviceSquaredHinge(
        lists.to_device(y), lists, lists.to_device(weight, np.float64), document_weight, table
    )
    return DeviceObjective(features, DeviceLoss(sums, queries))
