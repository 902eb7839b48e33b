"""A model and the data to check it on, with what several claims need: its problem, and a new fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.counted import counted
from ranksieve.data.dataset import Dataset, joined
from ranksieve.data.features import named_signs
from ranksieve.data.on_device import rounded
from ranksieve.errors import DataError, ParameterError
from ranksieve.model import LinearModel, model_from_dict
from ranksieve.path import Progress
from ranksieve.preparation import Preparation
from ranksieve.solvers import Problem
from ranksieve.verification.rebuild import chooser_of, is_budgeted, learner_of, ranker_class
from ranksieve.verification.verdict import LeftOut, NotChecked, NotGiven, differing, told_if_damaged

EVALUATION = 1e-12  # share of an objective by which evaluations at the same weights may differ by machine
FIT = 1e-9  # share of a number by which two fits may differ
SAME_WEIGHT = 1e-6  # share of the largest weight: what rounding may grow to in the steps of a solver
PARTS = {
    "train": "training data",
    "valid": "validation data",
    "query_weight": "query weights",
    "warm_start": "the model before",
}
GIVEN = ("valid", "query_weight", "warm_start")  # parameters of verify
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
    warm_start: LinearModel | None = None

    def check_input(self) -> None:
        """Refuse a damaged model file, and data that the model cannot have been fitted on."""
        model = self.model
        if not isinstance(model, LinearModel) or not (model.data or model.certificate or model.metrics):
            raise ParameterError(
                "model",
                model,
                "has no claims to verify: it names neither its training data nor what was proven or measured",
            )
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
            if part.n_features != model.n_features:
                widths = (
                    f"the data have {part.n_features} features, the model was fitted on {model.n_features}"
                )
                raise DataError(part.source, None, widths)
            model._located(part)  # names the features that the data lack

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
        if learner.device != "cpu":
            data = rounded(data)
        with told_if_damaged("its problem cannot be stated"):
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
    def measures(self) -> bool:
        """Whether the model states something that takes a new fit to measure."""
        return any(name != COST for name in self.model.metrics)

    @property
    def chooses(self) -> bool:
        """Whether the method chose this model among others, as only a new fit can confirm."""
        return is_budgeted(self.model) or ranker_class(self.model.method).uses_valid

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
            self.need("query_weight", "valid", "warm_start")
            ranker: Any = chooser_of(self.model)
            options = {
                "valid": self.valid,
                "query_weight": self.query_weight,
                "warm_start": self.warm_start,
            }
            given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
            if ranker.uses_valid:
                given["progress"] = self.progress
            with told_if_damaged("fitting again fails"):
                again: LinearModel = ranker.fit(self.data, **given).to_model()
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
        if self.model.parameters.get("warm_start") and not is_budgeted(self.model):
            words += "; the first fit may have begun at weights that the file does not hold"
        return words


def _difference(learned: Preparation, kept: Preparation) -> str:
    """The first fill or scale that is not the one that the data give; empty if all are."""
    found, stated = learned.normalisation, kept.normalisation
    for what, value, given in (
        ("normalisation", found.kind, stated.kind),
        ("missing values", learned.missing.policy, kept.missing.policy),
        ("indicators", learned.missing.indicates, kept.missing.indicates),
    ):
        if value != given:
            return f"{what}: {differing(value, given)}"
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
    both = joined(data, valid)
    return both, np.concatenate([weight, np.ones(valid.n_queries)])
