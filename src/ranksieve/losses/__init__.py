"""Losses: functions of scores, never of features. To add a loss, write a file and add a line to LOSSES."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.losses.base import PAIR_WEIGHTINGS, BoundLoss, Loss, ScoreValue
from ranksieve.losses.cost_sensitive_listmle import CostSensitiveListMLE
from ranksieve.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, Callable[[], Loss]] = {
    "squared_hinge": SquaredHinge,
    "cost_sensitive_listmle": CostSensitiveListMLE,
}

__all__ = [
    "LOSSES",
    "PAIR_WEIGHTINGS",
    "BoundLoss",
    "CostSensitiveListMLE",
    "Loss",
    "ScoreValue",
    "SquaredHinge",
]
