"""CSRankSVM, RankSVM-Struct and SVM-MAP."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.baselines.losses import AveragePrecisionHinge, Hinge
from ranksieve.baselines.solvers import CuttingPlane
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.queries import Queries
from ranksieve.errors import DataError
from ranksieve.losses import Loss, SquaredHinge
from ranksieve.objective import LocalObjective, Objective, make_objective
from ranksieve.penalties import Penalty, Ridge
from ranksieve.rankers import RankSVM
from ranksieve.rankers.base import Attributes, Ranker
from ranksieve.rankers.parameters import Count, Positive
from ranksieve.solvers import Problem, Result, Solver

MAX_LABEL_LEVELS = 256


@dataclass(eq=False, repr=False)
class CSRankSVM(RankSVM):
    """min_w ½‖w‖² + C Σ_q (max p / p_q) Σ_{pairs of q} τ(y_i, y_j) max(0, 1 − ⟨w, x_i − x_j⟩)².

    p_q is the number of pairs of query q, or the sum of their weights: the factor max p / p_q gives queries
    with few pairs the same weight as queries with many. τ gives errors at the top of the ranking a higher
    cost.

    Parameters
    ----------
    C : float
        Weight of the sum over pairs.
    level_weights : table, optional
        τ[higher label, lower label], for labels 0, 1, …; entries on and above the diagonal are not used.
        Default, as in the paper: the NDCG@1 that a perfect ranking loses when two documents with these labels
        are swapped, averaged over the training queries that have both labels (weighted by query and document
        weights). A query with n documents of its highest label a loses (1/n)(1 − (2^b − 1)/(2^a − 1)) on
        average for the labels (a, b), and nothing for pairs below its highest label; labels are counted from
        the lowest one in the data.
    average, tol, max_iter, warm_start
        As in :class:`RankSVM`.

    Notes
    -----
    The paper minimises the hinge by gradient descent; here the loss is the squared hinge, minimised by the
    Newton steps of :class:`RankSVM`. ``objective_`` and ``gap_`` are on the scale of the mean over weighted
    pairs. ``level_weights_`` is the table in use; the default one is indexed by the distinct labels,
    ascending.

    References
    ----------
    Y. Cao, J. Xu, T.-Y. Liu, H. Li, Y. Huang, H.-W. Hon: Adapting Ranking SVM to Document Retrieval, SIGIR
    2006.
    """

    level_weights_: FloatArray = field(init=False)

    level_weights: Any = None

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> LevelProblem:
        weight = checked_query_weight(query_weight, data.n_queries)
        if self.level_weights is None:
            levels, table = ndcg_losses(data.y, data.queries, weight, data.document_weight)
        else:
            levels, table = data.y, np.array(self.level_weights, dtype=np.float64)
        loss = SquaredHinge(table).bind(levels, data.queries, weight * balance(data), data.document_weight)
        objective = LocalObjective(data.X, loss, data.feature_names)
        return LevelProblem(objective, self._penalty(objective), objective.varies, table)

    def _solution(self, problem: Any, result: Result) -> Attributes:
        return {**super()._solution(problem, result), "level_weights_": problem.level_weights}


@dataclass(frozen=True, eq=False)
class LevelProblem(Problem):
    """A problem whose pairs have the weight ``level_weights[higher label, lower label]``."""

    level_weights: FloatArray | None = None


def balance(data: Dataset) -> FloatArray:
    """Return max p / p_q for each query, p_q the weight of its pairs; 1 for a query without pairs."""
    pairs = data.pair_weights
    return np.asarray(np.divide(pairs.max(), pairs, out=np.ones_like(pairs), where=pairs > 0))


def ndcg_losses(
    y: FloatArray, queries: Queries, weight: FloatArray, document_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the level of each row (index of its label among the distinct labels) and the NDCG@1 losses.

    The loss of two levels is the mean over queries, weighted by ``weight`` and ``document_weight``.
    """
    labels, level = np.unique(y, return_inverse=True)
    if len(labels) > MAX_LABEL_LEVELS:
        reason = f"{len(labels)} distinct labels, but at most {MAX_LABEL_LEVELS} can have pair weights"
        raise DataError(None, None, f"{reason}; round the labels to grades, or use RankSVM")
    count = np.zeros((queries.n_queries, len(labels)))
    row_weight = 1.0 if document_weight is None else queries.group(document_weight)
    np.add.at(count, (queries.query_of_grouped, queries.group(level)), row_weight)
    present = (count > 0).astype(np.float64)
    top = len(labels) - 1 - np.argmax(present[:, ::-1], axis=1)
    hits = np.zeros_like(count)
    hits[np.arange(len(top)), top] = 1.0 / count[np.arange(len(top)), top]
    both_present = (present * weight[:, None]).T @ present
    loss = np.tril(1.0 - _gain_ratios(labels - labels[0]), -1)
    total = (hits * weight[:, None]).T @ present * loss
    mean = np.divide(total, both_present, out=np.zeros_like(loss), where=both_present > 0)
    return level.astype(np.float64), mean


def _gain_ratios(label: FloatArray) -> FloatArray:
    """Return (2^b − 1)/(2^a − 1) = 2^{b−a} (1 − 2^{−b})/(1 − 2^{−a}) at [a, b] for a > b ≥ 0; 1 elsewhere."""
    rise = -np.expm1(-np.log(2.0) * label)
    ratio = np.exp2(np.minimum(label[None, :] - label[:, None], 0.0)) * rise[None, :]
    return np.where(label[:, None] > label[None, :], ratio / np.where(rise > 0, rise, 1.0)[:, None], 1.0)


@dataclass(eq=False, repr=False)
class RankSVMStruct(Ranker):
    """min_w ½‖w‖² + (C/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩).

    The 1-slack formulation has one constraint for every subset of the p pairs. The most violated one contains
    all active pairs and is found in O(n log n); each iteration adds it and solves a quadratic programme with
    one variable per constraint.

    Parameters
    ----------
    C : float
        Weight of the mean over pairs; the C of a sum over pairs is C/p.
    tol : float
        Largest violation of a constraint, which is the largest gap.
    max_iter : int
        Maximum number of constraints.
    warm_start : bool
        Start from the previous fit's weights.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C. The gap is
    the objective minus the minimum under the constraints so far, a proven lower bound; at the end it is at
    most ``tol``, unless ``max_iter`` is reached first. With query weights, p is the sum of the pair weights.

    References
    ----------
    T. Joachims: Training Linear SVMs in Linear Time, KDD 2006. LETOR's RankSVM-Struct is his program
    SVM-rank.
    """

    C: Positive = 100.0
    tol: Positive = 1e-3
    _: KW_ONLY
    max_iter: Count = 1000
    warm_start: bool = False

    def _loss(self) -> Loss:
        return Hinge()

    def _penalty(self, objective: Objective) -> Penalty:
        return Ridge(1.0 / self.C)

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return CuttingPlane(self.tol, self.max_iter)


@dataclass(eq=False, repr=False)
class SVMMAP(Ranker):
    """min_w (1/2C)‖w‖² + (1/m) Σ_q max_π [1 − AP(π) − ⟨w, Ψ(π*) − Ψ(π)⟩] over the rankings π of each query.

    Ψ(π) = (1/RI) Σ_{i relevant, j not} ±(x_i − x_j), + where π ranks i above j; π* ranks all R relevant
    documents above the I irrelevant ones; m is the number of queries that have both kinds. The inner maximum,
    an upper bound of 1 − AP, is computed exactly: sort both kinds by score, then find the best position of
    each irrelevant document. The 1-slack cutting-plane method stops when the duality gap is at most ``tol``.

    Parameters
    ----------
    C : float
        Weight of the loss; the objective times C is the paper's ½‖w‖² + (C/m) Σ ξ_q.
    tol : float
        Largest duality gap (absolute; the loss at w = 0 is at most 1).
    relevant_from : float, optional
        The lowest label that counts as relevant. Default: 1, or any label above the lowest one if 1 would
        make all documents relevant or none.
    max_iter : int
        Maximum number of planes.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        The objective is at most this far above its minimum.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims: A Support Vector Method for Optimizing Average Precision,
    SIGIR 2007. Cutting planes: T. Joachims, T. Finley, C.-N. J. Yu: Cutting-Plane Training of Structural
    SVMs, Machine Learning 77, 2009.
    """

    C: Positive = 10.0
    _: KW_ONLY
    tol: Positive = 1e-3
    relevant_from: float | None = None
    max_iter: Count = 1000
    warm_start: bool = False

    def _loss(self) -> Loss:
        return AveragePrecisionHinge(self.relevant_from)

    def _penalty(self, objective: Objective) -> Penalty:
        return Ridge(1.0 / self.C)

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return CuttingPlane(self.tol, self.max_iter)
