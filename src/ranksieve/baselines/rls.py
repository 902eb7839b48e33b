"""RankRLS, least squares on differences within queries, and its greedy forward selection."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ranksieve._parallel import map_blocks, split_blocks, sum_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.baselines.selector import FeatureSelector, Selection, check_size, fresh_base
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.describe import varying_columns
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError
from ranksieve.losses.base import NO_PAIRS
from ranksieve.objective import ROUNDING
from ranksieve.rankers.base import Attributes, Ranker, Task
from ranksieve.rankers.parameters import Count, Positive
from ranksieve.solvers import Trace


@dataclass(eq=False, repr=False)
class RankRLS(Ranker):
    """min_w (1/n) Σ_q (1/2n_q) Σ_{i,j in q} ((y_i − y_j) − ⟨w, x_i − x_j⟩)² + α‖w‖².

    n is the number of documents, n_q that of query q. The sum over pairs of a query is n_q‖C(y − Xw)‖² with
    C = I − 11ᵀ/n_q, so it is ridge regression on documents centred within their queries, and one linear
    system of one equation per feature gives w (per document, if there are fewer of these). With
    weights v of documents the sum is over v_i v_j times the squares, n and n_q are sums of weights. Features
    that are constant within every query get exactly 0.

    Parameters
    ----------
    alpha : float
        Weight of the ridge.

    Attributes
    ----------
    gap_ : float
        ‖∇F‖²/(4α), which bounds how far the objective F, whose curvature is at least 2α, is above its least
        value; the rounding errors of ∇F and F are counted in.

    References
    ----------
    T. Pahikkala, E. Tsivtsivadze, A. Airola, J. Järvinen, J. Boberg: An efficient algorithm for learning to
    rank from preference graphs, Machine Learning 75(1), 2009.
    """

    alpha: Positive = 1e-3

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _fit(self, task: Task) -> Attributes:
        data, trace = task.data, Trace()
        weight = checked_query_weight(task.query_weight, data.n_queries)
        if not data.pair_weights @ weight > 0:
            raise DataError(None, None, NO_PAIRS)
        used = np.flatnonzero(varying_columns(data))
        kind = FewDocuments if len(used) > data.n_docs else FewFeatures
        ridge = kind(data, used, weight, self.alpha)
        solution = ridge.solution()
        for step, w in enumerate((np.zeros(len(used)), solution)):
            coef = np.zeros(data.n_features)
            coef[used] = w
            objective, half_slope = ridge.at(w)
            terms = float(ridge.sizes[:-1] @ np.abs(w) + ridge.sizes[-1])  # no residual is larger
            half_slope = np.abs(half_slope) + ROUNDING * (ridge.sizes[:-1] * terms + self.alpha * np.abs(w))
            gap = float(half_slope @ half_slope) / self.alpha + ROUNDING * terms**2
            trace.record(objective, gap, coef)
            if task.callback is not None:
                task.callback(step, coef.copy(), objective, gap)
        return {"coef_": coef, "objective_": objective, "gap_": gap, "n_iter_": 1, "trace_": trace}


def _solved(system: FloatArray, moment: FloatArray) -> FloatArray:
    """The solution of a positive definite system; the shortest one if rounding has left it singular."""
    if not len(moment):
        return np.empty(0)
    try:
        return np.asarray(cho_solve(cho_factor(system), moment))
    except np.linalg.LinAlgError:
        unit = 1.0 / np.sqrt(np.diagonal(system))  # features of any scale
        scaled = unit[:, None] * system * unit
        return np.asarray(unit * np.linalg.lstsq(scaled, unit * moment, rcond=None)[0])


class FewFeatures:
    """The ridge regression of RankRLS, by one equation per feature; ``sizes`` are the columns' norms."""

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        self._products = sum_of_products(data, columns, query_weight) / float(
            np.sum(data.row_weights(query_weight))
        )
        self._system = self._products[:-1, :-1] + alpha * np.eye(len(columns))
        self._moment, self.sizes = self._products[:-1, -1], np.sqrt(np.diagonal(self._products))

    def solution(self) -> FloatArray:
        """The best weights."""
        return _solved(self._system, self._moment)

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective, and half its gradient."""
        half_slope = self._system @ w - self._moment
        return max(0.0, float(self._products[-1, -1] + w @ (half_slope - self._moment))), half_slope


class FewDocuments:
    """The same by one equation per document: w = Rᵀ(RRᵀ + αI)⁻¹t, R and t the centred rows and labels."""

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        rows = data.queries.group(data.row_weights(query_weight))
        Z = centred_rows(data, columns, 0, data.n_queries)
        Z *= np.sqrt(rows / np.sum(rows))[:, None]
        self._R, self._t, self._alpha = Z[:, :-1], Z[:, -1], alpha
        self.sizes = np.linalg.norm(Z, axis=0)

    def solution(self) -> FloatArray:
        """The best weights."""
        system = self._R @ self._R.T + self._alpha * np.eye(len(self._t))
        return self._R.T @ _solved(system, self._t)

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The objective, and half its gradient."""
        off = self._R @ w - self._t
        return float(off @ off + self._alpha * (w @ w)), self._R.T @ off + self._alpha * w


def sum_of_products(data: Dataset, columns: IntArray, query_weight: FloatArray) -> FloatArray:
    """Σ_q weight_q ZᵀCZ, Z the columns of query q with its labels as the last one.

    Documents count as often as their weights say.
    """

    def products(first: int, last: int) -> FloatArray:
        Z = centred_rows(data, columns, first, last)
        return np.asarray(Z.T @ (weight[data.queries.offsets[first] : data.queries.offsets[last], None] * Z))

    weight = data.queries.group(data.row_weights(query_weight))
    return sum_blocks(products, split_blocks(data.queries.offsets))


def centred_rows(data: Dataset, columns: IntArray, first: int, last: int) -> FloatArray:
    """Some columns, and labels as the last one, of the queries first..last less their mean in each query.

    In the mean documents count as often as their weights say.
    """
    queries = data.queries
    begin, end = queries.offsets[first], queries.offsets[last]
    rows = slice(begin, end) if queries.contiguous else queries.rows_between(begin, end)
    Z = np.column_stack([dense_block(data.X, rows, columns), data.y[rows]])
    starts, sizes = queries.offsets[first:last] - begin, queries.sizes[first:last]
    Z -= np.repeat(Z[starts], sizes, axis=0)  # so that columns with large offsets keep their digits
    if data.document_weight is None:
        means = np.add.reduceat(Z, starts) / sizes[:, None]
    else:
        weight = data.document_weight[rows, None]
        means = np.add.reduceat(weight * Z, starts) / np.add.reduceat(weight, starts)
    return np.asarray(Z - np.repeat(means, sizes, axis=0))


TIE = 1e-10  # errors that differ by less than this share are equal


@dataclass(eq=False, repr=False)
class GreedyRankRLS(FeatureSelector):
    """Features, each in turn the one that lowers the leave-query-out error of RankRLS most.

    The error of a set is (1/n) Σ_q ‖C(y − X w₋q)‖² over the n documents, C the centring matrix of query q and
    w₋q the weights of :class:`RankRLS` on the set without query q. It is computed exactly, for all
    candidates at once, without any refit: O(n·d) a step. Of equals the earlier column goes first.

    Parameters
    ----------
    max_features : int
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

    errors_: FloatArray = field(init=False)

    max_features: Count = 10
    alpha: Positive = 1e-3
    base: Any = None

    def _second_stage(self) -> Any:
        return fresh_base(RankRLS(self.alpha) if self.base is None else self.base)

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        left_out = LeftOut(data, usable, checked_query_weight(query_weight, data.n_queries), self.alpha)
        least = np.empty(self.max_features)
        chosen = list[int]()
        for step in range(self.max_features):
            errors = left_out.errors()
            errors[chosen] = np.inf
            best = int(np.argmax(errors <= errors.min() * (1.0 + TIE)))
            least[step] = errors[best]
            chosen.append(best)
            left_out.add(best)
        return usable[chosen], {"errors_": least}


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
