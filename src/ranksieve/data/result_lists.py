"""Scores within result lists: the normalisations of hybrid search.

A feature is a clause: the score of each document that the clause returned, NaN for the others. These get 0
after normalisation, as in the engines, whatever the statistics of the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranksieve._types import AnyArray, FloatArray, IntArray

RRF_K = 60  # the default of the engines
MAX_K = 10_000  # of OpenSearch
OPENSEARCH_FLOOR = 0.001  # the processor replaces 0 by it
RECIPROCAL = re.compile(r"(reciprocal_rank|reciprocal)@([1-9]\d{0,4})")


@dataclass(frozen=True)
class ListScaling:
    """Function of the scores of one clause, grouped by query, with NaN for documents not returned.

    ``scale`` gets (scores of the returned documents, first row of each list, list of each row).
    """

    scale: Callable[[FloatArray, IntArray, IntArray], FloatArray]

    def apply(self, values: FloatArray, query: IntArray) -> FloatArray:
        """Scale columns whose rows are grouped by ``query``; 0 where a document was not returned."""
        scaled = np.zeros(values.shape)
        for column, result in zip(values.T, scaled.T, strict=True):
            returned = np.flatnonzero(~np.isnan(column))
            if len(returned):
                of_list = query[returned]
                starts = np.flatnonzero(np.diff(of_list, prepend=-1))
                of_row = np.cumsum(np.diff(of_list, prepend=-1) != 0) - 1
                result[returned] = self.scale(column[returned].astype(np.float64), starts, of_row)
        return scaled


def _min_max(flat: float | None, floor: float = 0.0) -> ListScaling:
    """(s − min)/(max − min), at least ``floor``; ``flat`` if all scores are equal, None: the score itself."""

    def scale(scores: FloatArray, starts: IntArray, of_row: IntArray) -> FloatArray:
        low, high = np.minimum.reduceat(scores, starts)[of_row], np.maximum.reduceat(scores, starts)[of_row]
        width = high - low
        scaled = (scores - low) / np.where(width > 0, width, 1.0)
        at_flat = scores if flat is None else np.full(len(scores), flat)
        return np.where(width > 0, np.where(scaled == 0, floor, scaled), at_flat)

    return ListScaling(scale)


def _l2(scores: FloatArray, starts: IntArray, of_row: IntArray) -> FloatArray:
    """s/√Σs²; 0 if all scores are 0."""
    norm = np.sqrt(np.add.reduceat(scores * scores, starts))[of_row]
    return np.asarray(scores / np.where(norm > 0, norm, 1.0))


def _z(clipped: bool) -> ListScaling:
    """(s − mean)/deviation, 0 for equal scores; ``clipped``: OpenSearch's, 1 at the mean, 0.001 below it."""

    def scale(scores: FloatArray, starts: IntArray, of_row: IntArray) -> FloatArray:
        count = np.bincount(of_row)[of_row]
        low, high = np.minimum.reduceat(scores, starts)[of_row], np.maximum.reduceat(scores, starts)[of_row]
        mean = np.where(low == high, low, np.add.reduceat(scores, starts)[of_row] / count)
        deviation = np.sqrt(np.add.reduceat((scores - mean) ** 2, starts)[of_row] / count)
        scaled = (scores - mean) / np.where(deviation > 0, deviation, 1.0)
        if not clipped:
            return np.asarray(scaled)
        return np.where(scores == mean, 1.0, np.where(scaled <= 0, OPENSEARCH_FLOOR, scaled))

    return ListScaling(scale)


def _reciprocal_rank(k: int) -> ListScaling:
    """1/(k + rank) by descending score; documents with equal scores get the mean over their ranks.

    An engine gives them these ranks in the order of its index, which is arbitrary.
    """

    def scale(scores: FloatArray, starts: IntArray, of_row: IntArray) -> FloatArray:
        order = np.lexsort((-scores, of_row))
        rank = np.arange(len(scores)) - starts[of_row] + 1  # of the documents in order
        ordered, lists = scores[order], of_row[order]
        new = np.concatenate(([True], (np.diff(ordered) != 0) | (np.diff(lists) != 0)))
        group = np.cumsum(new) - 1
        means = np.bincount(group, 1.0 / (k + rank)) / np.bincount(group)
        result = np.empty(len(scores))
        result[order] = means[group]
        return result

    return ListScaling(scale)


def _reciprocal(k: int) -> ListScaling:
    """1/(k + x), where x is the rank itself."""
    return ListScaling(lambda ranks, starts, of_row: 1.0 / (k + ranks))


LIST_SCALINGS: dict[str, ListScaling] = {
    "list_min_max": _min_max(1.0),
    "list_min_max@elasticsearch": _min_max(None),
    "list_min_max@opensearch": _min_max(1.0, OPENSEARCH_FLOOR),
    "list_l2": ListScaling(_l2),
    "list_z": _z(clipped=False),
    "list_z@opensearch": _z(clipped=True),
}
RECIPROCAL_KINDS = {"reciprocal_rank": _reciprocal_rank, "reciprocal": _reciprocal}


def list_scaling(kind: str) -> ListScaling | None:
    """The normalisation of hybrid search with this name; None for other names.

    ``reciprocal_rank@k`` is 1/(k + rank) by score, ``reciprocal@k`` the same for features that are ranks.
    """
    match = RECIPROCAL.fullmatch(kind)
    if match is None or int(match[2]) > MAX_K:
        return LIST_SCALINGS.get(kind)
    return RECIPROCAL_KINDS[match[1]](int(match[2]))


def rank_constant(kind: str) -> int | None:
    """k of a reciprocal rank; None for other kinds."""
    match = RECIPROCAL.fullmatch(kind)
    return None if match is None else int(match[2])


def scale_lists(kind: str, grouped: AnyArray, query: IntArray) -> FloatArray:
    scaling = list_scaling(kind)
    assert scaling is not None
    return scaling.apply(grouped, query)
