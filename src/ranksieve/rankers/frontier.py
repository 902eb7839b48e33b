"""The frontier: what accuracy each number of features and each cost can buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray
from ranksieve.choice.decide import Choice
from ranksieve.choice.held_out import standard_error
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.path import Progress
from ranksieve.rankers.base import ValidData
from ranksieve.rankers.sparse_ranker import SparseRanker


@dataclass(frozen=True, eq=False)
class Frontier:
    """Models by falling regularisation, path after path: held-out metric, features in use, cost.

    ``costs`` is None without feature costs. ``optimal`` marks the points that no other beats: none has at
    least their metric with at most their features and cost, and is better in one of these.
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

    def __len__(self) -> int:
        return len(self.mean)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; optimal points also name their features."""
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
            point["features"] = [self.feature_names[j] for j in np.flatnonzero(self.coefs[k])]
        return point


def frontier(
    data: Dataset,
    valid: ValidData = None,
    *,
    query_weight: QueryWeight | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Frontier:
    """Measure what features and cost buy in accuracy: all candidate models, and which are Pareto-optimal.

    Parameters
    ----------
    data, valid : Dataset
        As in :meth:`SparseRanker.fit`: without ``valid`` the metric comes from cross-validation.
    query_weight : array or mapping of query id to number, optional
        As in :meth:`SparseRanker.fit`.
    **settings
        Parameters of :class:`SparseRanker`, such as ``feature_costs``, ``metric`` and ``signs``;
        ``max_features`` and ``max_cost`` cut the frontier off.
    """
    ranker = SparseRanker(**settings).fit(data, valid=valid, query_weight=query_weight, progress=progress)
    return frontier_of(ranker.choice_)


def frontier_of(choice: Choice) -> Frontier:
    """The frontier of the candidates of a choice that its budget allows."""
    budget, validation, allowed = choice.budget, choice.validation, choice.allowed
    coefs, values = choice.coefs[allowed], choice.values[allowed]
    labels = [family.label for family in choice.families for _ in family.candidates]
    mean, n_features = np.asarray(values.mean(axis=1)), np.count_nonzero(coefs, axis=1)
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
        costs=costs,
        optimal=pareto_optimal(
            np.column_stack([-mean, n_features] if costs is None else [-mean, n_features, costs])
        ),
    )


def pareto_optimal(burdens: FloatArray) -> BoolArray:
    """Which rows no other row dominates: is at most as large everywhere and smaller somewhere.

    Of equal rows the first is optimal.
    """
    order = np.lexsort(burdens.T[::-1])  # a row can be dominated, or equalled, only by rows before it
    optimal = np.zeros(len(burdens), dtype=bool)
    kept = np.empty((0, burdens.shape[1]))
    for row in order:
        if not (kept <= burdens[row]).all(axis=1).any():
            optimal[row] = True
            kept = np.vstack([kept, burdens[row]])
    return optimal
