"""Cross-validation in one batch: the models without each fold, one Newton step from the model of all data.

f is a sum over queries, so one pass over the data at the weights w of all data gives every fold's share of
value, gradient and Hessian, and what is left without a fold is the total less its share. The minimum of that
second-order model plus the penalty is the model without the fold, up to the pairs that change sides on the
way: the squared hinge is quadratic as long as none does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve._parallel import map_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import make_objective
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

    def minimum(self, slopes: Slopes) -> FloatArray:
        """argmin of the second-order model plus the penalty; other columns keep their weights."""
        z = self.w.copy()
        z[self.columns] = model_minimum(self.hessian, slopes, self.w, self.gradient, self.columns)
        return z


@dataclass(frozen=True, eq=False)
class Shares:
    """What every fold adds to gradient and Hessian at w, as sums over its pairs."""

    w: FloatArray
    gradients: FloatArray
    hessians: FloatArray
    columns: IntArray
    pairs: FloatArray

    @property
    def total(self) -> SecondOrder:
        """f of all data."""
        return self._mean(self.gradients.sum(axis=0), self.hessians.sum(axis=0), self.pairs.sum())

    def without(self, fold: int) -> SecondOrder:
        """f of the data without a fold."""
        others = np.arange(len(self.pairs)) != fold
        return self._mean(
            self.gradients[others].sum(axis=0), self.hessians[others].sum(axis=0), self.pairs[others].sum()
        )

    def _mean(self, gradient: FloatArray, hessian: FloatArray, pairs: float) -> SecondOrder:
        return SecondOrder(self.w, gradient / pairs, hessian / pairs, self.columns)


class Folds:
    """The training queries, dealt into folds; those with pairs first, so that every fold has some.

    Attributes
    ----------
    queries : list of array
        The numbers of each fold's queries, ascending.
    """

    def __init__(
        self, data: Dataset, n_folds: int, seed: int = 0, query_weight: FloatArray | None = None
    ) -> None:
        has_pairs, order = data.pairs_per_query > 0, np.random.default_rng(seed).permutation(data.n_queries)
        dealt = np.concatenate([order[has_pairs[order]], order[~has_pairs[order]]])
        self.queries: list[IntArray] = [np.sort(dealt[fold::n_folds]) for fold in range(n_folds)]
        self._objectives = [
            make_objective(
                data.select_queries(queries), query_weight=None if query_weight is None else query_weight[queries]
            )
            for queries in self.queries
        ]
        self._pairs = np.array([objective.loss.normaliser for objective in self._objectives])

    def __len__(self) -> int:
        return len(self.queries)

    def minima(self, w: FloatArray, slopes: list[Slopes]) -> FloatArray:
        """The model without each fold (folds × features), near the weights w of all data.

        ``slopes`` is the penalty of each.
        """
        shares = self._shares(w, lambda gradients: self._joining(w, gradients, slopes))
        return np.array([shares.without(k).minimum(penalty) for k, penalty in enumerate(slopes)])

    def shares(self, w: FloatArray, columns: IntArray) -> Shares:
        """Gradients and Hessian blocks of every fold at w."""
        return self._shares(w, lambda gradients: columns)

    def _shares(self, w: FloatArray, choose_columns: object) -> Shares:
        points = map_blocks(lambda k, _: self._objectives[k].evaluate(w), np.arange(len(self) + 1))
        objectives = self._objectives
        gradients = np.array(
            map_blocks(lambda k, _: objectives[k].gradient(points[k]) * self._pairs[k], np.arange(len(self) + 1))
        )
        columns = choose_columns(gradients)
        hessians = map_blocks(
            lambda k, _: objectives[k].hessian(points[k], columns) * self._pairs[k], np.arange(len(self) + 1)
        )
        return Shares(w, gradients, np.array(hessians), columns, self._pairs)

    def _joining(self, w: FloatArray, gradients: FloatArray, slopes: list[Slopes]) -> IntArray:
        """Features in use, and those whose gradient without some fold comes near its slope."""
        without = (gradients.sum(axis=0) - gradients) / (self._pairs.sum() - self._pairs)[:, None]
        facing = np.array([penalty.facing(g) for penalty, g in zip(slopes, without, strict=True)])
        return np.flatnonzero((w != 0) | (np.abs(without) >= NEAR * facing).any(axis=0))
