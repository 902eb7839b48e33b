"""Scorecards: integer points per unit of each feature, and the search for the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.choice.forward import ForwardSearch, fit_set
from ranksieve.data.dataset import (
    Dataset,
    QueryWeight,
    counted,
    fingerprint,
    fingerprint_of_weights,
    query_weights,
)
from ranksieve.data.features import SHOWN_NAMES, as_sign, named_signs
from ranksieve.errors import DataError, ParameterError, shortened
from ranksieve.model.linear import (
    Card,
    FittedRanker,
    LinearModel,
    as_unit,
    check_levels,
    exact_weight,
    linear_model,
)
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.prepare import NOT_NORMALISED
from ranksieve.prepare.scaling import learn_normalisation
from ranksieve.solvers.base import relative

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


METHOD = "Scorecard"
ROUND = (1, 2, 5)  # times a power of ten
TOL = 1e-8  # relative gap of the real-valued weights
NO_CARD = "no weights of the model's features rank the data better than none, so there is no scorecard"


def make_scorecard(
    model: LinearModel | FittedRanker,
    data: Dataset,
    levels: int = 9,
    *,
    units: Mapping[str, float] | None = None,
    query_weight: QueryWeight | None = None,
) -> LinearModel:
    """Turn the features of a linear model into a scorecard: score = Σ_j points_j · (x_j / unit_j).

    The weights of the features are fitted again to ``data``, with the ridge of the model's certificate (else
    a thousandth of the mean curvature); then points and units are searched that come nearest to them in the
    training objective. A feature that does best with 0 points leaves the card. The certificate bounds how far
    the objective of the card is above that of the best real-valued weights.

    Parameters
    ----------
    model : LinearModel or fitted ranker
        Says which features, how they are filled and normalised, and which signs their weights must have.
    data : Dataset
        The training data.
    levels : int
        Points are whole numbers from −levels to levels; 1 to 99.
    units : mapping of feature to number, optional
        The units of these features. A feature of 0 and 1 has the unit 1; another gets the round number (1, 2
        or 5 times a power of ten) next to its deviation within queries, or one of the two beside it.
    query_weight : array or mapping of query id to number, optional
        One weight per query, in order of first appearance, or the weights of some; others weigh 1.

    Returns
    -------
    LinearModel
        With a ``card``, weights points/unit of the features as they come, missing ones filled as before.
        Only a normalisation within each query stays; points are then per unit of the normalised features.
    """
    check_levels(levels)
    model = _checked(model, data)
    plain, scale = _unscaled(model)
    weight = query_weights(query_weight, data)
    learned_from = {"train": fingerprint(data)}
    if weight is not None:
        learned_from["query_weight"] = fingerprint_of_weights(weight)
    data, weight = counted(data, weight)
    values = data.replace_features(plain.inputs(data), plain.names)
    signs = _signs(model, plain, data.feature_names)
    with single_threaded_blas():
        objective = make_objective(values.replace_features(values.X / scale), query_weight=weight)
        ridge, start = _ridge(model, objective), np.zeros(len(scale))
        if not ridge:
            raise DataError(None, None, NO_CARD)
        real = fit_set(objective, range(len(scale)), start, ridge, signs if signs.any() else None, TOL)
        choices = list(map(_choices, _units(values, units or {}), repeat(levels), signs))
        allowed = [one.weights * s for one, s in zip(choices, scale, strict=True)]
        best = Search(objective, ridge, allowed).best(real.w)
    written = [one.written[place] for one, place in zip(choices, best.places, strict=True)]
    card, divisor = _card(plain.names, written, levels)
    if not (card.points and best.sigma):
        raise DataError(None, None, NO_CARD)
    gap = max(0.0, best.value + objective.value_error(best.point) - (real.objective - real.gap))
    return LinearModel(
        tuple(replace(t, weight=card.weight(t.name)) for t in plain.terms if t.name in card.points),
        model.n_features,
        preparation=plain.preparation.of(list(card.points)),
        method=METHOD,
        parameters={
            "model": model.method,
            "levels": levels,
            "units": units or {},
            "signs": {name: sign for name, sign in zip(plain.names, signs, strict=True) if sign},
            "ridge_scales": dict(zip(plain.names, scale, strict=True)),
        },
        certificate={
            "kind": "scorecard",
            "objective": best.value,
            "gap": gap,
            "relative_gap": relative(gap, best.value),
            "ridge": ridge,
            "scale": best.sigma * divisor,
        },
        data=learned_from,
        chosen_by=model.chosen_by,
        card=card,
    )


# --- What is given ---------------------------------------------------------------------------------------


def _checked(given: Any, data: Any) -> LinearModel:
    model = linear_model(given, "so it has no weights to turn into points")
    if not isinstance(data, Dataset):
        raise ParameterError("data", data, "must be a Dataset; give Dataset(X, y, qid)")
    if model.card is not None:
        raise ParameterError("model", given, "is a scorecard; give the model that it was made from")
    if not model.weights.any():
        raise ParameterError("model", given, "must use at least one feature")
    return model


def _unscaled(model: LinearModel) -> tuple[LinearModel, FloatArray]:
    """The features in use without scales of all data, and these scales (1 without)."""
    terms = tuple(term for term in model.terms if term.weight)
    preparation = model.preparation.of([term.name for term in terms])
    normalisation = preparation.normalisation
    if not normalisation.learns:
        return replace(model, terms=terms, preparation=preparation), np.ones(len(terms))
    plain = replace(model, terms=terms, preparation=replace(preparation, normalisation=NOT_NORMALISED))
    return plain, np.array(normalisation.scale)


def _signs(model: LinearModel, plain: LinearModel, names: Sequence[str]) -> FloatArray:
    """The signs that the model's parameters demand of the weights, 0 where either will do.

    ``names`` are those of the data, which patterns match.
    """
    signs = named_signs(model.parameters.get("signs") or {}, names)
    return np.array([as_sign(signs.get(term.name, 0), term.name) for term in plain.terms])


def _ridge(model: LinearModel, objective: Objective) -> float:
    """That of the certificate, else that of forward selection, which is 0 if features differ in no pair."""
    known = model.certificate.get("ridge")
    if isinstance(known, int | float) and known > 0:
        return float(known)
    return ForwardSearch(objective, objective.varies).ridge


# --- What a card may say ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choices:
    """The weights that a feature may have on a card, rising, and how each is ``written``: (points, unit)."""

    weights: FloatArray
    written: tuple[tuple[int, float], ...]


def _choices(units: Sequence[float], levels: int, sign: float) -> Choices:
    """Every number of points with every unit; the first of the units that gives a weight writes it."""
    found: dict[Fraction, tuple[int, float]] = {}
    for unit in units:
        for points in range(1, levels + 1):
            found.setdefault(exact_weight(points, unit), (points, unit))
    up = [(float(weight), *found[weight]) for weight in sorted(found)] if sign >= 0 else []
    down = [(-float(weight), -found[weight][0], found[weight][1]) for weight in sorted(found)]
    rows = [*(reversed(down) if sign <= 0 else ()), (0.0, 0, units[0]), *up]
    return Choices(np.array([row[0] for row in rows]), tuple((points, unit) for _, points, unit in rows))


def _units(data: Dataset, given: Mapping[str, float]) -> list[list[float]]:
    """The units that each feature may have, the most natural first."""
    for name in given:
        if name not in data.feature_names:
            features = shortened(data.feature_names, SHOWN_NAMES)
            raise ParameterError("units", given, f"the model does not use {name!r}; it uses {features}")
    spread = learn_normalisation(data, "within_z").scale
    return [_units_of(*column, given) for column in zip(data.feature_names, data.X.T, spread, strict=True)]


def _units_of(name: str, values: FloatArray, spread: float, given: Mapping[str, float]) -> list[float]:
    if name in given:
        return [as_unit(given[name], name)]
    return [1.0] if np.isin(values, (0.0, 1.0)).all() else _round_units(name, spread)


def _round_units(name: str, spread: float) -> list[float]:
    """The round number nearest to a spread, and the two beside it, by their distance from that one."""
    power = math.floor(math.log10(as_unit(spread, name)))
    numbers = [float(f"{digit}e{power + more}") for more in (-1, 0, 1) for digit in ROUND]
    nearest = min(numbers, key=lambda number: abs(math.log(number / spread)))
    place = numbers.index(nearest)
    return sorted(numbers[place - 1 : place + 2], key=lambda number: abs(math.log(number / nearest)))


def _card(names: Sequence[str], written: Sequence[tuple[int, float]], levels: int) -> tuple[Card, int]:
    """The features that have points, in lowest terms, and what all points were divided by."""
    divisor = max(1, math.gcd(*(points for points, _ in written)))
    used = {name: (points, unit) for name, (points, unit) in zip(names, written, strict=True) if points}
    points = {name: points // divisor for name, (points, _) in used.items()}
    return Card(levels, points, {name: unit for name, (_, unit) in used.items()}), divisor
