"""Weights of queries: one number per query, or by query id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve._util.messages import shortened
from ranksieve.data.dataset import Dataset
from ranksieve.data.magnitudes import ENDS, beyond
from ranksieve.errors import ParameterError

QueryWeight: TypeAlias = FloatArray | Mapping[Any, float]
"""One number per query in order of first appearance, or numbers by query id: queries not named weigh 1."""

NAMED = 5  # query ids in a message


def query_weights(weight: QueryWeight | None, data: Dataset) -> FloatArray | None:
    """One finite weight ≥ 0 per query of the data; None stays None.

    Ids that are text, as files have them, also name queries by the text of their ids.
    """
    if weight is None:
        return None
    if isinstance(weight, Mapping):
        weight = _by_id(weight, data.query_ids)
    return checked_query_weight(weight, data.n_queries)


def _by_id(weight: Mapping[Any, float], ids: AnyArray) -> FloatArray:
    known = ids.tolist()
    place = {str(one): k for k, one in enumerate(known)} | {one: k for k, one in enumerate(known)}
    unknown = [repr(one) for one in weight if one not in place]
    if unknown:
        reason = (
            f"names {len(unknown)} queries that the data do not have: {shortened(unknown, NAMED)}; the first "
            f"query of the data is {known[0]!r}"
        )
        raise ParameterError("query_weight", weight, reason)
    weights = np.ones(len(known))
    for one, value in weight.items():
        weights[place[one]] = value
    return weights


def checked_query_weight(weight: FloatArray | None, n_queries: int) -> FloatArray:
    """One finite weight ≥ 0 per query; ones if none are given."""
    if weight is None:
        return np.ones(n_queries)
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n_queries,):
        reason = f"must hold one weight for each of {n_queries} queries, got shape {weight.shape}"
        raise ParameterError("query_weight", weight, reason)
    if not np.isfinite(weight).all() or np.any(weight < 0):
        raise ParameterError("query_weight", weight, "must hold finite numbers ≥ 0")
    if (extreme := beyond(weight)).any():
        raise ParameterError(
            "query_weight", weight, f"holds {weight[extreme][0]:g}; weights must be 0 or {ENDS}"
        )
    return weight
