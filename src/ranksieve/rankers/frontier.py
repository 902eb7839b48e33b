"""The frontier: the best accuracy for each number of features and each cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray, PathLike
from ranksieve.choice.decide import Choice
from ranksieve.choice.held_out import standard_error
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.steps import StepColumns, features_in_use
from ranksieve.errors import short_list
from ranksieve.path import Progress
from ranksieve.rankers.base import ValidData
from ranksieve.rankers.sparse_ranker import SparseRanker
from ranksieve.show.formats import metric_title, plural
from ranksieve.show.result import Part, Shown, Table
from ranksieve.show.upwards import Drawn, report_function

MAX_SHOWN_STEPS = 12


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Drawn, Shown):
    """Candidate models with held-out metric, number of features and cost.

    Points are ordered by family, then by decreasing regularisation. ``costs`` is None without feature costs.
    ``optimal`` marks Pareto-optimal points: no other point is at least as good in metric, number of features
    and cost, and better in one of them.
    """

    metric: str
    profile: str
    feature_names: tuple[str, ...]
    families: tuple[str, ...]
    strengths: FloatArray
    coefs: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    n_features: IntArray
    costs: FloatArray | None
    optimal: BoolArray
    columns: StepColumns | None = None

    def __len__(self) -> int:
        return len(self.mean)

    def _line(self) -> str:
        best, metric = int(np.argmax(self.mean)), metric_title(self.metric)
        size = plural(int(self.n_features[best]), "feature")
        return (
            f"{plural(len(self), 'candidate')}, {int(self.optimal.sum())} of them Pareto-optimal; "
            f"best held-out {metric} {self.mean[best]:.4f} with {size}"
        )

    def shown(self) -> Sequence[Part]:
        """The best metric for about ten numbers of features or costs."""
        return frontier_parts(self.to_dict())

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """All candidates."""
        points = [self._point(k) for k in range(len(self))]
        names = [name for name in (points[0] if points else {}) if name != "features"]
        return {name: [point[name] for point in points] for name in names}

    def report(self, path: PathLike) -> None:
        """Write the page that ``ranksieve frontier --report`` writes."""
        report_function("calls.report_frontier")(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; optimal points also list their features."""
        return {
            "metric": self.metric,
            "profile": self.profile,
            "points": [self._point(k) for k in range(len(self))],
        }

    def _point(self, k: int) -> dict[str, Any]:
        point = {
            "family": self.families[k],
            "strength": float(self.strengths[k]),
            "n_features": int(self.n_features[k]),
            "cost": None if self.costs is None else float(self.costs[k]),
            "mean": float(self.mean[k]),
            "standard_error": float(self.standard_error[k]),
            "optimal": bool(self.optimal[k]),
        }
        if self.optimal[k]:
            (used,) = features_in_use(self.coefs[k : k + 1], self.columns)
            point["features"] = [self.feature_names[j] for j in np.flatnonzero(used)]
        return point


def frontier(
    data: Dataset,
    valid: ValidData = None,
    *,
    query_weight: QueryWeight | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Frontier:
    """Trade-off between accuracy, number of features and cost, over all candidate models.

    Parameters
    ----------
    data, valid : Dataset
        As in :meth:`SparseRanker.fit`; without ``valid``, the metric comes from cross-validation.
    query_weight : array or mapping of query id to number, optional
        As in :meth:`SparseRanker.fit`.
    **settings
        Parameters of :class:`SparseRanker`, such as ``feature_costs``, ``metric`` and ``signs``;
        ``max_features`` and ``max_cost`` limit the frontier.
    """
    ranker = SparseRanker(**settings).fit(data, valid=valid, query_weight=query_weight, progress=progress)
    return frontier_of(ranker.choice_)


def frontier_of(choice: Choice) -> Frontier:
    """The frontier of the candidates within the budget of a choice."""
    budget, validation, allowed = choice.budget, choice.validation, choice.allowed
    coefs, values = choice.coefs[allowed], choice.values[allowed]
    labels = [family.label for family in choice.families for _ in family.candidates]
    mean, n_features = np.asarray(values.mean(axis=1)), budget.counts(coefs)
    costs = None if budget.costs is None else budget.costs.of_models(coefs)
    return Frontier(
        metric=validation.metric,
        profile=validation.profile.name,
        feature_names=choice.feature_names,
        families=tuple(np.array(labels)[allowed].tolist()),
        strengths=np.concatenate([family.strengths for family in choice.families])[allowed],
        coefs=coefs,
        mean=mean,
        standard_error=standard_error(values),
        n_features=n_features,
        columns=budget.columns,
        costs=costs,
        optimal=pareto_optimal(
            np.column_stack([-mean, n_features] if costs is None else [-mean, n_features, costs])
        ),
    )


def pareto_optimal(values: FloatArray) -> BoolArray:
    """Mask of the rows that no other row dominates, smaller values being better.

    A row dominates another if it is nowhere larger and somewhere smaller. Of equal rows, the first is
    optimal.
    """
    order = np.lexsort(values.T[::-1])  # a row can be dominated, or equalled, only by rows before it
    optimal = np.zeros(len(values), dtype=bool)
    front = np.empty((0, values.shape[1]))
    for row in order:
        if not (front <= values[row]).all(axis=1).any():
            optimal[row] = True
            front = np.vstack([front, values[row]])
    return optimal


Candidate = TypeVar("Candidate", bound=Mapping[str, Any])


def cost_key(frontier: Mapping[str, Any]) -> str:
    """The key to compare candidates by: "cost", or "n_features" if features have no costs."""
    return "n_features" if frontier["points"][0]["cost"] is None else "cost"


def frontier_steps(frontier: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Points that are better than all cheaper ones, by increasing cost."""
    return pareto_front([point for point in frontier["points"] if point["optimal"]], cost_key(frontier))


def pareto_front(candidates: Sequence[Candidate], cost: str, value: str = "mean") -> list[Candidate]:
    """Candidates that no other dominates in cost and value, by increasing cost; the first of equal ones."""
    criteria = np.array([(c[cost], -c[value]) for c in candidates], dtype=np.float64).reshape(-1, 2)
    front = [c for c, optimal in zip(candidates, pareto_optimal(criteria), strict=True) if optimal]
    return sorted(front, key=lambda c: c[cost])


def frontier_parts(content: Mapping[str, Any]) -> Sequence[Part]:
    """About ten steps of :meth:`Frontier.to_dict` as a table, and the number of candidates."""
    metric = metric_title(content["metric"])
    n_optimal = sum(point["optimal"] for point in content["points"])
    steps, priced = frontier_steps(content), cost_key(content) == "cost"
    shown = np.unique(np.linspace(0, len(steps) - 1, MAX_SHOWN_STEPS).round().astype(int))
    rows = [
        (
            *([step["cost"]] if priced else []),
            step["n_features"],
            f"{step['mean']:.4f}",
            short_list(step["features"], 6),
        )
        for step in (steps[k] for k in shown)
    ]
    counts = (
        f"{len(content['points'])} candidates, {n_optimal} of them Pareto-optimal in "
        f"{metric} ({content['profile']} profile), number of features{' and cost' if priced else ''}."
    )
    return [
        Table([*(["cost"] if priced else []), "features", f"held-out {metric}", "feature names"], rows),
        counts,
    ]
