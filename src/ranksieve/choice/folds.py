"""Cross-validation in one batch: the models without each fold, one Newton step from the model of all data.

f is a sum over queries, so one pass over the data at the weights w of all data gives the gradient and Hessian
of every part of the queries, and those without a fold are sums over the other parts. The minimum of this
second-order model plus the penalty is the model without the fold, except for pairs that become active or
inactive on the way: the squared hinge is quadratic as long as none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.kernels.linear import minimise_quadratic
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.penalties.base import Slopes
from ranksieve.solvers.prox_newton import model_minimum, steepest, working_set_limit

VIOLATION_TOL = 1e-2  # share of the initial violation of the optimality conditions that may remain
MAX_FOLD_SWEEPS = 1000  # of coordinate descent
FOLD_WORKING_SET_SHARE = 0.6  # add features whose gradient without some fold reaches this share of the slope


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """Second-order model of f around w: gradient, Hessian on ``columns``, value (NaN if unknown)."""

    w: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    columns: IntArray
    value: float = np.nan

    def at(self, w: FloatArray) -> float:
        """Value of the model at weights that differ from ``self.w`` in ``columns`` only."""
        step = (w - self.w)[self.columns]
        return float(self.value + self.gradient[self.columns] @ step + 0.5 * step @ self.hessian @ step)

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
    all_folds, first_split : Partition
        All folds; and the folds of the first repeat only, each of which is one part.
    """

    def __init__(
        self,
        data: Dataset,
        n_folds: int,
        repeats: int = 1,
        random_state: int = 0,
        query_weight: FloatArray | None = None,
    ) -> None:
        self._data, self._query_weight = data, query_weight
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
        ordered = np.concatenate(parts)
        weight = np.ones(data.n_queries) if query_weight is None else query_weight
        self.objective: Objective = make_objective(
            data.in_query_order(ordered),
            query_weight=None if query_weight is None else weight[ordered],
        )
        cuts = np.cumsum([0, *(len(part) for part in parts)])
        pairs_of_parts = np.array([np.sum((weight * pairs)[part]) for part in parts])
        outside = np.ones((len(members), n_parts))
        np.put_along_axis(outside, members, 0.0, axis=1)
        self.all_folds = Partition(cuts, outside, pairs_of_parts)
        pairs_of_folds = pairs_of_parts.reshape(-1, repeats).sum(axis=1)
        self.first_split = Partition(cuts[::repeats], 1.0 - np.eye(n_folds), pairs_of_folds)

    def __len__(self) -> int:
        return len(self.queries)

    def fold_of_queries(self, split: range) -> IntArray:
        """The fold of each training query in one of ``splits``."""
        fold = np.empty(sum(len(self.queries[k]) for k in split), dtype=np.int64)
        for k in split:
            fold[self.queries[k]] = k
        return fold

    def objective_without(self, fold: int) -> Objective:
        others = np.setdiff1d(np.arange(self._data.n_queries), self.queries[fold])
        weight = None if self._query_weight is None else self._query_weight[others]
        return make_objective(self._data.select_queries(others), query_weight=weight)

    def minima(self, point: Point, slopes: Sequence[Slopes]) -> FloatArray:
        """Weights without each fold (folds × features), one Newton step from the optimum of all data.

        ``slopes`` is the penalty of each fold.
        """
        sums = self.objective.gradients(point, self.all_folds.cuts)
        columns = self._working_set(point.w, self.all_folds.means_without(sums), slopes)
        gradients = self.all_folds.means_without(sums[:, columns])
        hessians = self.all_folds.means_without(self.objective.hessians(point, columns, self.all_folds.cuts))
        models, w = np.zeros((len(self), len(point.w))), point.w[columns]
        for model, penalty, g, hessian in zip(models, slopes, gradients, hessians, strict=True):
            restricted = Slopes(penalty.up[columns], penalty.down[columns], penalty.ridge)
            violation = restricted.violation(w, g)
            tol = VIOLATION_TOL * float(np.max(violation, where=np.isfinite(violation), initial=0.0))
            up, down, ridge = restricted.up, restricted.down, restricted.ridge
            model[columns] = minimise_quadratic(hessian, g, w, up, down, ridge, tol, MAX_FOLD_SWEEPS)
        return models

    def second_order(
        self, point: Point, columns: IntArray, partition: Partition, gradient_sums: FloatArray | None = None
    ) -> list[SecondOrder]:
        """Second-order models of f without each fold of a partition, around a point.

        ``gradient_sums`` are the gradients of the parts, if already computed.
        """
        cuts, objective = partition.cuts, self.objective
        sums = objective.gradients(point, cuts) if gradient_sums is None else gradient_sums
        parts = zip(
            partition.means_without(sums),
            partition.means_without(objective.hessians(point, columns, cuts)),
            partition.means_without(objective.values(point, cuts)),
            strict=True,
        )
        return [SecondOrder(point.w, g, hessian, columns, float(value)) for g, hessian, value in parts]

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
