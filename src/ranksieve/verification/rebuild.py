"""The ranker that a model comes from, made again from the method and the parameters in its file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ranksieve._util.json_values import plain
from ranksieve._util.messages import shortened
from ranksieve.budgeted import BudgetedRanker
from ranksieve.device import check_device
from ranksieve.estimators.linear import LinearRanker
from ranksieve.estimators.parameters import check_parameters
from ranksieve.methods import METHODS, ranker_classes
from ranksieve.metrics import PROFILES
from ranksieve.model import LinearModel
from ranksieve.penalties import PENALTIES
from ranksieve.verification.verdict import NotChecked, told_if_damaged

INFINITIES = {repr(number): number for number in (np.inf, -np.inf)}  # which JSON holds as text
NAMED: dict[str, Collection[str]] = {  # parameters that may be objects, and the texts that they may be
    "penalty": PENALTIES, "profile": PROFILES, "base": (), "feature_costs": (),
}  # fmt: skip
CHOICE = "choice"  # the parameter that tells how a BudgetedRanker chose among the points of a grid
BUDGET = ("max_features", "max_cost", "feature_costs")
PREPARATION = ("normalise", "missing")
STATED = {
    "family": "family",
    "alpha": "α",
    "ridge": "ridge",
    "features": "features",
    "weights": "ℓ1 weights",
}
SHOWN = 8  # names or numbers
OWN = "{} of the choice is the caller's own, which the file does not hold"


def is_budgeted(model: LinearModel) -> bool:
    """Whether a BudgetedRanker made the model."""
    return CHOICE in model.parameters


def learner_of(model: LinearModel) -> LinearRanker:
    """The ranker whose problem the certificate states, not fitted; how it was chosen plays no part there."""
    left_out = (CHOICE, *BUDGET) if is_budgeted(model) else ()
    held = {name: value for name, value in model.parameters.items() if name not in left_out}
    if ranker_class(model.method).uses_valid:
        held |= {"profile": "standard"}
    return _ranker(model.method, held)


def chooser_of(model: LinearModel) -> LinearRanker:
    """The ranker whose ``fit`` gave the model, with all its choices; not fitted."""
    if is_budgeted(model):
        with told_if_damaged("the choice cannot be made again"):
            return _budgeted(model.parameters)
    held = dict(model.parameters)
    if ranker_class(model.method).uses_valid:
        if model.chosen_by is None:
            raise NotChecked(OWN.format("the profile"))
        held["profile"] = model.chosen_by["profile"]  # that of the data, if none was asked for
    ranker = _ranker(model.method, held)
    try:
        check_device(ranker.device)
    except ValueError as error:
        raise NotChecked(f"it was fitted on a GPU, and {error}") from None
    return ranker


def statement(model: LinearModel) -> str:
    """The problem that the file states, in a sentence: what its proof and its metrics are about."""
    parts = [f"{name} = {_in_words(value)}" for name, value in _asked(model).items()]
    of_fit = {name: model.certificate[name] for name in STATED if name in model.certificate}
    parts += [f"{title} {_in_words(of_fit[name])}" for name, title in STATED.items() if name in of_fit]
    if model.card is not None and model.chosen_by is not None:
        parts.append("its model was chosen by {metric} ({profile})".format_map(model.chosen_by))
    return f"The claims are about the problem that the file states: {'; '.join([model.method, *parts])}."


def _asked(model: LinearModel) -> dict[str, Any]:
    """The parameters that are not the defaults of the method."""
    try:
        usual = plain(ranker_class(model.method)().get_params(deep=False))
    except NotChecked:
        usual = {}
    given = {name: value for name, value in model.parameters.items() if name != "ridge_scales"}
    return {name: value for name, value in given.items() if usual.get(name, ()) != value and value != {}}


def _in_words(value: Any) -> str:
    """A parameter, and of many numbers how many they are, the least and the greatest."""
    if not isinstance(value, Mapping | list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    numbers = [_with_infinities(one) for one in (value.values() if isinstance(value, Mapping) else value)]
    if len(value) > SHOWN and all(isinstance(one, int | float) for one in numbers):
        return f"{len(value)} numbers from {min(numbers):g} to {max(numbers):g}"
    if isinstance(value, Mapping):
        return shortened([f"{name} {_in_words(one)}" for name, one in value.items()], SHOWN) or "none"
    return shortened([_in_words(one) for one in value], SHOWN) or "none"


def ranker_class(method: str) -> type[LinearRanker]:
    """The class of a linear ranker by its name."""
    kind = ranker_classes().get(method.lower())
    if kind is None or not issubclass(kind, LinearRanker):
        raise NotChecked(f"this release has no linear method called {method!r}")
    return kind


def _budgeted(parameters: Mapping[str, Any]) -> LinearRanker:
    choice = dict(parameters[CHOICE])
    if choice.get("method") not in METHODS:
        raise NotChecked(OWN.format("the grid"))
    if "profile" not in choice:
        raise NotChecked(OWN.format("the profile"))
    held = {name: value for name, value in parameters.items() if name in (*BUDGET, *PREPARATION)}
    how = {name: value for name, value in choice.items() if name not in ("parameters", "candidates")}
    return _checked(BudgetedRanker(**_revived(held | how), parameters=_revived(choice["parameters"])))


def _ranker(method: str, parameters: Mapping[str, Any]) -> LinearRanker:
    kind: Any = ranker_class(method)
    unknown = [name for name in parameters if name not in kind().get_params(deep=False)]
    if unknown:
        raise NotChecked(f"{method} has no parameter {unknown[0]!r} in this release")
    return _checked(kind(**_revived(parameters)))


def _revived(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as rankers take them; of an object of the caller's own the file holds a text alone."""
    values = {name: _with_infinities(value) for name, value in parameters.items()}
    for name, known in NAMED.items():
        if isinstance(value := values.get(name), str) and value not in known:
            raise NotChecked(f"{name} is an object of the caller's own, which the file does not hold")
    if isinstance(base := values.get("base"), Mapping):
        with told_if_damaged("base cannot be made"):
            values["base"] = _ranker(base["method"], base["parameters"])
    return values


def _with_infinities(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_infinities(one) for one in value]
    return INFINITIES.get(value, value) if isinstance(value, str) else value


def _checked(ranker: LinearRanker) -> LinearRanker:
    with told_if_damaged("it cannot be fitted like that"):
        check_parameters(ranker)
    return ranker
