"""Cross-validation in one batch: the models without each fold, one Newton step from the model of all data.

f is a sum over queries, so one pass over the data at the weights w of all data gives the gradient and Hessian
of every part of the queries, and those without a fold are sums over the other parts. The minimum of this
second-order model plus the penalty is the model without the fold, except for pairs that become active or
inactive on the way: the squared hinge is quadratic as long as none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ranksieve._parallel import map_items
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.losses import SquaredHinge
from ranksieve.losses.base import query_factors
from ranksieve.objective import HessianProducts, Objective, Point, make_objective
from ranksieve.penalties.base import Slopes
from ranksieve.solvers.prox_newton import (
    minimum_by_products,
    model_minimum,
    steepest,
    working_set_limit,
)

SQUARED_HINGE = SquaredHinge()
VIOLATION_TOL = 1e-2  # share of the initial violation of the optimality conditions that may remain
MAX_FOLD_SWEEPS = 1000  # of coordinate descent
FOLD_WORKING_SET_SHARE = 0.6  # add features whose gradient without some fold reaches this share of the slope


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """Second-order model of f around w, up to its value: gradient, and Hessian on ``columns``."""

    w: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    columns: IntArray

    def minimum(self, slopes: Slopes) -> FloatArray:
        """argmin of the model plus the penalty over the weights of ``columns``."""
        z = self.w.copy()
        z[self.columns] = model_minimum(self.hessian, slopes, self.w, self.gradient, self.columns)
        return z


@dataclass(frozen=True, eq=False)
class Partition:
    """Training queries split into parts: part k has the queries ``cuts[k]`` to ``cuts[k + 1] - 1``.

    ``outside`` (folds × parts) is 1 for the parts outside each fold, else 0; ``pairs`` is the total weight of
    the pairs of each part.
    """

    cuts: IntArray
    outside: FloatArray
    pairs: FloatArray

    def means_without(self, sums: FloatArray) -> FloatArray:
        """Means over the pairs outside each fold, given the sums over the pairs of each part.

        Adding the parts outside is more accurate than subtracting the fold from the total if one part has
        most of the weight.
        """
        totals = np.tensordot(self.outside, sums, axes=1)
        return np.asarray(totals / (self.outside @ self.pairs).reshape(-1, *[1] * (sums.ndim - 1)))


class Folds:
    """m repeats of K-fold cross-validation: K·m random parts in a ring; a fold is m adjacent parts.

    There are m ways to cut the ring into K folds, so every query is held out m times, which averages out the
    noise of the split. ``objective`` is that of all data, with the queries ordered by part.

    Attributes
    ----------
    queries : list of array
        For each fold the indices of its queries in the training data, ascending.
    splits : list of range
        For each repeat its folds, which together contain every query once.
    all_folds : Partition
        The parts, and which of them are outside each fold.
    """

    def __init__(
        self,
        data: Dataset,
        n_folds: int,
        repeats: int = 1,
        random_state: int = 0,
        query_weight: FloatArray | None = None,
        loss: SquaredHinge = SQUARED_HINGE,
    ) -> None:
        pairs = data.pair_weights
        has_pairs, order = pairs > 0, np.random.default_rng(random_state).permutation(data.n_queries)
        shuffled = np.concatenate([order[has_pairs[order]], order[~has_pairs[order]]])
        n_folds = min(n_folds, int(np.count_nonzero(has_pairs)))
        repeats = min(repeats, int(np.count_nonzero(has_pairs)) // n_folds)
        n_parts = n_folds * repeats
        parts = [shuffled[part::n_parts] for part in range(n_parts)]  # each has a query with pairs
        firsts = np.arange(n_parts).reshape(n_folds, repeats).T.ravel()  # first part of each fold, by repeat
        members = (firsts[:, None] + np.arange(repeats)) % n_parts
        self.splits = [range(k * n_folds, (k + 1) * n_folds) for k in range(repeats)]
        self.queries: list[IntArray] = [np.sort(np.concatenate([parts[k] for k in fold])) for fold in members]
        self._order, self._loss = np.concatenate(parts), loss
        self._weight = weight = np.ones(data.n_queries) if query_weight is None else query_weight
        self._data = data.in_query_order(self._order)
        self.objective: Objective = make_objective(self._data, loss, weight[self._order])
        cuts = np.cumsum([0, *(len(part) for part in parts)])
        of_query = weight * query_factors(pairs, loss.pair_weighting) * pairs
        pairs_of_parts = np.array([np.sum(of_query[part]) for part in parts])
        outside = np.ones((len(members), n_parts))
        np.put_along_axis(outside, members, 0.0, axis=1)
        self.all_folds = Partition(cuts, outside, pairs_of_parts)

    def __len__(self) -> int:
        return len(self.queries)

    def fold_of_queries(self, split: range) -> IntArray:
        """The fold of each training query in one of ``splits``."""
        fold = np.empty(sum(len(self.queries[k]) for k in split), dtype=np.int64)
        for k in split:
            fold[self.queries[k]] = k
        return fold

    def objective_without(self, fold: int) -> Objective:
        """The objective without the queries of a fold: they have weight 0, so no row is copied."""
        weight = self._weight.copy()
        weight[self.queries[fold]] = 0.0
        return make_objective(self._data, self._loss, weight[self._order])

    def minima(self, point: Point, slopes: Sequence[Slopes]) -> FloatArray:
        """Weights without each fold (folds × features), one Newton step from the optimum of all data.

        ``slopes`` is the penalty of each fold.
        """
        sums = self.objective.gradients(point, self.all_folds.cuts)
        columns = self._working_set(point.w, self.all_folds.means_without(sums), slopes)
        gradients = self.all_folds.means_without(sums[:, columns])
        if (products := self.objective.hessian_products(point, columns)) is not None:
            return self._minima_by_products(point.w, columns, gradients, slopes, products)
        hessians = self.all_folds.means_without(self.objective.hessians(point, columns, self.all_folds.cuts))
        models, w = np.zeros((len(self), len(point.w))), point.w[columns]
        for model, penalty, g, hessian in zip(models, slopes, gradients, hessians, strict=True):
            restricted = penalty.restricted(columns)
            violation = restricted.violation(w, g)
            tol = VIOLATION_TOL * float(np.max(violation, where=np.isfinite(violation), initial=0.0))
            up, down, ridge = restricted.up, restricted.down, restricted.ridge
            model[columns] = minimise_quadratic(hessian, g, w, up, down, ridge, tol, MAX_FOLD_SWEEPS)
        return models

    def _minima_by_products(
        self,
        w: FloatArray,
        columns: IntArray,
        gradients: FloatArray,
        slopes: Sequence[Slopes],
        products: HessianProducts,
    ) -> FloatArray:
        """:meth:`minima` for working sets whose Hessian is not formed."""
        partition, queries = self.all_folds, self.objective.loss.queries
        shares = self.objective.loss.normaliser / (partition.outside @ partition.pairs)
        documents = np.diff(queries.offsets[partition.cuts])
        models = np.zeros((len(self), len(w)))

        def minimise(fold: int) -> None:
            penalty = slopes[fold].restricted(columns)
            factor, g = np.repeat(shares[fold] * partition.outside[fold], documents), gradients[fold]
            violation = penalty.violation(w[columns], g)
            tol = VIOLATION_TOL * float(np.max(violation, where=np.isfinite(violation), initial=0.0))
            product, scale = partial(products.product, factor=factor), products.scale(factor)
            models[fold, columns] = minimum_by_products(product, scale, penalty, w[columns], g, tol)

        map_items(minimise, range(len(self)), len(self.objective.loss.cuts) - 1)
        return models

    def second_order(self, point: Point, columns: IntArray) -> list[SecondOrder]:
        """Second-order models of f without each fold, around a point."""
        partition, objective = self.all_folds, self.objective
        gradients = partition.means_without(objective.gradients(point, partition.cuts))
        hessians = partition.means_without(objective.hessians(point, columns, partition.cuts))
        return [SecondOrder(point.w, g, H, columns) for g, H in zip(gradients, hessians, strict=True)]

    def _working_set(self, w: FloatArray, gradients: FloatArray, slopes: Sequence[Slopes]) -> IntArray:
        """Features in use, and those whose gradient without some fold is near its slope."""
        facing = np.array([penalty.facing(g) for penalty, g in zip(slopes, gradients, strict=True)])
        steep = (np.abs(gradients) >= FOLD_WORKING_SET_SHARE * facing).any(axis=0)
        candidates = np.flatnonzero((w != 0) | steep)
        share = np.full((len(self), len(candidates)), np.inf)
        at_zero = (w[candidates] == 0) & (facing[:, candidates] > 0)
        np.divide(np.abs(gradients[:, candidates]), facing[:, candidates], out=share, where=at_zero)
        most = max(working_set_limit(self.objective), 2 * int(np.count_nonzero(w)))
        return steepest(candidates, share.max(axis=0, initial=0.0), most)
