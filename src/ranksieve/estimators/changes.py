"""What changed from one model to the next: features, weights, and the queries that are ranked otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.estimators.choice import interval
from ranksieve.estimators.held_out import Validation
from ranksieve.metrics import evaluate
from ranksieve.model import LinearModel

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
