"""Penalties on weights. To add a penalty, write a file and add a line to PENALTIES."""

from __future__ import annotations

from typing import Any

from ranksieve.penalties.base import Penalty, ScaledPenalty, SlopedPenalty, Slopes
from ranksieve.penalties.concave import MCP, SCAD, ConcavePenalty, Log, Lp
from ranksieve.penalties.l1 import L1, ElasticNet, L1Ball, NoPenalty, Quadratic, Ridge

PENALTIES: dict[str, Any] = {  # classes of Penalty
    "l1": L1,
    "elastic_net": ElasticNet,
    "ridge": Ridge,
    "l1_ball": L1Ball,
    "log": Log,
    "mcp": MCP,
    "lp": Lp,
    "scad": SCAD,
}


__all__ = [
    "L1",
    "MCP",
    "PENALTIES",
    "SCAD",
    "ConcavePenalty",
    "ElasticNet",
    "L1Ball",
    "Log",
    "Lp",
    "NoPenalty",
    "Penalty",
    "Quadratic",
    "Ridge",
    "ScaledPenalty",
    "SlopedPenalty",
    "Slopes",
]
