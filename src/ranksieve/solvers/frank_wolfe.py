"""Frank–Wolfe on the ℓ1 ball, with away and pairwise steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.objective import Point
from ranksieve.solvers.base import Loop, Problem, Solver
from ranksieve.solvers.line_search import exact_step


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
        choices = [(0.0, -1, 0.0, self.origin)] if self.origin > 0.0 else []
        for sign, weight in ((1.0, self.plus), (-1.0, self.minus)):
            used = np.flatnonzero(weight > 0.0)
            if len(used):
                j = int(used[np.argmax(sign * g[used])])
                choices.append((sign * self.radius * float(g[j]), j, sign, float(weight[j])))
        _, j, sign, weight_there = max(choices)
        return j, sign, weight_there

    def vertex(self, j: int, sign: float) -> FloatArray:
        v = np.zeros_like(self.plus)
        if sign:
            v[j] = sign * self.radius
        return v

    def add(self, j: int, sign: float, amount: float) -> None:
        """Give an atom more weight, or less."""
        if sign == 0.0:
            self.origin = _snapped(self.origin + amount)
            return
        side = self.plus if sign > 0 else self.minus
        side[j] = _snapped(side[j] + amount)

    def shrink(self, factor: float) -> None:
        self.origin *= factor
        self.plus *= factor
        self.minus *= factor


def _snapped(weight: float) -> float:
    """A weight that rounding has left near zero is zero: its atom is no longer in use."""
    return 0.0 if weight < 1e-15 else weight


@dataclass(frozen=True)
class Move:
    """A direction, the largest step along it, and how a step changes the atoms' weights."""

    direction: FloatArray
    limit: float
    apply: Callable[[Atoms, float], None]


Variant: TypeAlias = Callable[[Atoms, FloatArray], Move]


def classic(atoms: Atoms, g: FloatArray) -> Move:
    """Towards the vertex with the steepest descent."""
    j, sign = _best(g)

    def apply(atoms: Atoms, step: float) -> None:
        atoms.shrink(1.0 - step)
        atoms.add(j, sign, step)

    return Move(atoms.vertex(j, sign) - atoms.w, 1.0, apply)


def away(atoms: Atoms, g: FloatArray) -> Move:
    """Towards the best vertex, or away from the worst one in use, whichever descends more steeply."""
    towards = classic(atoms, g)
    j, sign, weight = atoms.worst(g)
    direction = atoms.w - atoms.vertex(j, sign)
    if g @ towards.direction <= g @ direction or weight >= 1.0:
        return towards

    def apply(atoms: Atoms, step: float) -> None:
        atoms.shrink(1.0 + step)
        atoms.add(j, sign, -step)

    return Move(direction, weight / (1.0 - weight), apply)


def pairwise(atoms: Atoms, g: FloatArray) -> Move:
    """Move weight from the worst vertex in use to the best one."""
    (best, best_sign), (j, sign, weight) = _best(g), atoms.worst(g)

    def apply(atoms: Atoms, step: float) -> None:
        atoms.add(best, best_sign, step)
        atoms.add(j, sign, -step)

    return Move(atoms.vertex(best, best_sign) - atoms.vertex(j, sign), weight, apply)


def _best(g: FloatArray) -> tuple[int, float]:
    j = int(np.argmax(np.abs(g)))
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
            if loop.ends(point.w, point.value, gap, gap, point):
                return
            move = choose(atoms, g)
            direction_scores = objective.scores(move.direction)
            step, moved = exact_step(objective, point, move.direction, direction_scores, move.limit)
            move.apply(atoms, step)
            point = Point(atoms.w, moved.scores, moved.value, moved.slack, moved.at)
