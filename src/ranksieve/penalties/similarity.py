"""FSMRank's penalty: a quadratic in the similarity of features and an ℓ1 term weighted by their importance.

Both forms have a dual in doubled variables u, v ≥ 0 with w = u − v, with one inequality per variable.
``q_gradient`` is always λ1·A·t, the gradient of q(t) = (λ1/2) tᵀAt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import ParameterError, warn_caller

EIGENVALUE_ROUNDING = (
    10 * np.finfo(np.float64).eps
)  # times d and the largest eigenvalue: smaller eigenvalues are treated as 0


@dataclass(frozen=True, eq=False)
class SimilarityQuadratic:
    """q(t) = (λ1/2) tᵀAt with λ1 = ``weight`` and A = ``matrix``; 0 without a matrix."""

    weight: float
    matrix: FloatArray | None

    def gradient(self, t: FloatArray) -> FloatArray:
        """λ1·A·t."""
        return np.zeros_like(t) if self.matrix is None else self.weight * (self.matrix @ t)


@dataclass(frozen=True, eq=False)
class Split:
    """x = (u, v) ≥ 0, t = u + v, ℓ1 term Σ_j slope_j (u_j + v_j): eq. (2) of the paper.

    slope_j = λ2/s_j, infinite for an excluded feature.
    """

    slope: FloatArray
    name: ClassVar[str] = "split"
    offers: ClassVar[frozenset[str]] = frozenset({"prox"})

    def variables(self, w: FloatArray) -> FloatArray:
        """The x with the lowest objective among those with weights w."""
        return np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0)])

    def weights(self, x: FloatArray) -> FloatArray:
        return x[: len(self.slope)] - x[len(self.slope) :]

    def sizes(self, x: FloatArray) -> FloatArray:
        """The argument t of q."""
        return x[: len(self.slope)] + x[len(self.slope) :]

    def gradient(self, g: FloatArray, q_gradient: FloatArray) -> FloatArray:
        """Gradient in x of f + q, given f's gradient g in w."""
        return np.concatenate([g + q_gradient, q_gradient - g])

    def doubled(self, q_gradient: FloatArray) -> FloatArray:
        """Gradient of q in (u, v)."""
        return np.concatenate([q_gradient, q_gradient])

    def value(self, x: FloatArray) -> float:
        """The ℓ1 term."""
        return _weighted_sum(self.slope, self.sizes(x))

    def prox(self, x: FloatArray, step: float) -> FloatArray:
        return np.maximum(x - step * np.concatenate([self.slope, self.slope]), 0.0)


@dataclass(frozen=True, eq=False)
class Signed:
    """x = t = w, ℓ1 term Σ_j slope_j |w_j|: eq. (1) of the paper."""

    slope: FloatArray
    name: ClassVar[str] = "signed"
    offers: ClassVar[frozenset[str]] = frozenset({"prox"})

    def variables(self, w: FloatArray) -> FloatArray:
        return w

    def weights(self, x: FloatArray) -> FloatArray:
        return x

    def sizes(self, x: FloatArray) -> FloatArray:
        return x

    def gradient(self, g: FloatArray, q_gradient: FloatArray) -> FloatArray:
        return g + q_gradient

    def doubled(self, q_gradient: FloatArray) -> FloatArray:
        return np.concatenate([q_gradient, -q_gradient])

    def value(self, x: FloatArray) -> float:
        return _weighted_sum(self.slope, np.abs(x))

    def prox(self, x: FloatArray, step: float) -> FloatArray:
        return np.asarray(np.sign(x) * np.maximum(np.abs(x) - step * self.slope, 0.0))


Form: TypeAlias = Split | Signed
FORMS: dict[str, Callable[[FloatArray], Form]] = {form.name: form for form in (Split, Signed)}


def importance_slopes(alpha: float, importance: FloatArray) -> FloatArray:
    """λ2/s_j; infinite where s_j = 0, so that the weight is exactly 0."""
    slopes = np.full(len(importance), np.inf)
    with np.errstate(over="ignore"):
        np.divide(alpha, importance, out=slopes, where=importance > 0)
    return slopes


def feasible_scales(form: Form, g: FloatArray, q_gradient: FloatArray) -> list[tuple[float, float]]:
    """(c, θ) in [0, 1]² with c·(g, −g) + θ·doubled(q_gradient) + slope ≥ 0: feasible dual points (cξ, θt).

    Two candidates: the largest c with θ = 1, if it exists, and the largest c with θ = c, which always exists.
    At an optimum both are (1, 1).
    """
    across, along = np.concatenate([g, -g]), form.doubled(q_gradient)
    slope = np.concatenate([form.slope, form.slope])
    alone, joint = _largest_scale(across, along + slope), _largest_scale(across + along, slope)
    return [(c, theta) for c, theta in ((alone, 1.0), (joint, joint)) if not np.isnan(c)]


def _largest_scale(direction: FloatArray, slack: FloatArray) -> float:
    """Largest c in [0, 1] with c·direction + slack ≥ 0; NaN if there is none."""
    falling, rising = direction < 0, direction > 0
    with np.errstate(over="ignore"):
        most = float(np.min(slack[falling] / -direction[falling], initial=1.0))
        least = float(np.max(-slack[rising] / direction[rising], initial=0.0))
    constant = float(np.min(slack[direction == 0], initial=0.0))
    return most if constant >= 0 and most >= least else np.nan


def is_positive_semidefinite(matrix: FloatArray) -> bool:
    """Return True if no eigenvalue is negative, up to rounding."""
    return _is_semidefinite(_eigenvalues(matrix))


def nearest_positive_semidefinite(matrix: FloatArray) -> FloatArray:
    """Nearest positive semidefinite matrix in the Frobenius norm: negative eigenvalues are set to 0."""
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(0.5 * (nearest + nearest.T))


PSD_POLICIES = ("project", "warn", "error", "ignore")


def apply_psd_policy(matrix: FloatArray, policy: str) -> FloatArray:
    """Return the matrix if it is positive semidefinite, else apply ``policy``, one of PSD_POLICIES."""
    eigenvalues = _eigenvalues(matrix)
    if policy == "ignore" or _is_semidefinite(eigenvalues):
        return matrix
    if policy == "project":
        return nearest_positive_semidefinite(matrix)
    problem = (
        f"the similarity matrix is not positive semidefinite (smallest eigenvalue {eigenvalues[0]:.3g}, "
        f"largest {eigenvalues[-1]:.3g}), so the problem may not be convex"
    )
    remedy = "use `psd='project'` or `similarity='squared_pearson'`"
    if policy == "error":
        raise ParameterError("psd", "error", f"{problem}; {remedy}")
    warn_caller(f"{problem} and the duality gap is unknown; {remedy}")
    return matrix


def _eigenvalues(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


def _is_semidefinite(eigenvalues: FloatArray) -> bool:
    return bool(
        eigenvalues[0] >= -EIGENVALUE_ROUNDING * len(eigenvalues) * max(eigenvalues[-1], -eigenvalues[0])
    )


def _weighted_sum(slope: FloatArray, sizes: FloatArray) -> float:
    used = sizes != 0
    return float(slope[used] @ sizes[used])
