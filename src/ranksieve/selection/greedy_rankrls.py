"""Greedy RankRLS: features added one by one, each the one with which left-out queries are fitted best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve._parallel import map_blocks, split_blocks, sum_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.query_weights import checked_query_weight
from ranksieve.estimators.parameters import Count, Positive
from ranksieve.estimators.rankrls import RankRLS, centred_rows
from ranksieve.selection.base import FeatureSelector, check_size, fresh_base

TIE = 1e-10  # errors that differ by less than this share are equal


@dataclass(eq=False, repr=False)
class GreedyRankRLS(FeatureSelector):
    """k features, each in turn the one that lowers the leave-query-out error of RankRLS most.

    The error of a set is (1/n) Σ_q ‖C(y − X w₋q)‖² over the n documents, C the centring matrix of query q and
    w₋q the weights of :class:`ranksieve.RankRLS` on the set without query q. It is computed exactly, for all
    candidates at once, without any refit: O(n·d) a step. Of equals the earlier column goes first.

    Parameters
    ----------
    k : int
        Number of features.
    alpha : float
        Weight of the ridge, as in RankRLS; models without a query keep α·n as the weight of ‖w‖².
    base : linear ranker, optional
        The second stage; default RankRLS with the same ``alpha``, as in the paper.

    Attributes
    ----------
    errors_ : array
        The leave-query-out error after each feature.
    selected_, base_, coef_
        As in every selector: columns in order of choice, the fitted base, its weights in full width.

    References
    ----------
    T. Pahikkala, A. Airola, P. Naula, T. Salakoski: Greedy RankRLS: a Linear Time Algorithm for Learning
    Sparse Ranking Models, SIGIR workshop on feature generation and selection, 2010.
    """

    weighs_documents = True

    errors_: FloatArray = field(init=False)

    k: Count = 10
    alpha: Positive = 1e-3
    base: Any = None

    def _second_stage(self) -> Any:
        return fresh_base(RankRLS(self.alpha) if self.base is None else self.base)

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> IntArray:
        check_size("k", self.k, usable, data)
        left_out = LeftOut(data, usable, checked_query_weight(query_weight, data.n_queries), self.alpha)
        self.errors_ = np.empty(self.k)
        chosen = list[int]()
        for step in range(self.k):
            errors = left_out.errors()
            errors[chosen] = np.inf
            best = int(np.argmax(errors <= errors.min() * (1.0 + TIE)))
            self.errors_[step] = errors[best]
            chosen.append(best)
            left_out.add(best)
        return usable[chosen]


class LeftOut:
    """For every query q, ridge regression on the features chosen so far, on all data but q.

    Without q, the system matrix of the chosen features F is M = λI + Σ_{p≠q} X_pᵀX_p. Feature j comes in with
    the weight t = n_j/s_j, where s_j = M_jj − M_jF M_FF⁻¹ M_Fj and n_j = m_j − M_jF w_F, m = Σ_{p≠q} X_pᵀy_p;
    what is left of the labels of q then falls by t·r_j, r_j = x_j − X_F M_FF⁻¹ M_Fj the part of the feature
    that those in F do not predict. Each step keeps s, n (queries × features) and r (documents × features) up
    to date, as in a Cholesky factorisation for each query, whose rows are ``_factors``.
    """

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        self._offsets, self._weight = data.queries.offsets, query_weight
        mass = data.document_weight
        self._mass = 1.0 if mass is None else data.queries.group(mass)[:, None]
        self._query = data.queries.query_of_grouped
        self._cuts = split_blocks(self._offsets)
        blocks = map_blocks(lambda first, last: centred_rows(data, columns, first, last), self._cuts)
        rows = np.concatenate(blocks)
        self._X, self._y_left = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()
        self._n_docs = float(np.sum(data.row_weights(query_weight)))
        self._ridge = alpha * self._n_docs
        self._s = self._without(self._X) + self._ridge
        self._n = self._without(self._y_left[:, None])
        self._r = self._X.copy()
        self._factors: list[FloatArray] = []

    def errors(self) -> FloatArray:
        """The leave-query-out error with each feature added."""
        t = self._n / self._s

        def squares(first: int, last: int) -> FloatArray:
            rows = slice(self._offsets[first], self._offsets[last])
            query = self._query[rows]
            left = self._y_left[rows, None] - t[query] * self._r[rows]
            mass = 1.0 if isinstance(self._mass, float) else self._mass[rows]
            return np.asarray(self._weight[query] @ (mass * left**2))

        return sum_blocks(squares, self._cuts) / self._n_docs

    def add(self, j: int) -> None:
        """Choose feature j."""
        s_j, r_j = self._s[:, j].copy(), self._r[:, j].copy()
        cross = self._without(self._X[:, [j]])
        for factor in self._factors:
            cross -= factor[:, [j]] * factor
        t_j, share = self._n[:, j] / s_j, cross / s_j[:, None]
        self._y_left -= t_j[self._query] * r_j
        self._r -= share[self._query] * r_j[:, None]
        self._n -= t_j[:, None] * cross
        self._s = np.maximum(self._s - share * cross, self._ridge)
        self._factors.append(cross / np.sqrt(s_j)[:, None])

    def _without(self, other: FloatArray) -> FloatArray:
        """Σ_{p≠q} weight_p Σ_{i in p} x_ij z_i for every query q and feature j, z a column or that of j."""
        own = np.add.reduceat(self._mass * self._X * other, self._offsets[:-1]) * self._weight[:, None]
        return np.asarray(own.sum(axis=0) - own)
