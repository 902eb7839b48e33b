"""Fits that begin with the model before: its features first, and others only where these are better."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.data.dataset import FINGERPRINT_DIGITS
from ranksieve.errors import ParameterError
from ranksieve.estimators.candidates import Candidates, Family
from ranksieve.estimators.choice import Budget, tied_with
from ranksieve.estimators.families import PATH, Fitted, ForwardSearches, Task, by_size, l1_family
from ranksieve.estimators.held_out import HeldOut
from ranksieve.forward import ForwardSearch
from ranksieve.model import LinearModel, load_model, model_of
from ranksieve.objective import Objective, Point
from ranksieve.path import SparsePath, collect
from ranksieve.penalties import L1, ElasticNet, SlopedPenalty
from ranksieve.penalties.base import Slopes
from ranksieve.solvers import Problem, ProxNewton, Result

AS_BEFORE = "as before"  # ends the label of the family that has the features of the model before
COARSE_ALPHAS = 10  # points of the path that the features before are compared with
SHRUNK = (PATH, "log")  # families whose models have an ℓ1
MORE = 3  # features that may join those before


@dataclass(frozen=True, eq=False)
class Before:
    """The features of the model before that can still be used, as a mask, and the penalty that it had."""

    used: BoolArray
    penalty: SlopedPenalty
    label: str

    def fit(self, objective: Objective, start: FloatArray | Point | None, tol: float) -> Result:
        """The weights of these features."""
        return ProxNewton(tol).solve(Problem(objective, self.penalty, usable=self.used), start)

    def slopes(self) -> Slopes:
        """Those of the penalty, infinite for other features."""
        own = self.penalty.slopes(len(self.used))
        return Slopes(np.where(self.used, own.up, np.inf), np.where(self.used, own.down, np.inf), own.ridge)


def as_model(given: Any) -> LinearModel:
    """A linear model, or that of a fitted ranker or of a file."""
    model = load_model(given) if isinstance(given, str | os.PathLike) else model_of(given)
    if not isinstance(model, LinearModel):
        reason = "must be a linear model, a ranker that has one, or a model file"
        raise ParameterError("warm_start", given, reason)
    if not model.terms:
        raise ParameterError("warm_start", given, "the model uses no feature to start from")
    return model


def short_name(model: LinearModel) -> str:
    """A short name for what a model computes."""
    content = json.dumps(
        [model.to_dict()[part] for part in ("terms", "intercept", "normalisation", "missing")]
    )
    return hashlib.sha256(content.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def before(model: LinearModel, task: Task) -> Before | None:
    """What a fit begins with; None if none of the model's features can be used."""
    names = set(model.names)
    used = np.array([name in names for name in task.names]) & task.rules.usable
    if not used.any():
        return None
    certificate, penalty = model.certificate, task.penalty
    family = str(certificate.get("family", "")).partition(" ")[0]
    alpha, ridge = certificate.get("alpha"), certificate.get("ridge")
    if family in SHRUNK and alpha is not None and isinstance(penalty, L1):
        weights = _weights(certificate.get("weights", {}), task.names)
        return Before(used, replace(penalty, alpha=float(alpha), weights=weights), f"{family} {AS_BEFORE}")
    mu = ForwardSearch(task.objective, task.rules.usable).ridge if ridge is None else float(ridge)
    return Before(used, ElasticNet(mu, signs=task.rules.signs, l1_ratio=0.0), f"refitted {AS_BEFORE}")


def _weights(stated: Mapping[str, Any], names: Sequence[str]) -> FloatArray:
    return np.array([float(stated.get(name, 1.0)) for name in names])


def first_candidates(task: Task, held_out: HeldOut, budget: Budget, begin: Before) -> Candidates | None:
    """The features before, these and a few more, and the points of a coarse path.

    None if one of the others is better than the features before by more than chance.
    """
    same = Family.of(before_family(task, begin), held_out)
    if not budget.allows(same.models.coefs).all():
        return None
    coarse = replace(task, n_alphas=COARSE_ALPHAS, window=1)
    others = [l1_family(coarse), more_family(task, begin)]
    families = (same, *(Family.of(one, held_out) for one in others if one is not None))
    candidates = Candidates(families, budget)
    allowed = np.flatnonzero(candidates.allowed)
    values = candidates.values[allowed]
    best = int(np.argmax(values.mean(axis=1)))
    return replace(candidates, preferred=0) if tied_with(values, best)[0] else None


def before_family(task: Task, begin: Before) -> Fitted:
    """The features before, fitted to these data, as a family of one model."""
    result = begin.fit(task.objective, None, task.tol)
    without = None
    if task.folds is not None:
        slopes = [begin.slopes()] * len(task.folds)
        without = task.folds.minima(result.point, slopes)[None]
    models = collect(np.array([begin.penalty.alpha]), [replace(result, point=None)], task.names)
    return Fitted(begin.label, models, [begin.penalty], without, window=1)


def more_family(task: Task, begin: Before) -> Fitted | None:
    """The features before and a few more, by forward selection."""
    fixed = tuple(np.flatnonzero(begin.used).tolist())
    most = len(fixed) + MORE if task.most is None else min(task.most, len(fixed) + MORE)
    rules, searches = replace(task.rules, fixed=fixed), ForwardSearches()

    def select(fold: int | None) -> SparsePath:
        return searches.search(task, fold).path(most, rules, task.names)

    models = select(None)
    return by_size("forward from those before", task, models, most, 1, select) if len(models) else None
