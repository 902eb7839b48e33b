"""Losses: functions of scores, never of features. One file and one line here adds a loss."""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.losses.average_precision import AveragePrecisionHinge
from ranksieve.losses.base import BoundLoss, Loss, ScoreValue
from ranksieve.losses.cost_sensitive_listmle import CostSensitiveListMLE
from ranksieve.losses.hinge import Hinge
from ranksieve.losses.listnet import ListNetLoss
from ranksieve.losses.modified_huber import ModifiedHuber
from ranksieve.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, Callable[[], Loss]] = {
    "squared_hinge": SquaredHinge,
    "hinge": Hinge,
    "average_precision": AveragePrecisionHinge,
    "cost_sensitive_listmle": CostSensitiveListMLE,
    "modified_huber": ModifiedHuber,
    "listnet": ListNetLoss,
}

__all__ = [
    "LOSSES",
    "AveragePrecisionHinge",
    "BoundLoss",
    "CostSensitiveListMLE",
    "Hinge",
    "ListNetLoss",
    "Loss",
    "ModifiedHuber",
    "ScoreValue",
    "SquaredHinge",
]
