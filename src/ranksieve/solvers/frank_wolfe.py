"""Frank–Wolfe on the ℓ1 ball, with away and pairwise steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.objective import Objective, Point
from ranksieve.penalties.l1_ball import L1Ball
from ranksieve.solvers.line_search import exact_step
from ranksieve.solvers.result import Callback, Result, Trace


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


def frank_wolfe(
    objective: Objective,
    ball: L1Ball,
    start: FloatArray | None = None,
    *,
    variant: Variant = classic,
    tol: float = 1e-3,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Result:
    """Minimise f over the ball until the gap r‖g‖_∞ + ⟨g, w⟩ is at most ``tol``, with exact steps."""
    atoms = Atoms.of(np.zeros(objective.n_features) if start is None else start, ball.radius)
    with single_threaded_blas():
        return _iterate(objective, ball, atoms, variant, tol, max_iter, callback)


def _iterate(
    objective: Objective,
    ball: L1Ball,
    atoms: Atoms,
    variant: Variant,
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Result:
    point, trace = objective.evaluate(atoms.w), Trace()
    for n_iter in range(max_iter + 1):
        g = objective.gradient(point)
        gap = ball.gap(point.w, g)
        trace.record(point.value, gap, point.w)
        if callback is not None:
            callback(n_iter, point.w, point.value, gap)
        if gap <= tol or n_iter == max_iter:
            break
        point = _move(objective, point, atoms, variant(atoms, g))
    return Result(point.w, point.value, gap, n_iter, gap <= tol, trace)


def _move(objective: Objective, point: Point, atoms: Atoms, move: Move) -> Point:
    step, moved = exact_step(objective, point, move.direction, objective.scores(move.direction), move.limit)
    move.apply(atoms, step)
    return Point(atoms.w, moved.scores, moved.value, moved.slack, moved.at)
