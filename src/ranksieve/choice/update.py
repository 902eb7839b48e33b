"""Refit from a previous model: keep its features unless others are better; report the changes."""

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
    family_by_size,
    l1_family,
)
from ranksieve.choice.forward import ForwardSearch
from ranksieve.choice.held_out import HeldOut, Validation
from ranksieve.data.budget import Budget
from ranksieve.data.dataset import FINGERPRINT_DIGITS, Dataset
from ranksieve.errors import ParameterError
from ranksieve.metrics.evaluate import evaluate_quietly
from ranksieve.model.linear import LinearModel, load_model, model_of
from ranksieve.penalties import L1, SlopedPenalty
from ranksieve.penalties.base import Slopes
from ranksieve.prepare.steps import step_name
from ranksieve.show.fit import PREVIOUS_MODEL, change_parts
from ranksieve.show.result import Part, Shown
from ranksieve.solvers import Problem, ProxNewton, Result

METRIC_ROUNDING = 1e-9  # of a metric that is a mean over tied rankings and repeats of cross-validation
MAX_EXTREMES = 10


@dataclass(frozen=True)
class FeatureChange:
    """A feature and its weights in the previous and in the new model; None: not used."""

    feature: str
    before: float | None
    after: float | None

    @property
    def status(self) -> str:
        """ "in", "out" or "kept"."""
        return "in" if self.before is None else "out" if self.after is None else "kept"


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Shown):
    """Changes from the previous model to the new one.

    ``features`` are in order of descending weight. Weights are per unit of the raw feature if ``raw``, else
    per unit of the normalised one; if the models have ``curves``, they are the ranges of the curves.
    ``before`` and ``after`` are the metric of each held-out query: of the previous model, and of the new one
    fitted without that query. They are empty if the previous model cannot rank these data; ``unmeasured`` is
    the reason. ``seen``: the previous model was fitted to these queries,
    so its values are too high.
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
    curves: bool = False

    @property
    def won(self) -> int:
        """Number of queries that the new model ranks better."""
        return int(np.count_nonzero(self.after - self.before > METRIC_ROUNDING))

    @property
    def lost(self) -> int:
        """Number of queries that the new model ranks worse."""
        return int(np.count_nonzero(self.before - self.after > METRIC_ROUNDING))

    @property
    def gain(self) -> tuple[float, float, float]:
        """(mean, low, high): mean difference of the metric and its 95 % confidence interval over queries."""
        return interval(self.after - self.before)

    def extremes(self, most: int = MAX_EXTREMES) -> list[tuple[Any, float, float]]:
        """(id, metric before, metric after) of the queries with the largest changes; see `most_changed`."""
        return most_changed(self.query_ids, self.before, self.after, most)

    def _line(self) -> str:
        counts = {one: sum(f.status == one for f in self.features) for one in ("kept", "in", "out")}
        return f"{counts['kept']} features kept, {counts['in']} added, {counts['out']} removed"

    def shown(self) -> Sequence[Part]:
        """Features and metric before and after."""
        return list(change_parts(self, PREVIOUS_MODEL, {}))

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Features with both weights."""
        return {
            "feature": [one.feature for one in self.features],
            "before": [one.before for one in self.features],
            "after": [one.after for one in self.features],
            "status": [one.status for one in self.features],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        content: dict[str, Any] = {
            "features": [{**asdict(one), "status": one.status} for one in self.features],
            "raw_weights": self.raw,
            "metric": self.metric,
            "profile": self.profile,
        }
        if len(self.after):
            gain, low, high = self.gain
            content |= {
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
        return content


def most_changed(
    query_ids: AnyArray, before: FloatArray, after: FloatArray, most: int
) -> list[tuple[Any, float, float]]:
    """The ``most`` queries with the largest decrease and those with the largest increase, by change."""
    gain, ids = after - before, query_ids.tolist()
    order = np.argsort(gain, kind="stable").tolist()
    lost = [k for k in order[:most] if gain[k] < -METRIC_ROUNDING]
    won = [k for k in order[-most:] if gain[k] > METRIC_ROUNDING]
    return [(ids[k], float(before[k]), float(after[k])) for k in (*lost, *won)]


def find_changes(
    old: LinearModel,
    new: LinearModel,
    held_out: Sequence[Dataset],
    validation: Validation,
    chosen: int,
    seen: bool,
) -> Changes:
    """Compare two models on the held-out queries of the choice; the new one is ``chosen`` in its family.

    ``held_out`` are the data sets of these queries, in the order of ``validation``.
    """
    raw = not (old.per_query or new.per_query)
    weights = [_weights(model, raw) for model in (old, new)]
    names = sorted({*weights[0], *weights[1]}, key=lambda name: -max(abs(w.get(name, 0.0)) for w in weights))
    before, unmeasured = _values(old, held_out, validation)
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
        new.has_curves,
    )


def _weights(model: LinearModel, raw: bool) -> dict[str, float]:
    """Weight of each feature, or the range of its curve."""
    if model.has_curves:
        return {name: curve.range for name, curve in model.curves.items()}
    return dict(zip(model.names, (model.folded() if raw else model).weights.tolist(), strict=True))


def _values(model: LinearModel, held_out: Sequence[Dataset], by: Validation) -> tuple[FloatArray, str]:
    """(metric of each query that has one, ""), or (empty, reason) if the model cannot rank the data."""
    try:
        scores = [model.predict(data) for data in held_out]
    except ValueError as error:
        return np.empty(0), str(error)
    per_query = [
        evaluate_quietly(one, data, [by.metric], by.profile).per_query[by.metric]
        for one, data in zip(scores, held_out, strict=True)
    ]
    values = np.concatenate(per_query)
    return np.asarray(values[~np.isnan(values)]), ""


PREVIOUS_SUFFIX = "with the previous features"  # of the label of the family with the previous features
COARSE_ALPHAS = 10  # points of the path that the previous features are compared with
L1_FAMILIES = (PATH, "log")
MAX_ADDED_FEATURES = 3


@dataclass(frozen=True, eq=False)
class Previous:
    """The features of the previous model that can still be used, as a mask, and its penalty."""

    used: BoolArray
    penalty: SlopedPenalty
    label: str

    def slopes(self) -> Slopes:
        """Slopes of the penalty, infinite for other features."""
        all_ = self.penalty.slopes(len(self.used))
        up, down = (np.where(self.used, slope, np.inf) for slope in (all_.up, all_.down))
        return Slopes(up, down, all_.ridge)


def as_model(previous: Any) -> LinearModel:
    """The linear model given as a model, a fitted ranker or a file."""
    model = load_model(previous) if isinstance(previous, str | os.PathLike) else model_of(previous)
    if not isinstance(model, LinearModel):
        reason = "must be a linear model, a ranker that has one, or a model file"
        raise ParameterError("previous", previous, reason)
    if not model.terms:
        raise ParameterError("previous", previous, "the model must use at least one feature")
    return model


def model_digest(model: LinearModel) -> str:
    """Short hash of everything that determines the scores of a model."""
    content = json.dumps(
        [model.to_dict()[part] for part in ("terms", "intercept", "normalisation", "missing")]
    )
    return hashlib.sha256(content.encode()).hexdigest()[:FINGERPRINT_DIGITS]


def previous_features(model: LinearModel, task: FamilyTask) -> Previous | None:
    """The features and penalty a fit starts from; None if none of the model's features can be used."""
    names, budget, columns = set(model.names), task.budget, task.budget.columns
    of_columns = slice(None) if columns is None else columns.feature
    used = np.array([name in names for name in task.names])[of_columns] & budget.usable
    if not used.any():
        return None
    certificate, penalty = model.certificate, task.penalty
    family = str(certificate.get("family", "")).partition(" ")[0]
    alpha, ridge = certificate.get("alpha"), certificate.get("ridge")
    of_l1 = family in L1_FAMILIES or columns is not None
    if of_l1 and alpha is not None and isinstance(penalty, L1):
        l1_weights: Mapping[str, Any] = certificate.get("weights", {})
        if columns is not None:
            l1_weights, family = _weights_of_curves(model, l1_weights), PATH
        weights = np.array([float(l1_weights.get(name, 1.0)) for name in task.names])[of_columns]
        same_penalty = replace(penalty, alpha=float(alpha), weights=weights)
        return Previous(used, same_penalty, f"{family} {PREVIOUS_SUFFIX}")
    mu = ForwardSearch(task.objective, budget.usable).ridge if ridge is None else float(ridge)
    return Previous(used, task.ridge(mu), f"refitted {PREVIOUS_SUFFIX}")


def _weights_of_curves(model: LinearModel, l1_weights: Mapping[str, Any]) -> dict[str, float]:
    """Mean ℓ1 weight of the steps of each feature: new data have other thresholds."""
    return {
        name: float(np.mean([l1_weights.get(step_name(name, t), 1.0) for t in curve.thresholds] or [1.0]))
        for name, curve in model.curves.items()
    }


def first_families(
    task: FamilyTask, held_out: HeldOut, budget: Budget, previous: Previous
) -> tuple[Family, ...] | None:
    """The previous features, a coarse path, and for lines the previous features and a few more.

    None if another candidate is significantly better than the previous features.
    """
    same = previous_family(task, previous).with_validation(held_out)
    if not budget.allows(same.coefs).all():
        return None
    coarse = replace(task, n_alphas=COARSE_ALPHAS, window=1)
    others = [l1_family(coarse), extended_family(task, previous)]
    families = (same, *(family.with_validation(held_out) for family in others if family is not None))
    values = smoothed_values(families)[allowed(families, budget)]
    return families if tied_with(values, int(np.argmax(values.mean(axis=1))))[0] else None


def previous_family(task: FamilyTask, previous: Previous) -> Family:
    """The previous features fitted to these data, as a family of one model."""
    problem = Problem(task.objective, previous.penalty, usable=previous.used)
    result, fold_coefs = ProxNewton(task.tol).solve(problem, None), None
    if task.folds is not None:
        fold_coefs = task.folds.minima(result.point, [previous.slopes()] * len(task.folds))
    candidate = Candidate.of(result, previous.penalty, fold_coefs)
    return Family(previous.label, [candidate], columns=task.budget.columns)


def extended_family(task: FamilyTask, previous: Previous) -> Family | None:
    """The previous features and a few more, by forward selection; None for curves, which it does not fit."""
    if task.budget.columns is not None:
        return None
    n_used, limit = int(np.count_nonzero(previous.used)), task.budget.max_features
    most = n_used + MAX_ADDED_FEATURES if limit is None else min(limit, n_used + MAX_ADDED_FEATURES)
    budget, searches = replace(task.budget, must_have=previous.used), ForwardSearches(task)

    def select(fold: int | None) -> list[Result]:
        return searches[fold].path(most, budget)

    label, ridge = "forward from the previous features", searches[None].ridge
    results, *by_fold = task.searched([None, *task.searched_folds], select)
    return family_by_size(label, task, results, ridge, most, 1, by_fold)
