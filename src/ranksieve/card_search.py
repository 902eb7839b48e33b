"""The search for the best card: one weight per feature, each out of a finite list.

Only the ranking counts, so weights d may be multiplied by any σ ≥ 0, and a card is judged by
F(d) = min_σ f(σd) + ½μ‖σd‖².

As a function of one weight, F falls and then rises: f + ½μ‖·‖² is convex, and the quotients of a convex set
of pairs (σ, σd_j) are an interval. So if neither neighbour of a weight is better, no other value is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.objective import Objective, Point

STARTS = 100  # scales from which weights are rounded
CLIPPED = 4.0  # how far beyond the first scale at which a weight exceeds its greatest value
TRIED = 12  # best cards of the second-order model that are evaluated
LEAST_GAIN = 1e-6  # share of F by which a change must lower it
MOST_STEPS = 30
SURE = 1e-10  # share of F that the best multiple of a card may be off


@dataclass(frozen=True, eq=False)
class Scaled:
    """A card, as the place of each weight among those it may have, at its best multiple σ."""

    places: IntArray
    sigma: float
    value: float
    point: Point


@dataclass(frozen=True, eq=False)
class Near:
    """f + ½μ‖·‖² near a point: ½wᵀAw − c·w, less a constant.

    Its minimum over the multiples of weights d is −``fall``(d) = −½(c·d)²/(dᵀAd), at ``sigma``(d); 0 at σ = 0
    if c·d ≤ 0.
    """

    c: FloatArray
    A: FloatArray

    def sigma(self, d: FloatArray) -> float:
        return float(self.c @ d / (d @ self.A @ d)) if d.any() else 0.0

    def falls(self, cards: FloatArray) -> FloatArray:
        """The fall of each row."""
        return _fall(cards @ self.c, np.einsum("ij,ij->i", cards @ self.A, cards))

    def best_in_one(self, cards: FloatArray, j: int, allowed: FloatArray) -> FloatArray:
        """The weight j of each row that makes its fall largest, the other weights as they are.

        (α + βt)²/(P + 2qt + rt²) has its maximum at t = (βP − αq)/(αr − βq) if that denominator is positive,
        else far out on the side of β; of the allowed weights one next to it is best.
        """
        now, rest = cards[:, j], cards.copy()
        rest[:, j] = 0.0
        across = rest @ self.A
        alpha, beta, q, r = rest @ self.c, self.c[j], across[:, j], self.A[j, j]
        P, denominator = np.einsum("ij,ij->i", across, rest), alpha * r - beta * q
        at = np.full(len(cards), math.copysign(np.inf, beta))
        np.divide(beta * P - alpha * q, denominator, out=at, where=denominator > 0)
        above = np.clip(np.searchsorted(allowed, at), 1, len(allowed) - 1)
        t = np.array([now, allowed[above - 1], allowed[above]])
        falls = _fall(alpha + beta * t, P + 2 * q * t + r * t**2)
        return np.asarray(t[np.argmax(falls, axis=0), np.arange(len(cards))])


def _fall(along: FloatArray, curvature: FloatArray) -> FloatArray:
    fall = np.zeros_like(along)
    np.divide(along**2, 2.0 * curvature, out=fall, where=(along > 0) & (curvature > 0))
    return fall


class Search:
    """The best card: first by a second-order model of F around the real-valued weights, then by F itself.

    ``allowed`` holds the weights that each feature may have, rising; 0 is one of them.
    """

    def __init__(self, objective: Objective, ridge: float, allowed: Sequence[FloatArray]) -> None:
        self.objective, self.ridge, self.allowed = objective, ridge, allowed

    def best(self, real: FloatArray) -> Scaled:
        """The card near real-valued weights that no change of one feature makes better."""
        near = self._near(self.objective.evaluate(real))
        rounded = self._rounded(real)
        cards = self._distinct(np.vstack([self._searched(near, rounded), rounded]))
        first = cards[np.argsort(-near.falls(cards), kind="stable")[:TRIED]]
        best = min((self._scaled(d, near) for d in first), key=lambda scaled: scaled.value)
        while (better := self._improved(best)) is not None:
            best = better
        return best

    def _rounded(self, real: FloatArray) -> FloatArray:
        """The real weights times each of many scales, rounded to what is allowed."""
        used = np.flatnonzero(real).tolist()
        sizes = {j: np.abs(self.allowed[j][self.allowed[j] * real[j] > 0]) for j in used}
        least = min((size.min() / abs(real[j]) for j, size in sizes.items()), default=1.0)
        most = min((size.max() / abs(real[j]) for j, size in sizes.items()), default=1.0)
        scales = np.geomspace(least / 2, max(CLIPPED * most, least), STARTS)
        cards = np.zeros((STARTS, len(real)))
        for j in used:
            distance = np.abs(self.allowed[j] - scales[:, None] * real[j])
            cards[:, j] = self.allowed[j][np.argmin(distance, axis=1)]
        return cards

    def _distinct(self, cards: FloatArray) -> FloatArray:
        """One card of each direction: that with the largest weights, whose neighbours are nearest to it."""
        shares = cards / [np.abs(allowed).max() for allowed in self.allowed]
        size = np.abs(shares).max(axis=1)
        order = np.argsort(-size, kind="stable")
        shares = shares[order] / np.maximum(size[order, None], np.finfo(np.float64).tiny)
        return cards[order[np.unique(shares.round(9), axis=0, return_index=True)[1]]]

    def _searched(self, near: Near, start: FloatArray) -> FloatArray:
        """Cards after changes of one weight at a time, as long as any lowers the second-order model."""
        cards, fall = start.copy(), np.full(len(start), -1.0)
        while np.any((now := near.falls(cards)) > fall * (1.0 + LEAST_GAIN)):
            fall = now
            for j, allowed in enumerate(self.allowed):
                cards[:, j] = near.best_in_one(cards, j, allowed)
        return cards

    def _improved(self, card: Scaled) -> Scaled | None:
        """The first better card with one weight moved to its neighbour, or two; None if there is none.

        All moves of one weight are tried; of two, those that the second-order model promises most of.
        """
        near, one = self._near(card.point), self._moves(card.places)
        i, j = np.triu_indices(len(one), 1)
        pairs = one[i] + one[j]
        apart = np.count_nonzero(pairs, axis=1) == 2
        singles, doubles = (self._weights(card.places + moves) for moves in (one, pairs[apart]))
        falls = near.falls(doubles)
        promising = np.flatnonzero(falls > near.falls(self._weights(card.places[None]))[0])
        doubles = doubles[promising[np.argsort(-falls[promising], kind="stable")[: len(one)]]]
        for d in [*singles[np.argsort(-near.falls(singles), kind="stable")], *doubles]:
            scaled = self._scaled(d, near)
            if scaled.value < card.value * (1.0 - LEAST_GAIN):
                return scaled
        return None

    def _moves(self, places: IntArray) -> IntArray:
        """One row for each step of one weight to a neighbour."""
        steps = np.vstack([-np.eye(len(places), dtype=np.int64), np.eye(len(places), dtype=np.int64)])
        last = np.array([len(allowed) - 1 for allowed in self.allowed])
        return np.asarray(steps[((places + steps >= 0) & (places + steps <= last)).all(axis=1)])

    def _scaled(self, d: FloatArray, near: Near) -> Scaled:
        """The best multiple of a card, by Newton's method.

        Pairs that agree with the card leave the hinge as σ grows, so the curvature along σ falls: from the
        left Newton's steps stop short of the minimum, and from the right one step leads to its left or to 0.
        """
        along, square = self.objective.scores(d), float(d @ d)
        sigma, slope, curvature = max(near.sigma(d), 0.0), 0.0, 1.0
        for _ in range(MOST_STEPS):
            sigma = max(sigma - slope / curvature, 0.0)
            point = self.objective.evaluate_scores(sigma * d, sigma * along)
            value = point.value + 0.5 * self.ridge * sigma**2 * square
            slope = self.objective.slope_along(point, along) + self.ridge * sigma * square
            curvature = self.objective.curvature_along(point, along) + self.ridge * square
            if slope**2 <= 2.0 * SURE * value * curvature or (sigma == 0.0 and slope >= 0.0):
                break
        return Scaled(self._places(d), sigma, value, point)

    def _near(self, point: Point) -> Near:
        everything = np.arange(self.objective.n_features)
        A = self.objective.hessian(point, everything) + self.ridge * np.eye(len(everything))
        slope = self.objective.gradient(point) + self.ridge * point.w
        return Near(A @ point.w - slope, A)

    def _places(self, d: FloatArray) -> IntArray:
        return np.array([np.searchsorted(a, w) for a, w in zip(self.allowed, d, strict=True)], dtype=np.int64)

    def _weights(self, places: IntArray) -> FloatArray:
        """The weights at these places, row by row."""
        return np.column_stack([allowed[places[:, j]] for j, allowed in enumerate(self.allowed)])
