"""What the features of a model cost."""

from __future__ import annotations

from typing import Any

import numpy as np


def paid_for(ranker: Any) -> list[tuple[str, float, list[str]]]:
    """What the features in use cost, each group once, the dearest first; nothing without costs."""
    costs = getattr(ranker, "costs_", None)
    if costs is None:
        return []
    names = [ranker._names()[j] for j in ranker.support_]
    columns = costs.columns(names, subset=True)
    units = dict.fromkeys(columns.unit.tolist())
    paid = [
        (columns.labels[u], float(columns.prices[u]), [names[j] for j in np.flatnonzero(columns.unit == u)])
        for u in units
    ]
    return sorted(paid, key=lambda one: -one[1])
