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

MOST_LEVELS = 256


@dataclass(eq=False, repr=False)
class CSRankSVM(RankSVM):
    """min_w ½‖w‖² + C Σ_q (max p / p_q) Σ_{pairs of q} τ(y_i, y_j) max(0, 1 − ⟨w, x_i − x_j⟩)².

    p_q is the number of pairs of query q, or the sum of their weights: with the factor max p / p_q a query
    with few pairs counts as much as one with many. τ makes errors at the top of the ranking cost more.

    Parameters
    ----------
    C : float
        Weight of the sum over pairs.
    level_weights : table, optional
        τ[upper label, lower label], for labels 0, 1, …; entries on and above the diagonal do not matter.
        Default, as in the paper: the NDCG@1 that a perfect ranking loses when two documents of these labels
        change places, averaged over the training queries that have both labels (one of weight 2 counts as
        two, and so does a document). A query whose highest label a stands on n documents loses
        (1/n)(1 − (2^b − 1)/(2^a − 1)) in the mean for the labels (a, b), and nothing for pairs below its
        highest label; labels count from the lowest of the data.
    average, tol, max_iter, warm_start
        As for :class:`RankSVM`.

    Notes
    -----
    The paper minimises the hinge by gradient descent; here the loss is the squared hinge, by the Newton steps
    of :class:`RankSVM`. ``objective_`` and ``gap_`` are on the scale of the mean over weighted pairs.
    ``level_weights_`` is the table in use, by the data's distinct labels ascending if it was not given.

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
    """A problem whose pairs weigh ``level_weights[upper label, lower label]``."""

    level_weights: FloatArray | None = None


def balance(data: Dataset) -> FloatArray:
    """max p / p_q of each query, p_q the weight of its pairs; 1 for a query without pairs."""
    pairs = data.pair_weights
    return np.asarray(np.divide(pairs.max(), pairs, out=np.ones_like(pairs), where=pairs > 0))


def ndcg_losses(
    y: FloatArray, queries: Queries, weight: FloatArray, document_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Each row's level (its label's rank among the distinct labels) and the mean NDCG@1 lost per level pair.

    ``weight`` says as how many queries each counts in the mean, ``document_weight`` as how many documents.
    """
    labels, level = np.unique(y, return_inverse=True)
    if len(labels) > MOST_LEVELS:
        reason = f"{len(labels)} distinct labels, but at most {MOST_LEVELS} can have a weight per pair"
        raise DataError(None, None, f"{reason}; round the labels to grades, or use RankSVM")
    count = np.zeros((queries.n_queries, len(labels)))
    mass = 1.0 if document_weight is None else queries.group(document_weight)
    np.add.at(count, (queries.query_of_grouped, queries.group(level)), mass)
    present = (count > 0).astype(np.float64)
    top = len(labels) - 1 - np.argmax(present[:, ::-1], axis=1)
    hits = np.zeros_like(count)
    hits[np.arange(len(top)), top] = 1.0 / count[np.arange(len(top)), top]
    together = (present * weight[:, None]).T @ present
    lost = np.tril(1.0 - _gain_ratios(labels - labels[0]), -1)
    lost_by_all = (hits * weight[:, None]).T @ present * lost
    mean = np.divide(lost_by_all, together, out=np.zeros_like(lost), where=together > 0)
    return level.astype(np.float64), mean


def _gain_ratios(label: FloatArray) -> FloatArray:
    """(2^b − 1)/(2^a − 1) = 2^{b−a} (1 − 2^{−b})/(1 − 2^{−a}) for a > b ≥ 0, at [a, b]; 1 elsewhere."""
    rise = -np.expm1(-np.log(2.0) * label)
    ratio = np.exp2(np.minimum(label[None, :] - label[:, None], 0.0)) * rise[None, :]
    return np.where(label[:, None] > label[None, :], ratio / np.where(rise > 0, rise, 1.0)[:, None], 1.0)


@dataclass(eq=False, repr=False)
class RankSVMStruct(Ranker):
    """min_w ½‖w‖² + (C/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩).

    The 1-slack formulation has one constraint for every subset of the p pairs. The most violated one collects
    all active pairs, found in O(n log n); each iteration adds it and solves a quadratic programme with one
    variable a constraint.

    Parameters
    ----------
    C : float
        Weight of the mean over pairs; the C of a sum over pairs is C/p.
    tol : float
        Largest amount by which a constraint may be violated, which is the largest gap.
    max_iter : int
        Most constraints.
    warm_start : bool
        Start from the previous fit's weights.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C. The gap is
    the objective less the minimum under the constraints so far, a proven lower bound, and ends ≤ ``tol``
    unless ``max_iter`` ends the iteration first. With weights per query, p is the sum of the pairs' weights.

    References
    ----------
    T. Joachims: Training Linear SVMs in Linear Time, KDD 2006. LETOR's RankSVM-Struct is its tool SVM-rank.
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

    Ψ(π) = (1/RI) Σ_{i relevant, j not} ±(x_i − x_j), + where π puts i above j; π* puts all R relevant
    documents above the I others; m counts the queries that have both kinds. The inner maximum, an
    upper bound of 1 − AP, is found exactly: both kinds sorted by score, then one place for each irrelevant
    document. 1-slack cutting planes stop when the duality gap is at most ``tol``.

    Parameters
    ----------
    C : float
        Weight of the loss; times C this is the paper's ½‖w‖² + (C/m) Σ ξ_q.
    tol : float
        Largest duality gap (absolute; the loss at w = 0 is at most 1).
    relevant_from : float, optional
        The lowest label that counts as relevant. By default 1; if that makes all documents alike, any label
        above the lowest one.
    max_iter : int
        Most planes.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        The objective is at most this far above its minimum.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims: A Support Vector Method for Optimizing Average Precision,
    SIGIR 2007. The planes: T. Joachims, T. Finley, C.-N. J. Yu: Cutting-Plane Training of Structural SVMs,
    Machine Learning 77, 2009.
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
