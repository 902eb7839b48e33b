"""Penalties on weights. One file and one line here adds a penalty."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.penalties.base import Penalty, SlopedPenalty, Slopes
from ranksieve.penalties.concave import MCP, SCAD, ConcavePenalty, Log, Lp
from ranksieve.penalties.l1 import L1, ElasticNet
from ranksieve.penalties.l1_ball import L1Ball
from ranksieve.penalties.ridge import Ridge

PENALTIES: dict[str, Callable[..., SlopedPenalty]] = {
    "l1": L1,
    "elastic_net": ElasticNet,
    "ridge": Ridge,
}

CONCAVE_PENALTIES: dict[str, Callable[..., ConcavePenalty]] = {
    "log": Log,
    "mcp": MCP,
    "lp": Lp,
    "scad": SCAD,
}

__all__ = [
    "CONCAVE_PENALTIES",
    "L1",
    "PENALTIES",
    "ConcavePenalty",
    "ElasticNet",
    "L1Ball",
    "Penalty",
    "Ridge",
    "SlopedPenalty",
    "Slopes",
]
