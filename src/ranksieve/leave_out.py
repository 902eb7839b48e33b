"""Cross-validation in one batch: the models without each fold, one Newton step from the model of all data.

f is a sum over queries, so one pass over the data at the weights w of all data gives the share of every part
of the queries in gradient and Hessian, and what is left without a fold is the total less its share. The
minimum of that second-order model plus the penalty is the model without the fold, up to the pairs that change
sides on the way: the squared hinge is quadratic as long as none does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.penalties.base import Slopes
from ranksieve.solvers.prox_newton import model_minimum

NEAR = 0.6  # a feature whose gradient without some fold reaches this share of its slope may join there


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """f near w: its gradient, and its Hessian on ``columns``."""

    w: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    columns: IntArray

    def minimum(self, slopes: Slopes, polish: bool = True) -> FloatArray:
        """argmin of the second-order model plus the penalty; other columns keep their weights."""
        z = self.w.copy()
        z[self.columns] = model_minimum(self.hessian, slopes, self.w, self.gradient, self.columns, polish)
        return z


class Folds:
    """The training queries, each held out twice: dealt into 2K parts in a ring, a fold is two neighbours.

    So there are two ways to deal K folds, which average out what the dealing adds to the noise. Of fewer than
    2K queries that have pairs each is a fold of its own. ``objective`` is that of all data.

    Attributes
    ----------
    queries : list of array
        The numbers of each fold's queries in the data given, ascending.
    """

    def __init__(
        self, data: Dataset, n_folds: int, seed: int = 0, query_weight: FloatArray | None = None
    ) -> None:
        has_pairs, order = data.pairs_per_query > 0, np.random.default_rng(seed).permutation(data.n_queries)
        dealt = np.concatenate([order[has_pairs[order]], order[~has_pairs[order]]])
        n_parts = min(2 * n_folds, int(np.count_nonzero(has_pairs)))
        parts = [dealt[part::n_parts] for part in range(n_parts)]  # those with pairs first: each has some
        self._members = [[part] for part in range(n_parts)]
        if n_parts == 2 * n_folds:
            pairs = [*range(0, n_parts, 2), *range(1, n_parts, 2)]
            self._members = [[part, (part + 1) % n_parts] for part in pairs]
        self.queries: list[IntArray] = [
            np.sort(np.concatenate([parts[k] for k in fold])) for fold in self._members
        ]
        ordered, queries = np.concatenate(parts), data.queries
        rows = [queries.order[queries.offsets[q] : queries.offsets[q + 1]] for q in ordered]
        weight = np.ones(data.n_queries) if query_weight is None else query_weight
        self.objective: Objective = make_objective(
            data.select_rows(np.concatenate(rows)),
            query_weight=None if query_weight is None else weight[ordered],
        )
        self._cuts = np.cumsum([0, *(len(part) for part in parts)])
        self._pairs = np.array([np.sum((weight * data.pairs_per_query)[part]) for part in parts])

    def __len__(self) -> int:
        return len(self.queries)

    def minima(self, point: Point, slopes: list[Slopes]) -> FloatArray:
        """The model without each fold (folds × features), near the optimum of all data.

        ``slopes`` is the penalty of each.
        """
        gradients = self.objective.gradients(point, self._cuts)
        without = np.array([self._left(gradients, fold) for fold in self._members])
        facing = np.array([penalty.facing(g) for penalty, g in zip(slopes, without, strict=True)])
        columns = np.flatnonzero((point.w != 0) | (np.abs(without) >= NEAR * facing).any(axis=0))
        models = self._without(point, columns, without)
        return np.array(
            [model.minimum(penalty, polish=False) for model, penalty in zip(models, slopes, strict=True)]
        )

    def near(self, point: Point, columns: IntArray) -> list[SecondOrder]:
        """f without each fold, to second order."""
        gradients = self.objective.gradients(point, self._cuts)
        without = np.array([self._left(gradients, fold) for fold in self._members])
        return self._without(point, columns, without)

    def _without(self, point: Point, columns: IntArray, gradients: FloatArray) -> list[SecondOrder]:
        hessians = self.objective.hessians(point, columns, self._cuts)
        return [
            SecondOrder(point.w, g, self._left(hessians, fold), columns)
            for g, fold in zip(gradients, self._members, strict=True)
        ]

    def _left(self, shares: FloatArray, fold: list[int]) -> FloatArray:
        """The mean over the pairs outside a fold, from the sums over those of each part."""
        others = np.ones(len(self._pairs), dtype=bool)
        others[fold] = False
        return np.asarray(shares[others].sum(axis=0) / self._pairs[others].sum())
