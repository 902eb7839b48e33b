"""Scorecards: linear rankers of whole points per round unit, which a person can apply by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve._util.messages import shortened
from ranksieve.card import Card, as_unit, check_levels, exact_weight
from ranksieve.card_search import Search
from ranksieve.data.counted import counted
from ranksieve.data.dataset import Dataset, fingerprint, fingerprint_of_weights
from ranksieve.data.features import SHOWN_NAMES, as_sign, named_signs
from ranksieve.data.query_weights import QueryWeight, query_weights
from ranksieve.errors import DataError, ParameterError
from ranksieve.forward import ForwardSearch, fit_set
from ranksieve.model import FittedRanker, LinearModel, linear_model
from ranksieve.objective import Objective, make_objective
from ranksieve.preparation import NOT_NORMALISED
from ranksieve.preparation.normalise import learn_normalisation
from ranksieve.solvers.base import relative

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

    With one sign per column those of indicators come last, in an order that the model does not tell: an
    indicator then keeps the sign that it has.
    """
    given, about = model.parameters.get("signs"), model.preparation.missing.indicators
    if not given:
        return np.zeros(len(plain.terms))
    if isinstance(given, Mapping):
        given = named_signs(given, names)
        return np.array([as_sign(given.get(term.name, 0), term.name) for term in plain.terms])
    of_indicators = any(as_sign(sign, "an indicator") for sign in given[model.n_features :])
    signs = [
        np.sign(term.weight) * of_indicators if term.name in about else as_sign(given[term.index], term.name)
        for term in plain.terms
    ]
    return np.array(signs)


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
