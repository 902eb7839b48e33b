"""Whether features have scales that a penalty on weights can treat alike."""

from __future__ import annotations

import numpy as np

from ranksieve._parallel import split_blocks
from ranksieve._types import FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset
from ranksieve.data.magnitudes import check_features, check_labels
from ranksieve.data.matrix import spread_and_largest

TOO_DIFFERENT = 1000.0  # times the smallest scale


class ScaleWarning(UserWarning):
    """Features have very different scales and are not normalised."""


def warn_of_scales(data: Dataset) -> None:
    """Warn if scales differ more than a thousandfold, naming the features of the largest and the smallest.

    The scale of a feature is its largest range within a query: what differences of scores are made of, and
    for a flag that is rarely set the same as for one that is often set, which a deviation would not be.
    """
    extremes = _extremes(data)
    if extremes is None:
        return
    spread, large, small = extremes
    warn_caller(
        f"the scales of features differ by a factor of {spread[large] / spread[small]:.2g}: within a query "
        f"{data.feature_names[large]} ranges over {spread[large]:.3g}, {data.feature_names[small]} over "
        f"{spread[small]:.3g}; a penalty on weights then prefers features of large scale, because they need "
        "small weights; bring them to one scale with `normalise='auto'`",
        ScaleWarning,
    )


def check_scales(data: Dataset) -> None:
    """Refuse labels or a feature too large to learn from, and a feature that varies too little."""
    check_labels(np.ravel(data.in_parts(_ends_of_labels)))
    spread, largest = np.max(data.in_parts(_spread_and_largest), axis=0)
    check_features(spread, largest, data.feature_names)


def scales_differ(data: Dataset) -> bool:
    """Whether scales differ more than a thousandfold."""
    return _extremes(data) is not None


def _extremes(data: Dataset) -> tuple[FloatArray, int, int] | None:
    """(scales, the feature with the largest, the one with the smallest) if these differ too much."""
    spread = np.max(data.in_parts(_spread_and_largest), axis=0)[0]
    varying = np.flatnonzero(spread > 0)
    if not len(varying):
        return None
    large, small = varying[np.argmax(spread[varying])], varying[np.argmin(spread[varying])]
    return (spread, int(large), int(small)) if spread[large] > TOO_DIFFERENT * spread[small] else None


def _spread_and_largest(data: Dataset) -> FloatArray:
    """The largest range of each feature within a query, and its largest |x|."""
    return np.array(spread_and_largest(data.X, data.queries, split_blocks(data.queries.offsets)))


def _ends_of_labels(data: Dataset) -> FloatArray:
    return np.array([data.y.min(), data.y.max()])
