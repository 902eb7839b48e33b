"""1-slack cutting planes: minimise a convex loss with a ridge by the tangent planes seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.errors import ParameterError
from ranksieve.objective import Point
from ranksieve.solvers.base import Loop, Problem, Solver

QP_SHARE = 0.01  # error of the quadratic programme, as a share of the gap asked for
TINY = 1e-12  # ridge of the quadratic programme, as a share of its largest diagonal entry


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """Minimise F(w) = f(w) + ½μ‖w‖² for a convex loss f ≥ 0 until the gap is at most ``tol``.

    Every point w_k gives a plane below the loss, f(w) ≥ b_k + ⟨g_k, w⟩; for the hinge it is the most violated
    constraint of the 1-slack formulation, the one that collects all active pairs. The next point minimises
    ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩), and that minimum is a lower bound of F: the gap is the least F seen
    less the bound.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    name: ClassVar[str] = "cutting_plane"
    needs: ClassVar[frozenset[str]] = frozenset({"quadratic", "slopes"})

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if not problem.penalty.alpha > 0:
            raise ParameterError("alpha", problem.penalty.alpha, "the solver cutting_plane needs a ridge > 0")

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        planes, point, mu = Planes.none(problem.n_features), problem.start(start), problem.penalty.alpha
        best, least, bound = point, np.inf, 0.0
        while True:
            value = problem.value(point)
            if value <= least or not np.isfinite(value):  # of equals the later one: w = 0 ranks nothing
                best, least = point, value
            gap = float(np.maximum(0.0, least - bound)) + problem.objective.value_error(best)
            if loop.ends(best.w, least, gap, gap, best):
                return
            if point.value - planes.value(point.w) <= problem.objective.value_error(point):
                return  # no plane at this point lies above those that are known
            g = problem.gradient(point)
            planes = planes.with_one(g, point.value - float(g @ point.w), mu, QP_SHARE * self.tol)
            bound = max(bound, planes.bound(mu))  # an inexact programme may let it fall
            point = problem.objective.evaluate(planes.minimiser(mu))


@dataclass(frozen=True)
class Planes:
    """Planes b_k + ⟨g_k, w⟩ below a loss, their products ⟨g_k, g_l⟩, and the share of each in the minimum."""

    slopes: FloatArray
    offsets: FloatArray
    products: FloatArray
    shares: FloatArray

    @classmethod
    def none(cls, n_features: int) -> Planes:
        """The plane 0 alone."""
        return cls(np.zeros((1, n_features)), np.zeros(1), np.zeros((1, 1)), np.ones(1))

    def with_one(self, g: FloatArray, offset: float, mu: float, tol: float) -> Planes:
        """One plane more, and the shares that go with it."""
        slopes, offsets = np.vstack([self.slopes, g]), np.append(self.offsets, offset)
        row = slopes @ g
        products = np.block([[self.products, row[:-1, None]], [row]])
        shares = minimise_on_simplex(products / mu, offsets, np.append(self.shares, 0.0), tol)
        return Planes(slopes, offsets, products, shares)

    def value(self, w: FloatArray) -> float:
        """max_k (b_k + ⟨g_k, w⟩): no more than the loss."""
        return float(np.max(self.offsets + self.slopes @ w))

    def minimiser(self, mu: float) -> FloatArray:
        """argmin_w ½μ‖w‖² + max_k (b_k + ⟨g_k, w⟩) = −Σ_k share_k g_k / μ."""
        return np.asarray(-(self.shares @ self.slopes) / mu)

    def bound(self, mu: float) -> float:
        """Σ share_k b_k − ‖Σ share_k g_k‖²/(2μ): below the minimum for any shares."""
        mean = self.shares @ self.slopes
        return float(self.shares @ self.offsets) - float(mean @ mean) / (2.0 * mu)


def minimise_on_simplex(Q: FloatArray, b: FloatArray, start: FloatArray, tol: float) -> FloatArray:
    """argmin ½βᵀQβ − bᵀβ over β ≥ 0, Σβ = 1, to within ``tol``, for a positive semidefinite Q.

    Active sets: move to the minimum on the face of the simplex in use; where the move would leave the
    simplex, stop at its border and drop the coordinate; at the face's minimum, take in the coordinate with
    the least r_k = (Qβ − b)_k, until ⟨r, β⟩ − min r ≤ ``tol``, which bounds the error.
    """
    beta, face = start.copy(), np.flatnonzero(start > 0)
    for _ in range(20 * len(b) + 100):
        move = _face_minimum(Q, b, face) - beta[face]
        shrinking = move < 0
        room = np.where(shrinking, beta[face] / np.where(shrinking, -move, 1.0), np.inf)
        if room.min() < 1.0:
            beta[face] += room.min() * move
            beta[face[np.argmin(room)]] = 0.0
            face = face[beta[face] > 0]
            continue
        beta[face] += move
        r = Q @ beta - b
        entering = int(np.argmin(r))
        if r @ beta - r[entering] <= tol or entering in face:
            break
        face = np.append(face, entering)
    beta = np.maximum(beta, 0.0)
    return np.asarray(beta / beta.sum())


def _face_minimum(Q: FloatArray, b: FloatArray, face: IntArray) -> FloatArray:
    """The minimum with Σβ = 1 over the coordinates in ``face``, of either sign.

    The first coordinate is what the others leave of 1. A tiny ridge keeps planes that depend on one another
    from leaving the system singular.
    """
    first, others = face[0], face[1:]
    along = Q[others] - Q[first]  # Q times the moves from the first coordinate to each of the others
    system, moment = along[:, others] - along[:, [first]], b[others] - b[first] - along[:, first]
    scale = float(np.max(np.abs(system), initial=0.0)) or 1.0
    system = system / scale + TINY * np.eye(len(others))
    rest = np.linalg.lstsq(system, moment / scale, rcond=None)[0]
    return np.append(1.0 - rest.sum(), rest)
