"""What is verified, rebuilt from the model file, and the verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve._util.files import plain
from ranksieve.data.dataset import Dataset, counted
from ranksieve.data.features import named_signs
from ranksieve.errors import DataError, ParameterError, in_python, shortened
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import rounded
from ranksieve.grid_ranker import GridRanker
from ranksieve.methods import METHODS, ranker_classes
from ranksieve.metrics import PROFILES
from ranksieve.model.linear import LinearModel, as_settings, model_from_dict
from ranksieve.path import Progress
from ranksieve.penalties import PENALTIES
from ranksieve.prepare import Preparation
from ranksieve.rankers import LinearRanker
from ranksieve.rankers.base import Ranker
from ranksieve.rankers.parameters import check_parameters
from ranksieve.solvers import Problem

Finding = tuple[bool, str]
"""Whether a part of a claim holds, and the words for it."""
DAMAGED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)  # parameters may cause


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and what was recomputed; None if it was not checked, and why.

    ``text`` names parameters in backticks, ``words`` as Python's users write them. ``left_out``: it was not
    checked because the caller asked for no new fit.
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
    """A claim that the file leaves no way to check: it does not hold. The words say why."""

    holds: ClassVar[bool | None] = False
    left_out: ClassVar[bool] = False

    def verdict(self, claim: str) -> Verdict:
        """The verdict on a claim whose check ended with this."""
        return Verdict(claim, self.holds, str(self), self.left_out)


class NotGiven(NotChecked):
    """Nothing is claimed, or the check needs something that the caller did not give; the words say what."""

    holds: ClassVar[bool | None] = None


class LeftOut(NotGiven):
    """A check that takes a new fit, which the caller did not ask for."""

    left_out: ClassVar[bool] = True


@contextmanager
def not_checked_if_damaged(what: str) -> Iterator[None]:
    """Turn errors of values in the file, which may be anything, into NotChecked."""
    try:
        yield
    except DAMAGED as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise NotChecked(f"{what}: {text}") from None


def judged(claim: str, findings: Sequence[Finding]) -> Verdict:
    """The verdict on a claim of several parts: all that is right, or else what is wrong."""
    holds = all(good for good, _ in findings)
    return Verdict(claim, holds, "; ".join(words for good, words in findings if good is holds and words))


def differing(found: object, stated: object) -> str:
    """Two values that should be one."""
    return f"{_shown(found)}, stated {_shown(stated)}"


def unless_same(what: str, found: object, stated: object, same: bool | None = None) -> Iterator[Finding]:
    """A finding if two values that should be one differ; ``same`` tells where equality does not decide."""
    if not (found == stated if same is None else same):
        yield False, f"{what} {differing(found, stated)}"


def _shown(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, int | float) else str(value)


NAMED: dict[str, Collection[str]] = {  # parameters that may be objects, and the texts that they may be
    "penalty": PENALTIES, "profile": PROFILES, "base": (), "feature_costs": (),
}  # fmt: skip
CHOICE = "choice"  # the parameter that tells how a GridRanker chose among the points of a grid
BUDGET = ("max_features", "max_cost", "feature_costs")
PREPARATION = ("normalise", "missing")
STATED = {
    "family": "family", "alpha": "α", "ridge": "ridge", "features": "features", "weights": "ℓ1 weights",
}  # fmt: skip
SHOWN = 8  # names or numbers
OWN = "{} of the choice is the caller's own, which the file does not hold"


def is_from_grid(model: LinearModel) -> bool:
    """Whether a GridRanker made the model."""
    return CHOICE in model.parameters


def learner_of(model: LinearModel) -> Ranker:
    """The ranker whose problem the certificate states, not fitted; how it was chosen plays no part there."""
    left_out = (CHOICE, *BUDGET) if is_from_grid(model) else ()
    parameters = {name: value for name, value in model.parameters.items() if name not in left_out}
    if ranker_class(model.method)().can("valid"):
        parameters |= {"profile": "standard"}
    return _ranker(model.method, parameters)


def chooser_of(model: LinearModel) -> Ranker:
    """The ranker whose ``fit`` gave the model, with all its choices; not fitted."""
    if is_from_grid(model):
        with not_checked_if_damaged("the choice cannot be made again"):
            return _grid_ranker(model.parameters)
    parameters = dict(model.parameters)
    if ranker_class(model.method)().can("valid"):
        if model.chosen_by is None:
            raise NotChecked(OWN.format("the profile"))
        parameters["profile"] = model.chosen_by["profile"]  # that of the data, if none was asked for
    ranker = _ranker(model.method, parameters)
    try:
        check_device(ranker.device_)
    except ValueError as error:
        raise NotChecked(f"it was fitted on a GPU, and {error}") from None
    return ranker


def statement(model: LinearModel) -> str:
    """The problem that the file states, in a sentence: what its proof and its metrics are about."""
    try:
        usual = plain(ranker_class(model.method)().get_params(deep=False))
    except NotChecked:
        usual = {}
    parts = [
        f"{name} = {_in_words(value)}"
        for name, value in model.parameters.items()
        if name != "ridge_scales" and value != {} and usual.get(name, ()) != value
    ]
    proof = model.certificate
    parts += [f"{title} {_in_words(proof[name])}" for name, title in STATED.items() if name in proof]
    if model.card is not None and model.chosen_by is not None:
        parts.append("its model was chosen by {metric} ({profile})".format_map(model.chosen_by))
    return f"The claims are about the problem that the file states: {'; '.join([model.method, *parts])}."


def _in_words(value: Any) -> str:
    """A parameter; many numbers by their count, the least and the greatest."""
    if not isinstance(value, Mapping | list):
        return f"{value:g}" if isinstance(value, float) else str(value)
    named = isinstance(value, Mapping)
    numbers = as_settings(list(value.values()) if isinstance(value, Mapping) else value)
    if len(value) > SHOWN and all(isinstance(one, int | float) for one in numbers):
        return f"{len(value)} numbers from {min(numbers):g} to {max(numbers):g}"
    words = [f"{name} {_in_words(value[name])}" if named else _in_words(name) for name in value]
    return shortened(words, SHOWN) or "none"


def ranker_class(method: str) -> type[Ranker]:
    """The class of a linear ranker by its name."""
    kinds: dict[str, type[Ranker]] = {"linearranker": LinearRanker, **ranker_classes()}
    kind = kinds.get(method.lower())
    if kind is None or not kind().can("linear"):
        raise NotChecked(f"this release has no linear method called {method!r}")
    return kind


def _grid_ranker(parameters: Mapping[str, Any]) -> Ranker:
    choice = dict(parameters[CHOICE])
    if choice.get("method") not in METHODS:
        raise NotChecked(OWN.format("the grid"))
    if "profile" not in choice:
        raise NotChecked(OWN.format("the profile"))
    own = {name: value for name, value in parameters.items() if name in (*BUDGET, *PREPARATION)}
    own |= {
        name: value for name, value in choice.items() if name not in ("parameters", "candidates", "point")
    }
    return _checked(GridRanker(**_revived(own), parameters=_revived(choice["parameters"])))


def _ranker(method: str, parameters: Mapping[str, Any]) -> Ranker:
    kind: Any = ranker_class(method)
    unknown = [name for name in parameters if name not in kind().get_params(deep=False)]
    if unknown:
        raise NotChecked(f"{method} has no parameter {unknown[0]!r} in this release")
    return _checked(kind(**_revived(parameters)))


def _revived(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as rankers take them; of an object of the caller's own the file holds a text alone."""
    values: dict[str, Any] = as_settings(dict(parameters))
    for name, known in NAMED.items():
        if isinstance(value := values.get(name), str) and value not in known:
            raise NotChecked(f"{name} is an object of the caller's own, which the file does not hold")
    if isinstance(base := values.get("base"), Mapping):
        with not_checked_if_damaged("base cannot be made"):
            values["base"] = _ranker(base["method"], base["parameters"])
    return values


def _checked(ranker: Ranker) -> Ranker:
    with not_checked_if_damaged("it cannot be fitted like that"):
        check_parameters(ranker)
    return ranker


EVALUATION = 1e-12  # share of an objective by which evaluations at the same weights may differ by machine
FIT = 1e-9  # share of a number by which two fits may differ
SAME_WEIGHT = 1e-6  # share of the largest weight: what rounding may grow to in the steps of a solver
PARTS = {
    "train": "training data", "valid": "validation data", "query_weight": "query weights",
    "previous": "a previous model",
}  # fmt: skip
GIVEN = ("valid", "query_weight", "previous")  # parameters of verify
COST = "cost"  # the one metric that takes no fit to measure
BY_FIT = ("alpha", "ridge", "family", "features", "weights")  # of a problem: what only the fit determines


@dataclass(frozen=True)
class Recomputed:
    """Objective and gap at a model's weights; ``slack`` is how far rounding may move them.

    The gap of a loss without curvature is not ``tight``: a fit may have proven a smaller one by its planes.
    """

    objective: float
    gap: float
    slack: float
    tight: bool


def recomputed(problem: Problem, w: FloatArray) -> Recomputed:
    """The value and the duality gap of a problem at ``w``; infinite where ``w`` is not allowed."""
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
        return Recomputed(value, problem.gap(point), EVALUATION * abs(value) + error, tight)


@dataclass(frozen=True, eq=False)
class Case:
    """A model and what is given to check it on."""

    model: LinearModel
    data: Dataset
    valid: Dataset | None
    query_weight: Any  # an array, once the input is checked
    refit: bool
    progress: Progress | None
    previous: LinearModel | None = None

    def check_input(self) -> None:
        """Refuse a damaged model file, and data that the model cannot have been fitted on."""
        model = self.model
        if not isinstance(model, LinearModel) or not (model.data or model.certificate or model.metrics):
            reason = "has no claims to verify: no training data, and nothing proven or measured"
            raise ParameterError("model", model, reason)
        model_from_dict(model.to_dict())
        for name in GIVEN:
            if (value := getattr(self, name)) is not None and name not in model.data:
                raise ParameterError(name, value, f"the model was fitted without {PARTS[name]}; leave it out")
        for name in ("data", "valid"):
            part = getattr(self, name)
            if part is None:
                continue
            if not isinstance(part, Dataset):
                raise ParameterError(name, part, "must be a Dataset; give Dataset(X, y, qid)")
            if (width := part.n_features) != model.n_features:
                widths = f"the data have {width} features, the model was fitted on {model.n_features}"
                raise DataError(part.source, None, widths)
            model.located(part)  # names the features that the data lack

    def need(self, *parts: str) -> None:
        """Stop a check for which some of the data of the fit are not given."""
        for name in parts:
            if name in self.model.data and getattr(self, name) is None:
                raise NotGiven(f"it was fitted with {PARTS[name]}: give `{name}`")

    @cached_property
    def recomputed(self) -> Recomputed | None:
        """Objective and gap at the model's weights; None if only the fit knows the problem."""
        self.need("query_weight")
        certificate, learner = self.model.certificate, learner_of(self.model)
        if isinstance(signs := getattr(learner, "signs", None), Mapping):
            learner.set_params(signs=named_signs(signs, self.data.feature_names))
        data, weight = self.learned_from(learner.normalise, learner.missing)
        if learner.device_ != "cpu":
            data = rounded(data)
        with not_checked_if_damaged("its problem cannot be stated"):
            if "features" in certificate:
                data = data.select_features(columns_of(certificate["features"], data))
            w = self.weights_on(data)
            problem = learner.stated_problem(data, weight, certificate)
        return None if problem is None else recomputed(problem, w)

    def weights_on(self, data: Dataset) -> FloatArray:
        """The model's weights in the width of prepared data."""
        w = np.zeros(data.n_features)
        w[columns_of(self.model.names, data)] = self.model.weights
        return w

    def learned_from(self, normalise: str, missing: str) -> tuple[Dataset, FloatArray]:
        """What the weights were fitted on, filled and normalised, and the weights of queries.

        A model keeps the preparation of the features in use, which must be the one that the data give; that
        of the others is learned again.
        """
        data, weight = counted(self.data, self.query_weight)
        kept = self.model.preparation
        learned = Preparation.learn(data, normalise, missing, weight)
        if other := _difference(learned.of(self.model.names), kept):
            raise NotChecked(other)
        if self.model.parameters.get("refit_on") == "all" and "valid" in self.model.data:
            self.need("valid")
            data, weight = _with_valid(data, self.valid, weight)
        return learned.updated(kept).for_learning(data), weight

    @property
    def chooses(self) -> bool:
        """Whether the method chose this model among others, as only a new fit can confirm."""
        return is_from_grid(self.model) or ranker_class(self.model.method)().can("valid")

    @property
    def states_by_fit(self) -> bool:
        """Whether parts of the problem come from the fit, not from the parameters."""
        return any(name in self.model.certificate for name in BY_FIT)

    @property
    def again(self) -> LinearModel:
        """The model that the same method gives with the same parameters on the data given."""
        if isinstance(self._new_fit, NotChecked):
            raise self._new_fit
        return self._new_fit

    @cached_property
    def _new_fit(self) -> LinearModel | NotChecked:
        try:
            if not self.refit:
                raise LeftOut("only a new fit can tell, which was not asked for")
            self.need("query_weight", "valid", "previous")
            ranker: Any = chooser_of(self.model)
            options = {name: part for name in GIVEN if (part := getattr(self, name)) is not None}
            if ranker.can("valid"):
                options["progress"] = self.progress
            with not_checked_if_damaged("fitting again fails"):
                again: LinearModel = ranker.fit(self.data, **options).to_model()
                return again
        except NotChecked as reason:
            return reason

    @property
    def same_weights(self) -> bool:
        """Whether the new fit has the weights of the model, up to rounding."""
        stated, again = (dict(zip(m.names, m.weights, strict=True)) for m in (self.model, self.again))
        largest = max(map(abs, stated.values()), default=0.0)
        names = {*stated, *again}
        return all(abs(stated.get(n, 0.0) - again.get(n, 0.0)) <= SAME_WEIGHT * largest for n in names)

    @property
    def other_weights(self) -> str:
        """What to say of a new fit with other weights."""
        words = "fitted again: other weights"
        if self.model.parameters.get("warm_start") and not is_from_grid(self.model):
            words += "; the first fit may have begun at weights that the file does not hold"
        return words


def _difference(learned: Preparation, kept: Preparation) -> str:
    """The first fill or scale that is not the one that the data give; empty if all are."""
    found, stated = learned.normalisation, kept.normalisation
    kinds = [
        *unless_same("normalisation:", found.kind, stated.kind),
        *unless_same("missing values:", learned.missing.policy, kept.missing.policy),
        *unless_same("indicators:", learned.missing.indicates, kept.missing.indicates),
    ]
    if kinds:
        return kinds[0][1]
    scale = np.array(found.scale)
    for what, values, givens, size in (
        ("scale", found.scale, stated.scale, scale),
        ("centre", found.centre, stated.centre, scale),
        ("fill", learned.missing.means, kept.missing.means, np.abs(learned.missing.means)),
    ):
        wrong = np.flatnonzero(~(np.abs(np.subtract(values, givens)) <= FIT * size))
        if len(wrong):
            j = int(wrong[0])
            name = (found.features or learned.missing.features)[j]
            return f"the {what} of {name} is {differing(values[j], givens[j])}"
    return ""


def columns_of(names: Sequence[str], data: Dataset) -> IntArray:
    """Where features are in prepared data."""
    place = {name: j for j, name in enumerate(data.feature_names)}
    lacking = [name for name in names if name not in place]
    if lacking:
        raise NotChecked(f"its problem has no feature {lacking[0]!r} on these data")
    return np.array([place[name] for name in names], dtype=np.int64)


def _with_valid(data: Dataset, valid: Dataset | None, weight: FloatArray) -> tuple[Dataset, FloatArray]:
    """Training and validation data together, columns found by name, else by position."""
    if valid is None:
        return data, weight
    place = {name: j for j, name in enumerate(valid.feature_names)}
    if valid.feature_names != data.feature_names and place.keys() == set(data.feature_names):
        valid = valid.select_features(np.array([place[name] for name in data.feature_names]))
    both = data.joined(valid)
    return both, np.concatenate([weight, np.ones(valid.n_queries)])
