"""The papers' theorems as functions.

FenchelRank's and FSMRank's take features in [0, 1]; FSMRank's also importances in (0, 1] and similarities in
[0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve.data.dataset import Dataset


def fenchelrank_iterations(radius: float, tol: float) -> float:
    """Theorem 1: FenchelRank is within ε of the minimum after at most 16r²/ε − 1 iterations (r² ≥ 1/8)."""
    return 16.0 * radius**2 / tol - 1.0


def l1_ball_gap(radius: float, w: FloatArray, gradient: FloatArray) -> float:
    """Theorem 2: f(w) − min f over ‖w‖₁ ≤ r is at most r‖g‖_∞ + ⟨g, w⟩."""
    return max(0.0, radius * float(np.max(np.abs(gradient))) + float(gradient @ w))


def fsmrank_lipschitz(n_features: int, similarity_weight: float) -> float:
    """Theorem 1: L0 = (4 + 2λ1)·d bounds the Lipschitz constant of the gradient of f + q in (u, v).

    For eq. (1), in w alone, half of it does.
    """
    return (4.0 + 2.0 * similarity_weight) * n_features


def fsmrank_convergence(lipschitz: float, start: FloatArray, optimum: FloatArray, n_iter: int) -> float:
    """Theorem 2: after t iterations the objective is within 2L‖x0 − x*‖²/(t + 1)² of the minimum.

    L is the largest constant the line search may accept. It doubles from L0/2¹⁰, so it tries L0 itself, where
    the test always holds: L = L0 is valid without the factor 2 that backtracking costs in general. ``start``
    and ``optimum`` are in the solver's variables: (u, v) for eq. (2), w for eq. (1).
    """
    change = start - optimum
    return 2.0 * lipschitz * float(change @ change) / (n_iter + 1) ** 2


def fsmrank_generalisation(
    radius: float, n_features: int, n_pairs: float, similarity_weight: float, probability: float
) -> float:
    """Theorem 3: with probability 1 − θ, ℓ(w) on unseen pairs exceeds ℓ(w) on the training pairs by at most

    2L0 [2C√(2d/p) + (1 + λ1/2)·C²·√(2 log(4d²)/p)] + [(1 + C)² + (λ1/2)C² − 1]·√(log(1/θ)/(2p))

    for every w with Σ|w_j|/s_j ≤ C, ℓ = f + q, p pairs drawn independently, L0 = (4 + 2λ1)d of Theorem 1.

    The second term follows the proof: the theorem prints C² + λ1/2 where the proof has C² + (λ1/2)C², and
    log(4d) where the entropy over the (2d)² entries of wwᵀ gives log(4d²). Lemma 1 asks for the Lipschitz
    constant of the loss, 2(1 + C) in the margin, where the theorem has L0, that of the gradient; here stands
    the larger of the two.

    Parameters
    ----------
    radius : float
        C; of a fit, Σ|w_j|/s_j.
    probability : float
        θ, the probability that the bound fails, in (0, 1).
    """
    C, d, p, ridge = radius, n_features, n_pairs, 0.5 * similarity_weight
    lipschitz = max(fsmrank_lipschitz(d, similarity_weight), 2.0 * (1.0 + C))
    complexity = 2 * C * math.sqrt(2 * d / p) + (1 + ridge) * C**2 * math.sqrt(2 * math.log(4 * d**2) / p)
    range_ = (1 + C) ** 2 + ridge * C**2 - 1
    return 2 * lipschitz * complexity + range_ * math.sqrt(math.log(1 / probability) / (2 * p))


def listmle_iterations(lipschitz: float, optimum: FloatArray, tol: float) -> float:
    """Sparse CS-ListMLE, Theorem 2(d): from w = 0 at most L‖w*‖²/(2ε) iterations to within ε of the minimum.

    L is the largest constant that the search for it may accept. It doubles from L0/2⁸, L0 the bound of
    Theorem 1, so that L0 itself is tried, where the test always holds.
    """
    return lipschitz * float(optimum @ optimum) / (2.0 * tol)


def squared_radii(data: Dataset) -> FloatArray:
    """Per query ¼ Σ_f (max − min of feature f)²: the ball around the middle that holds all its documents."""
    return data.for_queries(_squared_radii)


def _squared_radii(data: Dataset) -> FloatArray:
    queries = data.queries
    rows_of_query = np.split(queries.order, queries.offsets[1:-1])
    return np.array([_squared_diameter(data.X[rows]) / 4.0 for rows in rows_of_query])


def _squared_diameter(X: Matrix) -> float:
    ranges = (X.max(axis=0) - X.min(axis=0)).astype(np.float64)
    return float((ranges * ranges).sum())
