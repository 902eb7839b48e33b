"""Scorecards: integer points per unit of each feature, and the search for the best card."""

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
    drop_zero_weight,
    fingerprint,
    fingerprint_of_weights,
    query_weights,
)
from ranksieve.data.features import MAX_SHOWN_NAMES, as_sign, named_signs
from ranksieve.errors import DataError, ParameterError, short_list
from ranksieve.losses.squared_hinge import stated_loss
from ranksieve.model.linear import (
    Card,
    FittedRanker,
    LinearModel,
    as_linear_model,
    as_unit,
    check_levels,
    exact_weight,
)
from ranksieve.objective import Objective, Point, make_objective
from ranksieve.prepare import NOT_NORMALISED
from ranksieve.prepare.scaling import learn_normalisation
from ranksieve.prepare.steps import Steps
from ranksieve.solvers.base import relative

N_SCALES = 100  # at which the real-valued weights are rounded
MAX_SCALE_FACTOR = 4.0  # largest scale, relative to the first one at which a weight exceeds its largest value
MAX_EVALUATED = 12  # best cards of the second-order model that are evaluated
MIN_DECREASE = 1e-6  # relative decrease of F that makes a card better
MAX_MULTIPLE_STEPS = 30
MULTIPLE_TOL = 1e-10  # error of F at the best multiple of a card, as a share of F


@dataclass(frozen=True, eq=False)
class ScaledCard:
    """A card at its best multiple σ; ``indices`` are those of its weights among the allowed weights."""

    indices: IntArray
    sigma: float
    value: float
    point: Point


@dataclass(frozen=True, eq=False)
class CardQuadratic:
    """Second-order model of F = f + ½μ‖·‖² around a point: ½wᵀAw − c·w plus a constant.

    Its minimum over the multiples σd, σ ≥ 0, is −½(c·d)²/(dᵀAd), at ``sigma``(d); 0 at σ = 0 if c·d ≤ 0.
    """

    c: FloatArray
    A: FloatArray

    def sigma(self, d: FloatArray) -> float:
        return float(self.c @ d / (d @ self.A @ d)) if d.any() else 0.0

    def decreases(self, cards: FloatArray) -> FloatArray:
        """Decrease of the model from w = 0 to the best multiple of each row."""
        return _decrease(cards @ self.c, np.einsum("ij,ij->i", cards @ self.A, cards))

    def best_weight(self, cards: FloatArray, j: int, allowed: FloatArray) -> FloatArray:
        """For each row the best value of weight j, given its other weights.

        (α + βt)²/(P + 2qt + rt²) has its maximum at t = (βP − αq)/(αr − βq) if that denominator is positive,
        else at infinity with the sign of β; the best allowed weight is one of the two next to it.
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
        decreases = _decrease(alpha + beta * t, P + 2 * q * t + r * t**2)
        return np.asarray(t[np.argmax(decreases, axis=0), np.arange(len(cards))])


def _decrease(along: FloatArray, curvature: FloatArray) -> FloatArray:
    decrease = np.zeros_like(along)
    np.divide(along**2, 2.0 * curvature, out=decrease, where=(along > 0) & (curvature > 0))
    return decrease


class CardSearch:
    """Search for the best card: first by a second-order model of F around real-valued weights, then by F.

    ``allowed`` are the weights that each feature may have, ascending; 0 is one of them.
    """

    def __init__(self, objective: Objective, ridge: float, allowed: Sequence[FloatArray]) -> None:
        self.objective, self.ridge, self.allowed = objective, ridge, allowed

    def best(self, real: FloatArray) -> ScaledCard:
        """A card near real-valued weights that no move of one weight improves."""
        quadratic = self._quadratic(self.objective.evaluate(real))
        rounded = self._round(real)
        cards = self._distinct(np.vstack([self._descend(quadratic, rounded), rounded]))
        first = cards[np.argsort(-quadratic.decreases(cards), kind="stable")[:MAX_EVALUATED]]
        best = min((self._scale(d, quadratic) for d in first), key=lambda scaled: scaled.value)
        while (better := self._improve(best)) is not None:
            best = better
        return best

    def _round(self, real: FloatArray) -> FloatArray:
        """The real-valued weights times each of many scales, rounded to allowed weights."""
        used = np.flatnonzero(real).tolist()
        sizes = {j: np.abs(self.allowed[j][self.allowed[j] * real[j] > 0]) for j in used}
        least = min((size.min() / abs(real[j]) for j, size in sizes.items()), default=1.0)
        most = min((size.max() / abs(real[j]) for j, size in sizes.items()), default=1.0)
        scales = np.geomspace(least / 2, max(MAX_SCALE_FACTOR * most, least), N_SCALES)
        cards = np.zeros((N_SCALES, len(real)))
        for j in used:
            distance = np.abs(self.allowed[j] - scales[:, None] * real[j])
            cards[:, j] = self.allowed[j][np.argmin(distance, axis=1)]
        return cards

    def _distinct(self, cards: FloatArray) -> FloatArray:
        """One card per direction: the one with the largest weights, because its neighbours are closest."""
        shares = cards / [np.abs(allowed).max() for allowed in self.allowed]
        size = np.abs(shares).max(axis=1)
        order = np.argsort(-size, kind="stable")
        shares = shares[order] / np.maximum(size[order, None], np.finfo(np.float64).tiny)
        return cards[order[np.unique(shares.round(9), axis=0, return_index=True)[1]]]

    def _descend(self, quadratic: CardQuadratic, start: FloatArray) -> FloatArray:
        """Cards after changing one weight at a time as long as that lowers the second-order model."""
        cards, decrease = start.copy(), np.full(len(start), -1.0)
        while np.any((now := quadratic.decreases(cards)) > decrease * (1.0 + MIN_DECREASE)):
            decrease = now
            for j, allowed in enumerate(self.allowed):
                cards[:, j] = quadratic.best_weight(cards, j, allowed)
        return cards

    def _improve(self, card: ScaledCard) -> ScaledCard | None:
        """The first better card with one or two weights moved to a neighbouring value; None if there is none.

        All single moves are tried, and the double moves that are best in the second-order model.
        """
        quadratic, moves = self._quadratic(card.point), self._moves(card.indices)
        i, j = np.triu_indices(len(moves), 1)
        pairs = moves[i] + moves[j]
        double_moves = pairs[np.count_nonzero(pairs, axis=1) == 2]
        singles, doubles = (self._weights(card.indices + steps) for steps in (moves, double_moves))
        decreases = quadratic.decreases(doubles)
        promising = np.flatnonzero(decreases > quadratic.decreases(self._weights(card.indices[None]))[0])
        doubles = doubles[promising[np.argsort(-decreases[promising], kind="stable")[: len(moves)]]]
        for d in [*singles[np.argsort(-quadratic.decreases(singles), kind="stable")], *doubles]:
            scaled = self._scale(d, quadratic)
            if scaled.value < card.value * (1.0 - MIN_DECREASE):
                return scaled
        return None

    def _moves(self, indices: IntArray) -> IntArray:
        """One row for each move of one weight to a neighbouring value."""
        steps = np.vstack([-np.eye(len(indices), dtype=np.int64), np.eye(len(indices), dtype=np.int64)])
        last = np.array([len(allowed) - 1 for allowed in self.allowed])
        return np.asarray(steps[((indices + steps >= 0) & (indices + steps <= last)).all(axis=1)])

    def _scale(self, d: FloatArray, quadratic: CardQuadratic) -> ScaledCard:
        """The best multiple of a card, by Newton's method.

        Pairs that agree with the card leave the hinge as σ grows, so the curvature along σ decreases: from
        the left Newton steps do not overshoot, and from the right one step leads to the left or to 0.
        """
        along, square = self.objective.scores(d), float(d @ d)
        sigma, slope, curvature = max(quadratic.sigma(d), 0.0), 0.0, 1.0
        for _ in range(MAX_MULTIPLE_STEPS):
            sigma = max(sigma - slope / curvature, 0.0)
            point = self.objective.evaluate_scores(sigma * d, sigma * along)
            value = point.value + 0.5 * self.ridge * sigma**2 * square
            slope = self.objective.slope_along(point, along) + self.ridge * sigma * square
            curvature = self.objective.curvature_along(point, along) + self.ridge * square
            if slope**2 <= 2.0 * MULTIPLE_TOL * value * curvature or (sigma == 0.0 and slope >= 0.0):
                break
        return ScaledCard(self._indices(d), sigma, value, point)

    def _quadratic(self, point: Point) -> CardQuadratic:
        columns = np.arange(self.objective.n_features)
        A = self.objective.hessian(point, columns) + self.ridge * np.eye(len(columns))
        slope = self.objective.gradient(point) + self.ridge * point.w
        return CardQuadratic(A @ point.w - slope, A)

    def _indices(self, d: FloatArray) -> IntArray:
        return np.array([np.searchsorted(a, w) for a, w in zip(self.allowed, d, strict=True)], dtype=np.int64)

    def _weights(self, indices: IntArray) -> FloatArray:
        """Weights of each row of indices."""
        return np.column_stack([allowed[indices[:, j]] for j, allowed in enumerate(self.allowed)])


METHOD = "Scorecard"
ROUND_DIGITS = (1, 2, 5)  # round numbers are these times a power of ten
REAL_WEIGHTS_TOL = 1e-8  # relative gap
NO_CARD = "no weights of the model's features lower the training objective, so there is no scorecard"


def make_scorecard(
    model: LinearModel | FittedRanker,
    data: Dataset,
    levels: int = 9,
    *,
    units: Mapping[str, float] | None = None,
    query_weight: QueryWeight | None = None,
) -> LinearModel:
    """Turn a model into a scorecard: score = Σ_j points_j · (x_j / unit_j), or with curves points per range.

    The weights of the features are refitted to ``data`` with the ridge of the model's certificate (default: a
    thousandth of the mean curvature); then a search finds points and units with a low training objective. A
    feature whose best number of points is 0 is not on the card. The certificate bounds the difference between
    the objective of the card and that of the best real-valued weights. With curves, the weights are their
    steps: each step gets points, and each range of values their sum.

    Parameters
    ----------
    model : LinearModel or fitted ranker
        Gives the features, their filling and normalisation, and the signs that their weights must have.
    data : Dataset
        The training data.
    levels : int
        Points are integers from −levels to levels; 1 to 99.
    units : mapping of feature to number, optional
        Units of these features. By default, a feature with values 0 and 1 has the unit 1; others get the
        round number (1, 2 or 5 times a power of ten) nearest to their standard deviation within queries, or
        the next smaller or larger one.
    query_weight : array or mapping of query id to number, optional
        One weight per query, in order of first appearance, or the weights of some; the default is 1.

    Returns
    -------
    LinearModel
        A model with a ``card``, whose weights points/unit are for raw features; missing values are filled as
        in the given model. If the model normalises within each query, so does the card, and points are per
        unit of the normalised features.
    """
    check_levels(levels)
    model = _check(model, data)
    plain, scale = _unscaled(model)
    weight = query_weights(query_weight, data)
    fingerprints = {"train": fingerprint(data)}
    if weight is not None:
        fingerprints["query_weight"] = fingerprint_of_weights(weight)
    data, weight = drop_zero_weight(data, weight)
    steps = _steps(model, data) if model.has_curves else None
    values, loss = _values(plain, steps, data), stated_loss(model.parameters)
    names, signs = values.feature_names, _signs(model, plain, steps, data.feature_names)
    if steps is not None:
        if units:
            reason = "applies to linear models; curves have points per range of values, without units"
            raise ParameterError("units", units, reason)
        scale, units = np.ones(len(names)), dict.fromkeys(names, 1.0)
    with single_threaded_blas():
        objective = make_objective(values.replace_features(values.X / scale), loss, weight)
        ridge, start = _ridge(model, objective), np.zeros(len(scale))
        if not ridge:
            raise DataError(None, None, NO_CARD)
        fit_signs = signs if signs.any() else None
        real = fit_set(objective, range(len(scale)), start, ridge, fit_signs, REAL_WEIGHTS_TOL)
        on_card = list(map(_allowed_weights, _units(values, units or {}), repeat(levels), signs))
        allowed = [one.weights * s for one, s in zip(on_card, scale, strict=True)]
        best = CardSearch(objective, ridge, allowed).best(real.w)
    entries = [one.entries[index] for one, index in zip(on_card, best.indices, strict=True)]
    card, divisor = _card(names, entries, levels)
    if not (card.points and best.sigma):
        raise DataError(None, None, NO_CARD)
    gap = max(0.0, best.value + objective.value_error(best.point) - (real.objective - real.gap))
    if steps is None:
        terms = tuple(replace(t, weight=card.weight(t.name)) for t in plain.terms if t.name in card.points)
        preparation = plain.preparation.of(list(card.points))
    else:
        terms = LinearModel.of_curves(steps, np.array([card.points.get(name, 0) for name in names])).terms
        units, preparation = {}, plain.preparation
    return LinearModel(
        terms,
        model.n_features,
        preparation=preparation,
        method=METHOD,
        parameters={
            "model": model.method,
            "levels": levels,
            "units": units or {},
            "pair_weighting": loss.pair_weighting,
            "signs": {name: sign for name, sign in zip(names, signs, strict=True) if sign},
            "ridge_scales": dict(zip(names, scale, strict=True)),
        },
        certificate={
            "kind": "scorecard",
            "objective": best.value,
            "gap": gap,
            "relative_gap": relative(gap, best.value),
            "ridge": ridge,
            "scale": best.sigma * divisor,
        },
        data=fingerprints,
        chosen_by=model.chosen_by,
        card=card,
    )


def _check(model_or_ranker: Any, data: Any) -> LinearModel:
    model = as_linear_model(model_or_ranker, "so it has no weights to turn into points")
    if not isinstance(data, Dataset):
        raise ParameterError("data", data, "must be a Dataset; give Dataset(X, y, qid)")
    if model.card is not None:
        raise ParameterError("model", model_or_ranker, "is a scorecard; use the model it was made from")
    if not model.weights.any():
        raise ParameterError("model", model_or_ranker, "must use at least one feature")
    return model


def _unscaled(model: LinearModel) -> tuple[LinearModel, FloatArray]:
    """(the model of the features in use without learned scales, these scales; 1 if there are none)."""
    terms = tuple(term for term in model.terms if term.weight)
    preparation = model.preparation.of([term.name for term in terms])
    normalisation = preparation.normalisation
    if not normalisation.learns:
        return replace(model, terms=terms, preparation=preparation), np.ones(len(terms))
    plain = replace(model, terms=terms, preparation=replace(preparation, normalisation=NOT_NORMALISED))
    return plain, np.array(normalisation.scale)


def _steps(model: LinearModel, data: Dataset) -> Steps:
    """The steps of the model's curves."""
    model.locate(data)  # refuses data without its features
    curves = model.curves
    thresholds = [curves[name].thresholds if name in curves else () for name in data.feature_names]
    missing = [name in curves and curves[name].missing != 0.0 for name in data.feature_names]
    return Steps(data.feature_names, tuple(thresholds), tuple(missing))


def _values(plain: LinearModel, steps: Steps | None, data: Dataset) -> Dataset:
    """The values that points are for: features of the model, or the steps of its curves as 0 and 1."""
    if steps is None:
        return data.replace_features(plain.inputs(data), plain.names)
    cut = steps.apply(data)
    return cut.replace_features(np.asarray(cut.X, dtype=np.float64), cut.feature_names)


def _signs(model: LinearModel, plain: LinearModel, steps: Steps | None, names: Sequence[str]) -> FloatArray:
    """Signs of the weights that the model's parameters require; 0: either.

    Patterns are matched against ``names``, the feature names of the data.
    """
    signs = named_signs(model.parameters.get("signs") or {}, names)
    if steps is None:
        return np.array([as_sign(signs.get(term.name, 0), term.name) for term in plain.terms])
    of_features = np.array([as_sign(signs.get(name, 0), name) for name in names])
    return np.where(steps.columns.is_missing, 0.0, of_features[steps.columns.feature])


def _ridge(model: LinearModel, objective: Objective) -> float:
    """The ridge of the certificate, else that of forward selection; 0 if no feature varies within a query."""
    ridge = model.certificate.get("ridge")
    if isinstance(ridge, int | float) and ridge > 0:
        return float(ridge)
    return ForwardSearch(objective, objective.varies).ridge


@dataclass(frozen=True, eq=False)
class AllowedWeights:
    """The weights that a feature may have on a card, ascending, and the entry of each: (points, unit)."""

    weights: FloatArray
    entries: tuple[tuple[int, float], ...]


def _allowed_weights(units: Sequence[float], levels: int, sign: float) -> AllowedWeights:
    """Every number of points with every unit; equal weights use the first unit."""
    entries: dict[Fraction, tuple[int, float]] = {}
    for unit in units:
        for points in range(1, levels + 1):
            entries.setdefault(exact_weight(points, unit), (points, unit))
    positive = [(float(weight), *entries[weight]) for weight in sorted(entries)] if sign >= 0 else []
    negative = [(-float(weight), -entries[weight][0], entries[weight][1]) for weight in sorted(entries)]
    rows = [*(reversed(negative) if sign <= 0 else ()), (0.0, 0, units[0]), *positive]
    return AllowedWeights(
        np.array([row[0] for row in rows]), tuple((points, unit) for _, points, unit in rows)
    )


def _units(data: Dataset, fixed: Mapping[str, float]) -> list[list[float]]:
    """The units that each feature may have, the preferred one first."""
    for name in fixed:
        if name not in data.feature_names:
            features = short_list(data.feature_names, MAX_SHOWN_NAMES)
            raise ParameterError("units", fixed, f"the model does not use {name!r}; it uses {features}")
    spread = learn_normalisation(data, "within_z").scale
    return [_units_of(*column, fixed) for column in zip(data.feature_names, data.X.T, spread, strict=True)]


def _units_of(name: str, values: FloatArray, spread: float, fixed: Mapping[str, float]) -> list[float]:
    if name in fixed:
        return [as_unit(fixed[name], name)]
    return [1.0] if np.isin(values, (0.0, 1.0)).all() else _round_units(name, spread)


def _round_units(name: str, spread: float) -> list[float]:
    """The round number nearest to a spread, then its two neighbours by distance from it."""
    power = math.floor(math.log10(as_unit(spread, name)))
    numbers = [float(f"{digit}e{power + shift}") for shift in (-1, 0, 1) for digit in ROUND_DIGITS]
    nearest = min(numbers, key=lambda number: abs(math.log(number / spread)))
    index = numbers.index(nearest)
    return sorted(numbers[index - 1 : index + 2], key=lambda number: abs(math.log(number / nearest)))


def _card(names: Sequence[str], entries: Sequence[tuple[int, float]], levels: int) -> tuple[Card, int]:
    """(card of the features with points in lowest terms, the common divisor of the points)."""
    divisor = max(1, math.gcd(*(points for points, _ in entries)))
    used = {name: (points, unit) for name, (points, unit) in zip(names, entries, strict=True) if points}
    points = {name: points // divisor for name, (points, _) in used.items()}
    return Card(levels, points, {name: unit for name, (_, unit) in used.items()}), divisor
