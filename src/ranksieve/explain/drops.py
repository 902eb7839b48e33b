"""What each feature is worth: the metric and the cost without it, and without whole groups of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.explain.inputs import explainable, inputs
from ranksieve.formats.feature_tables import as_costs
from ranksieve.metrics import Evaluator, MetricSpec, Profile
from ranksieve.metrics.evaluate import mean_of_defined, parse_all
from ranksieve.model import FittedRanker, LinearModel, linear_scores
from ranksieve.objective import make_objective
from ranksieve.penalties import Ridge
from ranksieve.significance import holm, paired_t, randomisation
from ranksieve.solvers import Problem, ProxNewton

RIDGE_SHARE = 1e-6  # of ‖Xᵀ∇f(0)‖_∞: keeps a refit bounded when its features separate every pair
REFIT_TOL, REFIT_STEPS = 1e-6, 100


@dataclass(frozen=True)
class FeatureDrop:
    """What leaving out one feature, or all features of a group that is paid once, does to one metric.

    ``loss`` = value − without, the mean over queries of what the metric falls by; the p-values (paired t,
    randomisation) are two-sided, those called holm corrected over all rows that drop something else.
    ``saved`` is the cost that falls away, None without costs. ``dropped`` are the features in use that are
    left out; ``group`` tells that ``feature`` is the name of a group of them.
    """

    feature: str
    metric: str
    value: float
    without: float
    loss: float
    p_t: float
    p_randomisation: float
    p_t_holm: float
    p_randomisation_holm: float
    saved: float | None
    dropped: tuple[str, ...] = ()
    group: bool = False


@dataclass(frozen=True)
class _Drop:
    """The columns of the model that a row leaves out, and what that saves."""

    name: str
    columns: tuple[int, ...]
    saved: float | None
    group: bool


def drop_costs(
    model: LinearModel | FittedRanker,
    data: Dataset,
    metrics: str | Sequence[str | MetricSpec] = "ndcg@10",
    feature_costs: Mapping[str, Any] | FeatureCosts | None = None,
    *,
    train: Dataset | None = None,
    profile: str | Profile | None = None,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> tuple[FeatureDrop, ...]:
    """What the model would lose in each metric, and save in cost, without each of its features.

    With costs there is also a row for each group of features that is paid once, if the model uses any of it:
    a feature of a group saves nothing while another one of it is in use. The other weights stay; if ``train``
    is given, the weights with and without the feature are both refitted on it: min f(w) + ½ρ‖w‖², f the mean
    squared hinge over pairs, ρ a millionth of ‖Xᵀ∇f(0)‖_∞. ``profile`` is as in :func:`ranksieve.evaluate`.
    Rows are by metric, the greatest loss first.
    """
    linear = explainable(model)
    specs, drops = parse_all(metrics), _drops(linear, data, feature_costs)
    evaluator, values_of = Evaluator(data, profile), inputs(linear, data)
    learn_from = None if train is None else (inputs(linear, train), train)

    def per_query(without: tuple[int, ...]) -> Mapping[str, FloatArray]:
        kept = np.delete(np.arange(len(linear.terms)), without)
        weights = linear.weights[kept] if learn_from is None else _refitted(*learn_from, kept)
        return evaluator.evaluate(linear_scores(values_of, kept, weights), specs).per_query

    with_all = per_query(())
    without = {columns: per_query(columns) for columns in dict.fromkeys(drop.columns for drop in drops)}
    found: list[FeatureDrop] = []
    for metric, values in with_all.items():
        less = {columns: one[metric] for columns, one in without.items()}
        p_values = dict(zip(less, _p_values(values, list(less.values()), n_permutations, seed), strict=True))
        value = mean_of_defined(values)
        rows = []
        for drop in drops:
            mean, dropped = mean_of_defined(less[drop.columns]), tuple(linear.names[j] for j in drop.columns)
            row = (drop.name, metric, value, mean, value - mean, *p_values[drop.columns], drop.saved)
            rows.append(FeatureDrop(*row, dropped, drop.group))
        found += sorted(rows, key=lambda row: -row.loss)
    return tuple(found)


def _drops(
    model: LinearModel, data: Dataset, feature_costs: Mapping[str, Any] | FeatureCosts | None
) -> list[_Drop]:
    """Each feature, then each group that the model uses a feature of."""
    names, indicators = model.names, model.preparation.missing.indicators
    if feature_costs is None:
        return [_Drop(name, (j,), None, False) for j, name in enumerate(names)]
    given = [name for name in data.feature_names if name not in indicators]
    costs = as_costs(feature_costs, given).with_indicators(indicators)
    sets = [(name, [name], False) for name in names]
    groups = [unit for unit in costs.units if unit.group is not None]
    sets += [(unit.name, [name for name in names if name in unit.features], True) for unit in groups]
    all_of_it, drops = costs.of(names), []
    for name, dropped, group in sets:
        if dropped:
            saved = all_of_it - costs.of([other for other in names if other not in dropped])
            drops.append(_Drop(name, tuple(names.index(one) for one in dropped), saved, group))
    return drops


def _p_values(
    values: FloatArray, less: list[FloatArray], n_permutations: int, seed: int
) -> list[tuple[float, float, float, float]]:
    """Of the paired t and the randomisation test, and both corrected, for each drop."""
    p_t = [paired_t(values, one) for one in less]
    p_random = [randomisation(values, one, n_permutations, seed) for one in less]
    return list(zip(p_t, p_random, holm(p_t).tolist(), holm(p_random).tolist(), strict=True))


def _refitted(values: FloatArray, train: Dataset, kept: IntArray) -> FloatArray:
    if len(kept) == 0:
        return np.empty(0)
    objective = make_objective(train.replace_features(values[:, kept], [f"f{j + 1}" for j in kept]))
    ridge = RIDGE_SHARE * float(np.abs(objective.gradient(objective.at_zero)).max())
    return ProxNewton(REFIT_TOL, REFIT_STEPS).solve(Problem(objective, Ridge(ridge))).w
