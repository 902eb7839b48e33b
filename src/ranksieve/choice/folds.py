"""Cross-validation in one batch: the models without each fold, one Newton step from the model of all data.

f is a sum over queries, so one pass over the data at the weights w of all data gives the share of every part
of the queries in gradient and Hessian, and what is left without a fold is the total less its share. The
minimum of that second-order model plus the penalty is the model without the fold, up to the pairs that change
sides on the way: the squared hinge is quadratic as long as none does.
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
from ranksieve.solvers.prox_newton import model_minimum, most_columns, steepest

SETTLED = 1e-2  # share of the largest violation
MAX_SWEEPS = 1000  # of coordinate descent
NEAR = 0.6  # a feature whose gradient without some fold reaches this share of its slope may join there


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """f near w: its gradient, its Hessian on ``columns``, and its value where that is known."""

    w: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    columns: IntArray
    value: float = np.nan

    def at(self, w: FloatArray) -> float:
        """The second-order model at other weights of the columns."""
        step = (w - self.w)[self.columns]
        return float(self.value + self.gradient[self.columns] @ step + 0.5 * step @ self.hessian @ step)

    def minimum(self, slopes: Slopes) -> FloatArray:
        """argmin of the second-order model plus the penalty; other columns keep their weights."""
        z = self.w.copy()
        z[self.columns] = model_minimum(self.hessian, slopes, self.w, self.gradient, self.columns)
        return z


@dataclass(frozen=True, eq=False)
class Partition:
    """Training queries cut into parts: part k has the queries ``cuts[k]`` to ``cuts[k + 1]``.

    ``outside`` (folds × parts) has 1 for the parts that a fold leaves for training, ``pairs`` the weight of
    the pairs of each part.
    """

    cuts: IntArray
    outside: FloatArray
    pairs: FloatArray

    def means_without(self, sums: FloatArray) -> FloatArray:
        """Means over the pairs outside each fold, from the sums over those of each part.

        They are added up, not subtracted from the sum of all, in which a heavy part would drown the others.
        """
        totals = np.tensordot(self.outside, sums, axes=1)
        return np.asarray(totals / (self.outside @ self.pairs).reshape(-1, *[1] * (sums.ndim - 1)))


class Folds:
    """The training queries, dealt into K·m parts in a ring; a fold is m neighbouring parts.

    So K folds hold all queries, and there are m ways to cut the ring into K folds, which average out the
    noise of the dealing: every query is held out m times. ``objective`` is that of all data.

    Attributes
    ----------
    queries : list of array
        The numbers of each fold's queries in the training data, ascending.
    dealings : list of range
        The folds of each way to deal, in which every query is once.
    every, first : Partition
        All folds; and those of the first dealing alone, each of which is one part.
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
        dealt = np.concatenate([order[has_pairs[order]], order[~has_pairs[order]]])
        n_folds = min(n_folds, int(np.count_nonzero(has_pairs)))
        repeats = min(repeats, int(np.count_nonzero(has_pairs)) // n_folds)
        n_parts = n_folds * repeats
        parts = [dealt[part::n_parts] for part in range(n_parts)]  # those with pairs first: each has some
        firsts = np.arange(n_parts).reshape(n_folds, repeats).T.ravel()  # dealing after dealing
        members = (firsts[:, None] + np.arange(repeats)) % n_parts
        self.dealings = [range(k * n_folds, (k + 1) * n_folds) for k in range(repeats)]
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
        self.every = Partition(cuts, outside, pairs_of_parts)
        pairs_of_folds = pairs_of_parts.reshape(-1, repeats).sum(axis=1)
        self.first = Partition(cuts[::repeats], 1.0 - np.eye(n_folds), pairs_of_folds)

    def __len__(self) -> int:
        return len(self.queries)

    def fold_of_queries(self, dealing: range) -> IntArray:
        """The fold of each training query in one way to deal."""
        fold = np.empty(sum(len(self.queries[k]) for k in dealing), dtype=np.int64)
        for k in dealing:
            fold[self.queries[k]] = k
        return fold

    def left(self, fold: int) -> Objective:
        """The objective of the data without a fold."""
        others = np.setdiff1d(np.arange(self._data.n_queries), self.queries[fold])
        weight = None if self._query_weight is None else self._query_weight[others]
        return make_objective(self._data.select_queries(others), query_weight=weight)

    def minima(self, point: Point, slopes: Sequence[Slopes]) -> FloatArray:
        """The model without each fold (folds × features), near the optimum of all data.

        ``slopes`` is the penalty of each.
        """
        sums = self.objective.gradients(point, self.every.cuts)
        columns = self._joining(point.w, self.every.means_without(sums), slopes)
        gradients = self.every.means_without(sums[:, columns])
        hessians = self.every.means_without(self.objective.hessians(point, columns, self.every.cuts))
        models, w = np.zeros((len(self), len(point.w))), point.w[columns]
        for model, penalty, g, hessian in zip(models, slopes, gradients, hessians, strict=True):
            here = Slopes(penalty.up[columns], penalty.down[columns], penalty.ridge)
            off = here.violation(w, g)
            tol = SETTLED * float(np.max(off, where=np.isfinite(off), initial=0.0))
            up, down, ridge = here.up, here.down, here.ridge
            model[columns] = minimise_quadratic(hessian, g, w, up, down, ridge, tol, MAX_SWEEPS)
        return models

    def second_order(
        self, point: Point, columns: IntArray, partition: Partition, gradient_sums: FloatArray | None = None
    ) -> list[SecondOrder]:
        """f without each fold of a partition, to second order around a point.

        ``gradient_sums`` are the parts' shares of the gradient, if they are known.
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

    def _joining(self, w: FloatArray, gradients: FloatArray, slopes: Sequence[Slopes]) -> IntArray:
        """Features in use, and those whose gradient without some fold comes near its slope."""
        facing = np.array([penalty.facing(g) for penalty, g in zip(slopes, gradients, strict=True)])
        near = np.flatnonzero((w != 0) | (np.abs(gradients) >= NEAR * facing).any(axis=0))
        share = np.full((len(self), len(near)), np.inf)
        open_ = (w[near] == 0) & (facing[:, near] > 0)
        np.divide(np.abs(gradients[:, near]), facing[:, near], out=share, where=open_)
        most = max(most_columns(self.objective), 2 * int(np.count_nonzero(w)))
        return steepest(near, share.max(axis=0, initial=0.0), most)
