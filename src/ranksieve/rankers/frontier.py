"""The frontier: the best accuracy for each number of features and each cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.decide import Choice
from ranksieve.choice.held_out import standard_error
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.steps import StepColumns, features_in_use
from ranksieve.path import Progress
from ranksieve.rankers.base import ValidData
from ranksieve.rankers.sparse_ranker import SparseRanker


@dataclass(frozen=True, eq=False)
class Frontier:
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
