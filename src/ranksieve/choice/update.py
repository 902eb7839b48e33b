"""Refit from a previous model: keep its features unless others are better, and report what changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray
from ranksieve.choice.decide import allowed, interval, smoothed_values, tied_with
from ranksieve.choice.families import (
    PATH,
    Candidate,
    Family,
    FamilyTask,
    ForwardSearches,
    by_size,
    l1_family,
)
from ranksieve.choice.forward import ForwardSearch
from ranksieve.choice.held_out import HeldOut, Validation
from ranksieve.data.budget import Budget
from ranksieve.data.dataset import FINGERPRINT_DIGITS, Dataset
from ranksieve.errors import ParameterError
from ranksieve.metrics import evaluate
from ranksieve.model.linear import LinearModel, load_model, model_of
from ranksieve.penalties import L1, SlopedPenalty
from ranksieve.penalties.base import Slopes
from ranksieve.solvers import Problem, ProxNewton, Result

ROUNDING = 1e-9  # of a metric that is a mean over ties and dealings of folds
SHOWN_QUERIES = 10


@dataclass(frozen=True)
class FeatureChange:
    """A feature and its weights in the model before and in the new one; None where it is not in use."""

    feature: str
    before: float | None
    after: float | None

    @property
    def status(self) -> str:
        """ "in", "out" or "kept"."""
        return "in" if self.before is None else "out" if self.after is None else "kept"


@dataclass(frozen=True, eq=False)
class Changes:
    """What changed from the model before to the new one.

    ``features`` come by falling weight. Weights are per raw unit of the feature if ``raw``, else per
    normalised one. ``before`` and ``after`` are the metric of each held-out query: of the model before as it
    was, and of the new one fitted without that query. They are empty if the model before cannot rank these
    data; ``unmeasured`` says why. ``seen`` says that the model before was fitted on these queries, so its
    values are too high.
    """

    features: tuple[FeatureChange, ...]
    raw: bool
    metric: str
    profile: str
    query_ids: AnyArray
    before: FloatArray
    after: FloatArray
    seen: bool
    unmeasured: str = ""

    @property
    def won(self) -> int:
        """Queries that the new model ranks better."""
        return int(np.count_nonzero(self.after - self.before > ROUNDING))

    @property
    def lost(self) -> int:
        """Queries that it ranks worse."""
        return int(np.count_nonzero(self.before - self.after > ROUNDING))

    @property
    def gain(self) -> tuple[float, float, float]:
        """(mean, low, high) of the difference of the metric, with its 95 % interval over queries."""
        return interval(self.after - self.before)

    def extremes(self, most: int = SHOWN_QUERIES) -> list[tuple[Any, float, float]]:
        """The queries that lost and that won most: (id, metric before, metric after), the most lost first."""
        return most_changed(self.query_ids, self.before, self.after, most)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        found: dict[str, Any] = {
            "features": [{**asdict(one), "status": one.status} for one in self.features],
            "raw_weights": self.raw,
            "metric": self.metric,
            "profile": self.profile,
        }
        if len(self.after):
            gain, low, high = self.gain
            found |= {
                "mean_before": float(self.before.mean()),
                "mean_after": float(self.after.mean()),
                "gain": gain,
                "gain_low": low,
                "gain_high": high,
                "queries": len(self.after),
                "won": self.won,
                "lost": self.lost,
                "seen_before": self.seen,
                "most_changed": [
                    {"query": query, "before": before, "after": after}
                    for query, before, after in self.extremes()
                ],
            }
        return found


def most_changed(
    query_ids: AnyArray, before: FloatArray, after: FloatArray, most: int
) -> list[tuple[Any, float, float]]:
    """The queries whose value fell most, at most so many, then those whose value rose most, by the change."""
    gain, ids = after - before, query_ids.tolist()
    order = np.argsort(gain, kind="stable").tolist()
    lost = [k for k in order[:most] if gain[k] < -ROUNDING]
    won = [k for k in order[-most:] if gain[k] > ROUNDING]
    return [(ids[k], float(before[k]), float(after[k])) for k in (*lost, *won)]


def find_changes(
    old: LinearModel,
    new: LinearModel,
    held: Sequence[Dataset],
    validation: Validation,
    chosen: int,
    seen: bool,
) -> Changes:
    """What changed, measured on the queries that the new model was ``chosen`` on among those of its family.

    ``held`` are the data of these queries, in order.
    """
    raw = not (old.per_query or new.per_query)
    weights = [
        dict(zip(m.names, (m.folded() if raw else m).weights.tolist(), strict=True)) for m in (old, new)
    ]
    names = sorted({*weights[0], *weights[1]}, key=lambda name: -max(abs(w.get(name, 0.0)) for w in weights))
    before, unmeasured = _values(old, held, validation)
    return Changes(
        tuple(FeatureChange(name, *(w.get(name) for w in weights)) for name in names),
        raw,
        validation.metric,
        validation.profile.name,
        validation.query_ids[: len(before)],
        before,
        validation.values[chosen][: len(before)],
        seen,
        unmeasured,
    )


def _values(model: LinearModel, held: Sequence[Dataset], by: Validation) -> tuple[FloatArray, str]:
    """The metric of each query that has one; or none, and why the model cannot rank the data."""
    try:
        scores = [model.predict(data) for data in held]
    except ValueError as error:
        return np.empty(0), str(error)
    found = [
        evaluate(one, data, [by.metric], by.profile).per_query[by.metric]
        for one, data in zip(scores, held, strict=True)
    ]
    values = np.concatenate(found)
    return np.asarray(values[~np.isnan(values)]), ""


AS_BEFORE = "as before"  # ends the label of the family that has the features of the previous model
COARSE_ALPHAS = 10  # points of the path that the previous features are compared with
SHRUNK = (PATH, "log")  # families whose models have an ℓ1
MORE = 3  # features that may join the previous ones


@dataclass(frozen=True, eq=False)
class Previous:
    """The features of the previous model that can still be used, as a mask, and its penalty."""

    used: BoolArray
    penalty: SlopedPenalty
    label: str

    def slopes(self) -> Slopes:
        """Those of the penalty, infinite for other features."""
        own = self.penalty.slopes(len(self.used))
        return Slopes(np.where(self.used, own.up, np.inf), np.where(self.used, own.down, np.inf), own.ridge)


def as_model(previous: Any) -> LinearModel:
    """A linear model, or that of a fitted ranker or of a file."""
    model = load_model(previous) if isinstance(previous, str | os.PathLike) else model_of(previous)
    if not isinstance(model, LinearModel):
        reason = "must be a linear model, a ranker that has one, or a model file"
        raise ParameterError("previous", previous, reason)
    if not model.terms:
        raise ParameterError("previous", previous, "the model uses no feature to start from")
    return model


def short_name(model: LinearModel) -> str:
    """A short name for what a model computes."""
    content = json.dumps(
        [model.to_dict()[part] for part in ("terms", "intercept", "normalisation", "missing")]
    )
    return hashlib.sha256(content.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def previous_features(model: LinearModel, task: FamilyTask) -> Previous | None:
    """What a fit starts with; None if none of the model's features can be used."""
    names, budget = set(model.names), task.budget
    used = np.array([name in names for name in task.names]) & budget.usable
    if not used.any():
        return None
    certificate, penalty = model.certificate, task.penalty
    family = str(certificate.get("family", "")).partition(" ")[0]
    alpha, ridge = certificate.get("alpha"), certificate.get("ridge")
    if family in SHRUNK and alpha is not None and isinstance(penalty, L1):
        stated: Mapping[str, Any] = certificate.get("weights", {})
        weights = np.array([float(stated.get(name, 1.0)) for name in task.names])
        return Previous(used, replace(penalty, alpha=float(alpha), weights=weights), f"{family} {AS_BEFORE}")
    mu = ForwardSearch(task.objective, budget.usable).ridge if ridge is None else float(ridge)
    return Previous(used, task.ridge(mu), f"refitted {AS_BEFORE}")


def first_families(
    task: FamilyTask, held_out: HeldOut, budget: Budget, previous: Previous
) -> tuple[Family, ...] | None:
    """The previous features, these and a few more, and the points of a coarse path.

    None if one of the others is better than the previous features by more than chance.
    """
    same = same_family(task, previous).measured(held_out)
    if not budget.allows(same.coefs).all():
        return None
    coarse = replace(task, n_alphas=COARSE_ALPHAS, window=1)
    others = [l1_family(coarse), more_family(task, previous)]
    families = (same, *(family.measured(held_out) for family in others if family is not None))
    values = smoothed_values(families)[allowed(families, budget)]
    return families if tied_with(values, int(np.argmax(values.mean(axis=1))))[0] else None


def same_family(task: FamilyTask, previous: Previous) -> Family:
    """The previous features, fitted to these data, as a family of one model."""
    problem = Problem(task.objective, previous.penalty, usable=previous.used)
    result, fold_coefs = ProxNewton(task.tol).solve(problem, None), None
    if task.folds is not None:
        fold_coefs = task.folds.minima(result.point, [previous.slopes()] * len(task.folds))
    return Family(previous.label, [Candidate.of(result, previous.penalty, fold_coefs)])


def more_family(task: FamilyTask, previous: Previous) -> Family | None:
    """The previous features and a few more, by forward selection."""
    n_used, limit = int(np.count_nonzero(previous.used)), task.budget.max_features
    most = n_used + MORE if limit is None else min(limit, n_used + MORE)
    budget, searches = replace(task.budget, must_have=previous.used), ForwardSearches(task)

    def select(fold: int | None) -> list[Result]:
        return searches[fold].path(most, budget)

    return by_size("forward from those before", task, select(None), searches[None].ridge, most, 1, select)
