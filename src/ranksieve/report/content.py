"""What a report says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray

if TYPE_CHECKING:  # the types alone would load scikit-learn
    from ranksieve.estimators import LinearRanker
    from ranksieve.metrics import Evaluation

MAX_LINES = 60  # weight curves beyond these are neither legible nor worth their bytes


@dataclass(frozen=True)
class Planted:
    """Which features of a planted truth a ranker found, missed, or chose in addition."""

    found: list[str]
    missed: list[str]
    extra: list[str]


@dataclass(frozen=True)
class Curves:
    """A path as lists, one entry a point; ``weights`` has one list a feature, the largest first."""

    alphas: list[float]
    objectives: list[float]
    relative_gaps: list[float]
    n_nonzero: list[int]
    weights: dict[str, list[float]]
    chosen: int
    metric: str
    profile: str
    mean: list[float]
    standard_error: list[float]


@dataclass(frozen=True)
class Content:
    """A report: ``model`` as :meth:`LinearModel.to_dict` gives it, metric means by what they describe.

    ``choice`` says in words how the model was chosen, ``profile`` which conventions the metrics follow.
    """

    title: str
    model: Mapping[str, Any]
    curves: Curves | None = None
    choice: str = ""
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    profile: str = ""
    planted: Planted | None = None

    @property
    def terms(self) -> list[Mapping[str, Any]]:
        """The features in use, the heaviest first."""
        return sorted(self.model["terms"], key=lambda term: -abs(term["weight"]))


def build_content(
    ranker: LinearRanker,
    *,
    title: str = "Sparse ranker",
    choice: str = "",
    evaluations: Mapping[str, Evaluation] | None = None,
    truth: AnyArray | None = None,
) -> Content:
    """The content of a fitted ranker's report.

    Parameters
    ----------
    ranker : LinearRanker
        Fitted; its path, if it has one, is drawn.
    title : str
        Heading of the page.
    choice : str
        How the point of the path was chosen, in words that follow "chosen".
    evaluations : mapping of str to Evaluation, optional
        What was measured, by the words that describe it.
    truth : array, optional
        Planted weights of synthetic data.
    """
    model = ranker.to_model()
    evaluations = evaluations or {}
    measured = {label: dict(evaluation.mean) for label, evaluation in evaluations.items()}
    profile = ", ".join(dict.fromkeys(evaluation.profile.name for evaluation in evaluations.values()))
    planted = None if truth is None else planted_features(truth, ranker)
    return Content(title, model.to_dict(), _curves(ranker), choice, measured, profile, planted)


def planted_features(truth: AnyArray, ranker: LinearRanker) -> Planted:
    """Compare a ranker's nonzero weights with the planted ones."""
    planted, chosen = truth != 0, ranker.coef_ != 0

    def named(mask: AnyArray) -> list[str]:
        return [str(name) for name in ranker.feature_names_in_[mask]]

    return Planted(named(planted & chosen), named(planted & ~chosen), named(~planted & chosen))


def _curves(ranker: Any) -> Curves | None:
    if not hasattr(ranker, "path_"):
        return None
    path, validation = ranker.path_, ranker.validation_
    return Curves(
        alphas=path.alphas.tolist(),
        objectives=path.objectives.tolist(),
        relative_gaps=path.relative_gaps.tolist(),
        n_nonzero=path.n_nonzero.tolist(),
        weights=_weights(path.coefs, ranker.coef_, path.feature_names),
        chosen=ranker.chosen_,
        metric=validation.metric,
        profile=validation.profile,
        mean=validation.mean.tolist(),
        standard_error=validation.standard_error.tolist(),
    )


def _weights(coefs: FloatArray, chosen: FloatArray, names: tuple[str, ...]) -> dict[str, list[float]]:
    """Curves of the chosen features by falling weight, then of the others by their largest weight."""
    largest = np.abs(coefs).max(axis=0)
    order = np.lexsort((-largest, -np.abs(chosen)))
    used = [j for j in order if largest[j] > 0 or chosen[j] != 0]
    return {names[j]: coefs[:, j].tolist() for j in used[:MAX_LINES]}
