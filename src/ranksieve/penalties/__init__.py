"""Penalties on weights. One file and one line here adds a penalty."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.penalties.base import Penalty, SlopedPenalty, Slopes
from ranksieve.penalties.l1 import L1, ElasticNet
from ranksieve.penalties.ridge import Ridge

PENALTIES: dict[str, Callable[..., SlopedPenalty]] = {
    "l1": L1,
    "elastic_net": ElasticNet,
    "ridge": Ridge,
}

__all__ = ["L1", "PENALTIES", "ElasticNet", "Penalty", "Ridge", "SlopedPenalty", "Slopes"]
