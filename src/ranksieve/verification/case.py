"""The model, data and problem to verify, rebuilt from the model file, and the verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import to_plain
from ranksieve.data.dataset import Dataset, drop_zero_weight
from ranksieve.data.features import named_signs
from ranksieve.errors import DataError, ParameterError, in_python, short_list
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import round_like_gpu
from ranksieve.grid_ranker import PREPARATION_PARAMETERS, GridRanker
from ranksieve.methods import METHODS, ranker_classes
from ranksieve.metrics import PROFILES
from ranksieve.model.linear import LinearModel, model_from_dict, restore_infinities
from ranksieve.path import Progress
from ranksieve.penalties import PENALTIES
from ranksieve.prepare import Preparation
from ranksieve.prepare.steps import AUTO, CURVES
from ranksieve.rankers import HybridRanker, LinearRanker
from ranksieve.rankers.base import Ranker
from ranksieve.rankers.hybrid import preparation_of
from ranksieve.rankers.parameters import check_parameters
from ranksieve.solvers import Problem

Finding = tuple[bool, str]
"""Whether a part of a claim holds, and its text."""
DAMAGE_ERRORS = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, with the recomputed values; None if it was not checked, with the reason.

    ``text`` has parameter names in backticks, ``words`` has them as in Python. ``left_out``: not checked
    because the caller asked for no refit.
    """

    claim: str
    holds: bool | None
    text: str
    left_out: bool = False

    @property
    def words(self) -> str:
        return in_python(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"claim": self.claim, "holds": self.holds, "words": self.words, "left_out": self.left_out}


class NotChecked(Exception):
    """A claim cannot be checked from the file, so it does not hold; the message is the reason."""

    holds: ClassVar[bool | None] = False
    left_out: ClassVar[bool] = False

    def verdict(self, claim: str) -> Verdict:
        """Verdict on a claim whose check raised this exception."""
        return Verdict(claim, self.holds, str(self), self.left_out)


class NotGiven(NotChecked):
    """Nothing is claimed, or the check needs an argument that the caller did not pass."""

    holds: ClassVar[bool | None] = None


class RefitSkipped(NotGiven):
    """The check requires a new fit, which the caller skipped."""

    left_out: ClassVar[bool] = True


@contextmanager
def not_checked_if_damaged(what: str) -> Iterator[None]:
    """Turn errors caused by invalid values in the file into NotChecked."""
    try:
        yield
    except DAMAGE_ERRORS as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise NotChecked(f"{what}: {text}") from None


def make_verdict(claim: str, findings: Sequence[Finding]) -> Verdict:
    """Verdict on a claim with several parts: the text of all parts if it holds, else of those that fail."""
    holds = all(good for good, _ in findings)
    return Verdict(claim, holds, "; ".join(text for good, text in findings if good is holds and text))


def difference_text(value: object, stated: object) -> str:
    return f"{_number_text(value)} (stated: {_number_text(stated)})"


def check_same(what: str, value: object, stated: object, same: bool | None = None) -> Iterator[Finding]:
    """Yield a finding if a value is not the stated one; ``same`` replaces the test of equality."""
    if not (value == stated if same is None else same):
        yield False, f"{what} {difference_text(value, stated)}"


def _number_text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


OBJECT_PARAMETERS: dict[str, Collection[str]] = {  # may be objects; the values are the names they may have
    "penalty": PENALTIES, "profile": PROFILES, "base": (), "feature_costs": (),
}  # fmt: skip
HYBRID = HybridRanker.__name__
CHOICE_PARAMETER = "choice"  # parameter in the model files of a GridRanker
BUDGET_PARAMETERS = ("max_features", "max_cost", "feature_costs")
CERTIFICATE_TITLES = {
    "family": "family", "alpha": "α", "ridge": "ridge", "features": "features", "weights": "ℓ1 weights",
}  # fmt: skip
MAX_SHOWN_VALUES = 8
CUSTOM_OBJECT = "the {} is a custom object, which the file does not contain"


def is_from_grid(model: LinearModel) -> bool:
    """Whether a GridRanker made the model."""
    return CHOICE_PARAMETER in model.parameters


def learner_of(model: LinearModel) -> Ranker:
    """The unfitted ranker whose problem the certificate states, without its model selection."""
    left_out = (CHOICE_PARAMETER, *BUDGET_PARAMETERS) if is_from_grid(model) else ()
    parameters = {name: value for name, value in model.parameters.items() if name not in left_out}
    if ranker_class(model.method)().can("valid"):
        parameters |= {"profile": "standard"}
    return _ranker(model.method, parameters)


def chooser_of(model: LinearModel) -> Ranker:
    """The unfitted ranker whose ``fit`` gave the model, including its model selection."""
    if is_from_grid(model):
        with not_checked_if_damaged("the model selection cannot be repeated"):
            return _grid_ranker(model.parameters)
    parameters = dict(model.parameters)
    if ranker_class(model.method)().can("valid"):
        if model.chosen_by is None:
            raise NotChecked(CUSTOM_OBJECT.format("profile"))
        parameters["profile"] = model.chosen_by["profile"]  # that of the data if the parameter was not set
    ranker = _ranker(model.method, parameters)
    try:
        check_device(ranker.device_)
    except ValueError as error:
        raise NotChecked(f"the model was fitted on a GPU, and {error}") from None
    return ranker


def statement(model: LinearModel) -> str:
    """The problem stated in the file, as a sentence."""
    try:
        defaults = to_plain(ranker_class(model.method)().get_params(deep=False))
    except NotChecked:
        defaults = {}
    parts = [
        f"{name} = {_value_text(value)}"
        for name, value in model.parameters.items()
        if name != "ridge_scales" and value != {} and defaults.get(name, ()) != value
    ]
    proof = model.certificate
    parts += [
        f"{title} {_value_text(proof[name])}" for name, title in CERTIFICATE_TITLES.items() if name in proof
    ]
    if model.card is not None and model.chosen_by is not None:
        ties = f", ties {model.chosen_by['ties']}" if "ties" in model.chosen_by else ""
        parts.append("its model was chosen by {metric} ({profile}".format_map(model.chosen_by) + f"{ties})")
    return f"Problem stated in the file: {'; '.join([model.method, *parts])}."


def _value_text(value: Any) -> str:
    """Text of a parameter; many numbers are summarised by count, minimum and maximum."""
    if not isinstance(value, Mapping | list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    named = isinstance(value, Mapping)
    numbers = restore_infinities(list(value.values()) if isinstance(value, Mapping) else value)
    if len(value) > MAX_SHOWN_VALUES and all(isinstance(one, int | float) for one in numbers):
        return f"{len(value)} numbers from {min(numbers):g} to {max(numbers):g}"
    texts = [f"{name} {_value_text(value[name])}" if named else _value_text(name) for name in value]
    return short_list(texts, MAX_SHOWN_VALUES) or "none"


def ranker_class(method: str) -> type[Ranker]:
    """Class of a linear ranker by its name."""
    classes: dict[str, type[Ranker]] = {
        "linearranker": LinearRanker,
        HYBRID.lower(): HybridRanker,
        **ranker_classes(),
    }
    cls = classes.get(method.lower())
    if cls is None or not cls().can("linear"):
        raise NotChecked(f"this release has no linear method called {method!r}")
    return cls


def _grid_ranker(parameters: Mapping[str, Any]) -> Ranker:
    choice = dict(parameters[CHOICE_PARAMETER])
    if choice.get("method") not in METHODS:
        raise NotChecked(CUSTOM_OBJECT.format("grid"))
    if "profile" not in choice:
        raise NotChecked(CUSTOM_OBJECT.format("profile"))
    settings = {
        name: value
        for name, value in parameters.items()
        if name in (*BUDGET_PARAMETERS, *PREPARATION_PARAMETERS)
    }
    settings |= {
        name: value
        for name, value in choice.items()
        if name not in ("parameters", "candidates", "point", "ties")
    }
    return _check_ranker(
        GridRanker(**_restore_parameters(settings), parameters=_restore_parameters(choice["parameters"]))
    )


def _ranker(method: str, parameters: Mapping[str, Any]) -> Ranker:
    cls: Any = ranker_class(method)
    unknown = [name for name in parameters if name not in cls().get_params(deep=False)]
    if unknown:
        raise NotChecked(f"{method} has no parameter {unknown[0]!r} in this release")
    return _check_ranker(cls(**_restore_parameters(parameters)))


def _restore_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Convert parameters of the file to those of a ranker; the file contains custom objects only as text."""
    values: dict[str, Any] = restore_infinities(dict(parameters))
    for name, names in OBJECT_PARAMETERS.items():
        if isinstance(value := values.get(name), str) and value not in names:
            raise NotChecked(f"{name} is a custom object, which the file does not contain")
    if isinstance(base := values.get("base"), Mapping):
        with not_checked_if_damaged("base cannot be created"):
            values["base"] = _ranker(base["method"], base["parameters"])
    return values


def _check_ranker(ranker: Ranker) -> Ranker:
    with not_checked_if_damaged("invalid parameters"):
        check_parameters(ranker)
    return ranker


EVALUATION_TOLERANCE = 1e-12  # relative difference of objectives at the same weights on different machines
REFIT_TOLERANCE = 1e-9  # relative difference of numbers of two fits
WEIGHT_TOLERANCE = 1e-6  # relative to the largest weight; solvers amplify rounding errors
DATA_DESCRIPTIONS = {
    "train": "training data", "valid": "validation data", "query_weight": "query weights",
    "previous": "a previous model",
}  # fmt: skip
OPTIONAL_DATA = ("valid", "query_weight", "previous")  # parameters of verify
COST = "cost"  # the only metric that needs no fit
SET_BY_FIT = (
    "alpha",
    "ridge",
    "family",
    "features",
    "weights",
)  # certificate entries that define the problem


@dataclass(frozen=True)
class Recomputed:
    """Objective and gap at a model's weights; ``slack`` is their rounding error.

    The gap of a loss without curvature is not ``tight``: the cutting planes of the fit may prove less.
    """

    objective: float
    gap: float
    slack: float
    tight: bool


def recompute(problem: Problem, w: FloatArray) -> Recomputed:
    """Value and duality gap of a problem at ``w``; infinite if ``w`` is not allowed."""
    tight = "hessian" in problem.objective.offers
    with single_threaded_blas():
        loss = problem.objective.evaluate(w)
        allowed = problem.usable is None or not np.any(w[~problem.usable])
        if not (np.isfinite(loss.value) and allowed):
            return Recomputed(np.inf, np.inf, 0.0, tight)
        point = problem.start(w)
        value, error = problem.value(point), problem.objective.value_error(loss)
        if not np.isfinite([value, error]).all():
            return Recomputed(np.inf, np.inf, 0.0, tight)
        return Recomputed(value, problem.gap(point), EVALUATION_TOLERANCE * abs(value) + error, tight)


@dataclass(frozen=True, eq=False)
class Case:
    """A model and the data to verify it on."""

    model: LinearModel
    data: Dataset
    valid: Dataset | None
    query_weight: Any  # an array after check_input
    refit: bool
    progress: Progress | None
    previous: LinearModel | None = None

    def check_input(self) -> None:
        """Refuse a damaged model, and data on which it cannot have been fitted."""
        model = self.model
        if not isinstance(model, LinearModel) or not (model.data or model.certificate or model.metrics):
            reason = "contains no claims to verify: no fingerprint of data, certificate or metric"
            raise ParameterError("model", model, reason)
        model_from_dict(model.to_dict())
        for name in OPTIONAL_DATA:
            if (value := getattr(self, name)) is not None and name not in model.data:
                raise ParameterError(
                    name, value, f"the model was fitted without {DATA_DESCRIPTIONS[name]}; leave it out"
                )
        for name in ("data", "valid"):
            part = getattr(self, name)
            if part is None:
                continue
            if not isinstance(part, Dataset):
                raise ParameterError(name, part, "must be a Dataset; pass Dataset(X, y, qid)")
            if (width := part.n_features) != model.n_features:
                widths = f"the data have {width} features, the model was fitted on {model.n_features}"
                raise DataError(part.source, None, widths)
            model.locate(part)  # raises an error if the data lack features

    def need(self, *parts: str) -> None:
        """Raise NotGiven if the fit used data that the caller did not pass."""
        for name in parts:
            if name in self.model.data and getattr(self, name) is None:
                raise NotGiven(f"the model was fitted with {DATA_DESCRIPTIONS[name]}; pass `{name}`")

    @cached_property
    def recomputed(self) -> Recomputed | None:
        """Objective and gap at the model's weights; None if the problem is only known during the fit."""
        self.need("query_weight")
        certificate, learner = self.model.certificate, learner_of(self.model)
        if isinstance(signs := getattr(learner, "signs", None), Mapping):
            learner.set_params(signs=named_signs(signs, self.data.feature_names))
        shape = getattr(learner, "shape", "linear")
        curves = shape == CURVES or (shape == AUTO and self.model.has_curves)
        if self.model.has_curves and not curves:
            raise NotChecked("the model has curves, but its parameters state `shape='linear'`")
        data, weight = self.prepared_data(learner.normalise, learner.missing, curves)
        if learner.device_ != "cpu":
            data = round_like_gpu(data)
        with not_checked_if_damaged("the problem cannot be rebuilt"):
            if "features" in certificate:
                names = certificate["features"]
                columns = data.X.columns.of(names) if curves else columns_of(names, data)
                data = data.select_features(columns)
            w = self.weights_on(data)
            problem = learner.stated_problem(data, weight, certificate)
        return None if problem is None else recompute(problem, w)

    def weights_on(self, data: Dataset) -> FloatArray:
        """The model's weights, one for each column of prepared data."""
        w, weights = np.zeros(data.n_features), self.model.weights_by_name
        w[columns_of(list(weights), data)] = list(weights.values())
        shifted = [term.name for term in self.model.terms if term.curve and term.curve.levels[0]]
        if shifted:
            raise NotChecked(f"the curve of {shifted[0]} does not begin at 0")
        return w

    def prepared_data(self, normalise: str, missing: str, curves: bool = False) -> tuple[Dataset, FloatArray]:
        """Data of the fit, filled and normalised or cut into steps, and the query weights.

        A model contains the preparation of the features in use, which must equal the one learned from the
        data; that of the other features is learned again.
        """
        stated = self.model.preparation
        if self.model.method == HYBRID:  # learns nothing; documents of weight 0 are part of their list
            if stated != preparation_of(stated.normalisation.kind):
                raise NotChecked("the preparation is not one of hybrid search")
            return drop_zero_weight(stated.apply(self.data), self.query_weight)
        data, weight = drop_zero_weight(self.data, self.query_weight)
        learn = Preparation.learn_curves if curves else Preparation.learn
        learned = learn(data, normalise, missing, weight)
        part = Preparation() if curves else learned.of(self.model.names)
        if difference := _difference(part, stated):
            raise NotChecked(difference)
        if self.model.parameters.get("refit_on") == "all" and "valid" in self.model.data:
            self.need("valid")
            data, weight = _with_valid(data, self.valid, weight)
        return (learned if curves else learned.updated(stated)).for_learning(data), weight

    @property
    def chooses(self) -> bool:
        """Whether the method selected this model among candidates, which only a new fit can confirm."""
        return is_from_grid(self.model) or ranker_class(self.model.method)().can("valid")

    @property
    def states_by_fit(self) -> bool:
        """Whether the fit determined parts of the problem."""
        return any(name in self.model.certificate for name in SET_BY_FIT)

    @property
    def refitted(self) -> LinearModel:
        """Model of a new fit with the same method, parameters and data."""
        if isinstance(self._refitted, NotChecked):
            raise self._refitted
        return self._refitted

    @cached_property
    def _refitted(self) -> LinearModel | NotChecked:
        try:
            if not self.refit:
                raise RefitSkipped("requires a new fit, which was skipped")
            self.need("query_weight", "valid", "previous")
            ranker: Any = chooser_of(self.model)
            options = {name: part for name in OPTIONAL_DATA if (part := getattr(self, name)) is not None}
            if ranker.can("valid"):
                options["progress"] = self.progress
            with not_checked_if_damaged("the refit failed"):
                refitted: LinearModel = ranker.fit(self.data, **options).to_model()
                return refitted
        except NotChecked as reason:
            return reason

    @property
    def same_weights(self) -> bool:
        """Whether the new fit has the weights of the model, up to rounding."""
        stated, new = self.model.weights_by_name, self.refitted.weights_by_name
        largest = max(map(abs, stated.values()), default=0.0)
        names = {*stated, *new}
        return all(abs(stated.get(n, 0.0) - new.get(n, 0.0)) <= WEIGHT_TOLERANCE * largest for n in names)

    @property
    def different_weights_text(self) -> str:
        text = "refit: different weights"
        if self.model.parameters.get("warm_start") and not is_from_grid(self.model):
            text += "; the first fit may have started from weights that are not in the file"
        return text


def _difference(learned: Preparation, stated: Preparation) -> str:
    """First stated fill value or scale that differs from the learned one; empty if all agree."""
    new, old = learned.normalisation, stated.normalisation
    kinds = [
        *check_same("normalisation:", new.kind, old.kind),
        *check_same("missing values:", learned.missing.policy, stated.missing.policy),
        *check_same("indicators:", learned.missing.indicates, stated.missing.indicates),
    ]
    if kinds:
        return kinds[0][1]
    scale = np.array(new.scale)
    for what, values, stated_values, size in (
        ("scale", new.scale, old.scale, scale),
        ("centre", new.centre, old.centre, scale),
        ("fill value", learned.missing.means, stated.missing.means, np.abs(learned.missing.means)),
    ):
        wrong = np.flatnonzero(~(np.abs(np.subtract(values, stated_values)) <= REFIT_TOLERANCE * size))
        if len(wrong):
            j = int(wrong[0])
            name = (new.features or learned.missing.features)[j]
            return f"the {what} of {name} is {difference_text(values[j], stated_values[j])}"
    return ""


def columns_of(names: Sequence[str], data: Dataset) -> IntArray:
    """Columns of features in prepared data."""
    index = {name: j for j, name in enumerate(data.feature_names)}
    lacking = [name for name in names if name not in index]
    if lacking:
        raise NotChecked(f"the data have no feature {lacking[0]!r}, which the problem uses")
    return np.array([index[name] for name in names], dtype=np.int64)


def _with_valid(data: Dataset, valid: Dataset | None, weight: FloatArray) -> tuple[Dataset, FloatArray]:
    """Training and validation data together; columns are matched by name, else by position."""
    if valid is None:
        return data, weight
    index = {name: j for j, name in enumerate(valid.feature_names)}
    if valid.feature_names != data.feature_names and index.keys() == set(data.feature_names):
        valid = valid.select_features(np.array([index[name] for name in data.feature_names]))
    both = data.joined(valid)
    return both, np.concatenate([weight, np.ones(valid.n_queries)])
