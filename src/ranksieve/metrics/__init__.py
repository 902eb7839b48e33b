"""Ranking metrics, profiles of metric conventions, and evaluation per query."""

from ranksieve.metrics.evaluate import Evaluation, Evaluator, evaluate
from ranksieve.metrics.profiles import PROFILES, Profile, profile_for
from ranksieve.metrics.table import METRICS, Metric, MetricSpec, parse

__all__ = [
    "METRICS",
    "PROFILES",
    "Evaluation",
    "Evaluator",
    "Metric",
    "MetricSpec",
    "Profile",
    "evaluate",
    "parse",
    "profile_for",
]
