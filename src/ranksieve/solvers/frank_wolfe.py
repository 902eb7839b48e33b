"""Frank–Wolfe on the ℓ1 ball, with away and pairwise steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.solvers.base import Loop, Problem, Solver, exact_step

SLOPE_TIE_TOLERANCE = (
    1e-9  # relative to the largest slope; exact steps leave differences of about a tenth of it
)


@dataclass
class Atoms:
    """w as a convex combination of the ball's vertices r·e_j, −r·e_j and the origin."""

    radius: float
    plus: FloatArray
    minus: FloatArray
    origin: float

    @classmethod
    def of(cls, w: FloatArray, radius: float) -> Atoms:
        rest = max(0.0, 1.0 - float(np.abs(w).sum()) / radius)
        return cls(radius, np.maximum(w, 0.0) / radius, np.maximum(-w, 0.0) / radius, rest)

    @property
    def w(self) -> FloatArray:
        return self.radius * (self.plus - self.minus)

    def worst(self, g: FloatArray) -> tuple[int, float, float]:
        """(feature, sign, weight) of the atom in use with the largest ⟨g, atom⟩; sign 0 is the origin."""
        largest = float(np.max(np.abs(g)))
        choices = [(0.0, -1, 0.0, self.origin)] if self.origin > 0.0 else []
        for sign, weight in ((1.0, self.plus), (-1.0, self.minus)):
            used = np.flatnonzero(weight > 0.0)
            if len(used):
                j = int(used[_first_largest(sign * g[used], largest)])
                choices.append((sign * self.radius * float(g[j]), j, sign, float(weight[j])))
        _, j, sign, weight_there = choices[
            _first_largest(np.array([choice[0] for choice in choices]), self.radius * largest)
        ]
        return j, sign, weight_there

    def vertex(self, j: int, sign: float, times: float = 1.0) -> dict[int, float]:
        """The nonzero entry of an atom, multiplied by ``times``."""
        return {j: times * sign * self.radius} if sign else {}

    def add(self, j: int, sign: float, amount: float) -> None:
        """Change the weight of an atom by ``amount``."""
        if sign == 0.0:
            self.origin = _snap_to_zero(self.origin + amount)
            return
        side = self.plus if sign > 0 else self.minus
        side[j] = _snap_to_zero(side[j] + amount)

    def shrink(self, factor: float) -> None:
        self.origin *= factor
        self.plus *= factor
        self.minus *= factor


def _snap_to_zero(weight: float) -> float:
    """Set a weight that is only a rounding error to zero, which removes its atom."""
    return 0.0 if weight < 1e-15 else weight


@dataclass(frozen=True)
class Move:
    """A step t ≤ ``limit`` moves w by t·(share·w + Σ_j amounts_j e_j).

    It multiplies all weights of atoms by 1 + share·t, then adds factor·t to the weight of each of the
    ``atoms``, given as (feature, sign, factor).
    """

    amounts: Mapping[int, float]
    atoms: tuple[tuple[int, float, float], ...]
    share: float
    limit: float

    @classmethod
    def of(cls, w: Atoms, share: float, limit: float, *atoms: tuple[int, float, float]) -> Move:
        amounts: dict[int, float] = {}
        for atom in atoms:
            for j, amount in w.vertex(*atom).items():
                amounts[j] = amounts.get(j, 0.0) + amount
        return cls(amounts, atoms, share, limit)

    def apply(self, atoms: Atoms, step: float) -> None:
        atoms.shrink(1.0 + self.share * step)
        for j, sign, factor in self.atoms:
            atoms.add(j, sign, factor * step)

    def direction(self, w: FloatArray) -> FloatArray:
        d = self.share * w
        for j, amount in self.amounts.items():
            d[j] += amount
        return d

    def scores(self, objective: Objective, point: Point) -> Any:
        """X·direction, from the scores at w and at most two columns."""
        s = self.share * point.scores
        for j, amount in self.amounts.items():
            s += amount * objective.features.column(j)
        return s


Variant: TypeAlias = Callable[[Atoms, FloatArray], Move]


def classic(atoms: Atoms, g: FloatArray) -> Move:
    """Towards the vertex with the steepest descent."""
    return Move.of(atoms, -1.0, 1.0, (*_best(g), 1.0))


def away(atoms: Atoms, g: FloatArray) -> Move:
    """Towards the best vertex, or away from the worst one in use, whichever descends more steeply."""
    towards, w = classic(atoms, g), atoms.w
    j, sign, weight = atoms.worst(g)
    amounts = atoms.vertex(j, sign, -1.0)
    away_slope = float(g @ w) + sum(amount * float(g[j]) for j, amount in amounts.items())
    if g @ towards.direction(w) <= away_slope or weight >= 1.0:
        return towards
    return Move.of(atoms, 1.0, weight / (1.0 - weight), (j, sign, -1.0))


def pairwise(atoms: Atoms, g: FloatArray) -> Move:
    """Move weight from the worst vertex in use to the best one."""
    j, sign, weight = atoms.worst(g)
    return Move.of(atoms, 0.0, weight, (*_best(g), 1.0), (j, sign, -1.0))


def _first_largest(values: FloatArray, scale: float) -> int:
    """Index of the first of the largest values, up to rounding: exact steps leave two equal slopes."""
    return int(np.argmax(values >= values.max() - SLOPE_TIE_TOLERANCE * scale))


def _best(g: FloatArray) -> tuple[int, float]:
    j = _first_largest(np.abs(g), float(np.max(np.abs(g))))
    return j, -1.0 if g[j] > 0 else 1.0


VARIANTS: dict[str, Variant] = {"classic": classic, "away": away, "pairwise": pairwise}


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Minimise f over the ℓ1 ball until the gap r‖g‖_∞ + ⟨g, w⟩ is at most ``tol``, with exact steps.

    ``variant`` is "classic", "away" or "pairwise".
    """

    tol: float = 1e-3
    max_iter: int = 1000
    variant: str = "classic"
    name: ClassVar[str] = "frank_wolfe"
    needs: ClassVar[frozenset[str]] = frozenset({"hessian", "ball"})

    def run(self, problem: Problem, start: FloatArray | Point | None, loop: Loop) -> None:
        objective, ball, point = problem.objective, problem.penalty, problem.start(start)
        if not isinstance(start, Point) and start is not None:
            point = problem.start(ball.prox(point.w, 1.0))
        atoms, choose = Atoms.of(point.w, ball.radius), VARIANTS[self.variant]
        while True:
            g = problem.gradient(point)
            gap = problem.gap(point, g)
            if gap <= self.tol or len(loop.trace) >= self.max_iter:  # recompute: rounding errors add up
                point = objective.evaluate(point.w)
                g = problem.gradient(point)
                gap = problem.gap(point, g)
            if loop.ends(point.w, point.value, gap, gap, point):
                return
            move = choose(atoms, g)
            direction, scores = move.direction(point.w), move.scores(objective, point)
            step, moved = exact_step(objective, point, direction, scores, move.limit)
            move.apply(atoms, step)
            point = Point(atoms.w, moved.scores, moved.value, moved.slack, moved.at)
