"""RankRLS: least squares on differences within queries, and greedy forward selection with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ranksieve._parallel import map_blocks, split_blocks, sum_blocks
from ranksieve._types import FloatArray, IntArray
from ranksieve.baselines.selector import FeatureSelector, Selection, check_size, make_base
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.describe import varying_columns
from ranksieve.data.matrix import dense_block
from ranksieve.errors import DataError
from ranksieve.losses.base import NO_PAIRS
from ranksieve.objective import SUM_ROUNDING
from ranksieve.rankers.base import Attributes, Ranker, Task
from ranksieve.rankers.parameters import Count, Positive
from ranksieve.solvers import Trace


@dataclass(eq=False, repr=False)
class RankRLS(Ranker):
    """min_w (1/n) Σ_q (1/2n_q) Σ_{i,j in q} ((y_i − y_j) − ⟨w, x_i − x_j⟩)² + α‖w‖².

    n is the number of documents, n_q the number of documents of query q. The sum over the pairs of a query is
    n_q‖C(y − Xw)‖² with C = I − 11ᵀ/n_q, so this is ridge regression on documents centred within their
    queries, and w solves a linear system with one equation per feature (or per document, if there are fewer).
    With document weights v, each square is multiplied by v_i v_j, and n and n_q are sums of weights. Features
    that are constant within every query have weight exactly 0.

    Parameters
    ----------
    alpha : float
        Weight of the ridge.

    Attributes
    ----------
    gap_ : float
        ‖∇F‖²/(4α), a bound on the distance of the objective F from its minimum, because the curvature of F is
        at least 2α; it includes the rounding errors of ∇F and F.

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
        formulation = DualRidge if len(used) > data.n_docs else PrimalRidge
        ridge = formulation(data, used, weight, self.alpha)
        solution = ridge.solution()
        for step, w in enumerate((np.zeros(len(used)), solution)):
            coef = np.zeros(data.n_features)
            coef[used] = w
            objective, half_slope = ridge.at(w)
            terms = float(ridge.norms[:-1] @ np.abs(w) + ridge.norms[-1])  # bounds the norm of the residuals
            half_slope = np.abs(half_slope) + SUM_ROUNDING * (
                ridge.norms[:-1] * terms + self.alpha * np.abs(w)
            )
            gap = float(half_slope @ half_slope) / self.alpha + SUM_ROUNDING * terms**2
            trace.record(objective, gap, coef)
            if task.callback is not None:
                task.callback(step, coef.copy(), objective, gap)
        return {"coef_": coef, "objective_": objective, "gap_": gap, "n_iter_": 1, "trace_": trace}


def _solve(system: FloatArray, moment: FloatArray) -> FloatArray:
    """Solve a positive definite system; return the shortest solution if it is singular up to rounding."""
    if not len(moment):
        return np.empty(0)
    try:
        return np.asarray(cho_solve(cho_factor(system), moment))
    except np.linalg.LinAlgError:
        unit = 1.0 / np.sqrt(np.diagonal(system))  # makes the solution independent of feature scales
        scaled = unit[:, None] * system * unit
        return np.asarray(unit * np.linalg.lstsq(scaled, unit * moment, rcond=None)[0])


class PrimalRidge:
    """The ridge regression of RankRLS with one equation per feature; ``norms`` are those of the columns."""

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        self._products = sum_of_products(data, columns, query_weight) / float(
            np.sum(data.row_weights(query_weight))
        )
        self._system = self._products[:-1, :-1] + alpha * np.eye(len(columns))
        self._moment, self.norms = self._products[:-1, -1], np.sqrt(np.diagonal(self._products))

    def solution(self) -> FloatArray:
        return _solve(self._system, self._moment)

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and half its gradient."""
        half_slope = self._system @ w - self._moment
        return max(0.0, float(self._products[-1, -1] + w @ (half_slope - self._moment))), half_slope


class DualRidge:
    """The same with one equation per document: w = Rᵀ(RRᵀ + αI)⁻¹t, R and t the centred rows and labels."""

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        rows = data.queries.group(data.row_weights(query_weight))
        Z = centred_rows(data, columns, 0, data.n_queries)
        Z *= np.sqrt(rows / np.sum(rows))[:, None]
        self._R, self._t, self._alpha = Z[:, :-1], Z[:, -1], alpha
        self.norms = np.linalg.norm(Z, axis=0)

    def solution(self) -> FloatArray:
        system = self._R @ self._R.T + self._alpha * np.eye(len(self._t))
        return self._R.T @ _solve(system, self._t)

    def at(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and half its gradient."""
        residual = self._R @ w - self._t
        objective = float(residual @ residual + self._alpha * (w @ w))
        return objective, self._R.T @ residual + self._alpha * w


def sum_of_products(data: Dataset, columns: IntArray, query_weight: FloatArray) -> FloatArray:
    """Return Σ_q weight_q ZᵀCZ, Z the columns of query q and, as the last column, its labels.

    Rows are multiplied by their document weights.
    """

    def products(first: int, last: int) -> FloatArray:
        Z = centred_rows(data, columns, first, last)
        return np.asarray(Z.T @ (weight[data.queries.offsets[first] : data.queries.offsets[last], None] * Z))

    weight = data.queries.group(data.row_weights(query_weight))
    return sum_blocks(products, split_blocks(data.queries.offsets))


def centred_rows(data: Dataset, columns: IntArray, first: int, last: int) -> FloatArray:
    """Return columns of the queries first..last minus their mean in each query, labels as the last column.

    Means are weighted by document weights.
    """
    queries = data.queries
    begin, end = queries.offsets[first], queries.offsets[last]
    rows = slice(begin, end) if queries.contiguous else queries.rows_between(begin, end)
    Z = np.column_stack([dense_block(data.X, rows, columns), data.y[rows]])
    starts, sizes = queries.offsets[first:last] - begin, queries.sizes[first:last]
    Z -= np.repeat(Z[starts], sizes, axis=0)  # avoids cancellation in columns with large offsets
    if data.document_weight is None:
        means = np.add.reduceat(Z, starts) / sizes[:, None]
    else:
        weight = data.document_weight[rows, None]
        means = np.add.reduceat(weight * Z, starts) / np.add.reduceat(weight, starts)
    return np.asarray(Z - np.repeat(means, sizes, axis=0))


ERROR_TIE_SHARE = 1e-10  # errors with a smaller relative difference are ties


@dataclass(eq=False, repr=False)
class GreedyRankRLS(FeatureSelector):
    """Greedy forward selection by the leave-query-out error of RankRLS.

    Each step adds the feature that lowers the error most. The error of a set is
    (1/n) Σ_q ‖C(y − X w₋q)‖² over the n documents, C the centring matrix of query q and w₋q the weights of
    :class:`RankRLS` on the set without query q. It is computed exactly for all candidates at once, without
    refitting, in O(n·d) per step. Ties are broken by column order.

    Parameters
    ----------
    max_features : int
        Number of features.
    alpha : float
        Weight of the ridge, as in RankRLS; models without one query also use α·n as the weight of ‖w‖².
    base : linear ranker, optional
        Ranker of the second stage; default RankRLS with the same ``alpha``, as in the paper.

    Attributes
    ----------
    errors_ : array
        Leave-query-out error after each step.
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

    def _make_base(self) -> Any:
        return make_base(RankRLS(self.alpha) if self.base is None else self.base)

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _select(self, data: Dataset, usable: IntArray, query_weight: FloatArray | None) -> Selection:
        check_size(self.max_features, usable, data)
        weight = checked_query_weight(query_weight, data.n_queries)
        left_out = LeaveQueryOut(data, usable, weight, self.alpha)
        least = np.empty(self.max_features)
        chosen = list[int]()
        for step in range(self.max_features):
            errors = left_out.errors()
            errors[chosen] = np.inf
            best = int(np.argmax(errors <= errors.min() * (1.0 + ERROR_TIE_SHARE)))
            least[step] = errors[best]
            chosen.append(best)
            left_out.add(best)
        return usable[chosen], {"errors_": least}


class LeaveQueryOut:
    """For every query q, the ridge regression on the selected features, fitted without q.

    Without q, the system matrix of the selected features F is M = λI + Σ_{p≠q} X_pᵀX_p. An added feature j
    gets the weight t = n_j/s_j, where s_j = M_jj − M_jF M_FF⁻¹ M_Fj, n_j = m_j − M_jF w_F and
    m = Σ_{p≠q} X_pᵀy_p. The residual of the labels of q then changes by −t·r_j, where
    r_j = x_j − X_F M_FF⁻¹ M_Fj is the part of the feature that those in F do not predict. Each step updates
    s, n (queries × features) and r (documents × features), as in a Cholesky factorisation for each query,
    whose rows are ``_factors``.
    """

    def __init__(self, data: Dataset, columns: IntArray, query_weight: FloatArray, alpha: float) -> None:
        self._offsets, self._weight = data.queries.offsets, query_weight
        weight = data.document_weight
        self._document_weight = 1.0 if weight is None else data.queries.group(weight)[:, None]
        self._query = data.queries.query_of_grouped
        self._cuts = split_blocks(self._offsets)
        blocks = map_blocks(lambda first, last: centred_rows(data, columns, first, last), self._cuts)
        rows = np.concatenate(blocks)
        self._X, self._residual = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()
        self._n_docs = float(np.sum(data.row_weights(query_weight)))
        self._ridge = alpha * self._n_docs
        self._s = self._products_without_query(self._X) + self._ridge
        self._n = self._products_without_query(self._residual[:, None])
        self._r = self._X.copy()
        self._factors: list[FloatArray] = []

    def errors(self) -> FloatArray:
        """Return the leave-query-out error after adding each feature."""
        t = self._n / self._s

        def squares(first: int, last: int) -> FloatArray:
            rows = slice(self._offsets[first], self._offsets[last])
            query = self._query[rows]
            residual = self._residual[rows, None] - t[query] * self._r[rows]
            weight = 1.0 if isinstance(self._document_weight, float) else self._document_weight[rows]
            return np.asarray(self._weight[query] @ (weight * residual**2))

        return sum_blocks(squares, self._cuts) / self._n_docs

    def add(self, j: int) -> None:
        """Add feature j to the selected features."""
        s_j, r_j = self._s[:, j].copy(), self._r[:, j].copy()
        cross = self._products_without_query(self._X[:, [j]])
        for factor in self._factors:
            cross -= factor[:, [j]] * factor
        t_j, share = self._n[:, j] / s_j, cross / s_j[:, None]
        self._residual -= t_j[self._query] * r_j
        self._r -= share[self._query] * r_j[:, None]
        self._n -= t_j[:, None] * cross
        self._s = np.maximum(self._s - share * cross, self._ridge)
        self._factors.append(cross / np.sqrt(s_j)[:, None])

    def _products_without_query(self, Z: FloatArray) -> FloatArray:
        """Return Σ_{p≠q} weight_p Σ_{i in p} x_ij z_ij for query q and feature j (Z may be one column)."""
        products = self._document_weight * self._X * Z
        of_query = np.add.reduceat(products, self._offsets[:-1]) * self._weight[:, None]
        return np.asarray(of_query.sum(axis=0) - of_query)
