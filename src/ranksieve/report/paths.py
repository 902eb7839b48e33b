"""A path of models as plain lists, to draw and to explore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.json_values import nonzero_weights

MAX_LINES = 60  # weight curves beyond these are neither legible nor worth their bytes
EXPLORED = (
    "label", "alphas", "n_nonzero", "relative_gaps", "chosen", "metric", "mean", "standard_error", "test",
)  # fmt: skip


@dataclass(frozen=True)
class Curves:
    """A path as lists, one entry a point; ``weights`` has one list a feature, the largest first.

    ``points`` holds all nonzero weights of each point by name, ``test`` the metric on test data if measured.
    """

    alphas: list[float]
    objectives: list[float]
    relative_gaps: list[float]
    n_nonzero: list[int]
    weights: dict[str, list[float]]
    points: list[dict[str, float]]
    chosen: int
    metric: str
    profile: str
    mean: list[float]
    standard_error: list[float]
    test: list[float] = field(default_factory=list)
    label: str = ""


def curves_of_ranker(ranker: Any) -> Curves | None:
    """The path of a fitted ranker with its validation; None if it has no path."""
    if not hasattr(ranker, "path_"):
        return None
    path, validation = ranker.path_, ranker.validation_
    return Curves(
        alphas=path.alphas.tolist(),
        objectives=path.objectives.tolist(),
        relative_gaps=path.relative_gaps.tolist(),
        n_nonzero=path.n_nonzero.tolist(),
        weights=_lines(path.coefs, ranker.coef_, path.feature_names),
        points=[nonzero_weights(w, path.feature_names) for w in path.coefs],
        chosen=ranker.chosen_,
        metric=validation.metric,
        profile=validation.to_dict()["profile"],
        mean=validation.mean.tolist(),
        standard_error=validation.standard_error.tolist(),
    )


def curves_of_study(
    path: Mapping[str, Any], names: Sequence[str], metric: str, profile: str, label: str
) -> Curves:
    """The path of one fold as results hold it. Chosen: the best on validation, of equals the sparsest."""
    coefs = np.array([[point.get(name, 0.0) for name in names] for point in path["weights"]])
    validation, used = path["validation"][metric], np.asarray(path["n_nonzero"])
    mean = np.where(used > 0, validation["mean"], -np.inf)
    chosen = int(np.lexsort((used, -mean))[0])
    return Curves(
        alphas=path["alphas"],
        objectives=path["objectives"],
        relative_gaps=path["relative_gaps"],
        n_nonzero=path["n_nonzero"],
        weights=_lines(coefs, coefs[chosen], names),
        points=path["weights"],
        chosen=chosen,
        metric=metric,
        profile=profile,
        mean=validation["mean"],
        standard_error=validation["standard_error"],
        test=path["test"][metric]["mean"],
        label=label,
    )


def explorer(curves: Curves, figure: Mapping[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    """What the slider shows: of each point the weights as [feature, weight], features in order of entry."""
    order = list(dict.fromkeys(name for point in curves.points for name in point))
    place = {name: k for k, name in enumerate(order)}
    return {
        **{name: getattr(curves, name) for name in EXPLORED},
        "features": order,
        "points": [
            sorted([place[name], weight] for name, weight in point.items()) for point in curves.points
        ],
        "figure": figure,
        "colours": colours,
    }


def _lines(coefs: FloatArray, chosen: FloatArray, names: Sequence[str]) -> dict[str, list[float]]:
    """Curves of the chosen features by falling weight, then of the others by their largest weight."""
    largest = np.abs(coefs).max(axis=0)
    order = np.lexsort((-largest, -np.abs(chosen)))
    used = [j for j in order if largest[j] > 0 or chosen[j] != 0]
    return {names[j]: coefs[:, j].tolist() for j in used[:MAX_LINES]}
