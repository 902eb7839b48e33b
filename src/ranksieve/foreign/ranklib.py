"""RankLib model files: ``## NAME``, free ``##`` lines, then the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranksieve._util.lookup import lookup
from ranksieve.foreign.model import Scorer
from ranksieve.foreign.parts import Stumps
from ranksieve.foreign.ranklib_nets import read_network
from ranksieve.foreign.ranklib_source import HEADER, Source, whole
from ranksieve.foreign.ranklib_trees import read_bags, read_boosted
from ranksieve.formats.text_files import finite_number


def read_ranklib(text: str, name: str, feature_names: Sequence[str] | None) -> Scorer:
    """A RankLib model; the first line tells the ranker."""
    title = text.split("\n", 1)[0].removeprefix(HEADER).strip()
    try:
        read = lookup(RANKERS, title.lower(), "RankLib ranker")
    except ValueError as error:
        raise ValueError(f"{name}:1: {error}") from None
    return read(Source(text, name, f"RankLib {title}", feature_names))


def _weighted_features(source: Source) -> Scorer:
    """``feature:weight …``; a feature that comes twice, as in AdaRank's rounds, adds up."""
    return source.linear(_weights(source, least=1))


def _linear_regression(source: Source) -> Scorer:
    """``0:constant feature:weight …``.

    RankLib writes the first feature's weight in the place of the constant, and the constant as the weight
    of the last feature. What it reads back, and what we read, is what the file says.
    """
    weights = _weights(source, least=0)
    intercept = weights.pop(0, 0.0)
    return source.linear(weights, intercept)


def _weights(source: Source, least: int) -> dict[int, float]:
    weights: dict[int, float] = {}
    place, line = source.line(0)
    for pair in line.split():
        feature, _, weight = pair.partition(":")
        number = whole(feature, place, "feature number", least)
        weights[number] = weights.get(number, 0.0) + finite_number(weight, place, f"weight of {feature}")
    return weights


def _rank_boost(source: Source) -> Scorer:
    """``feature:threshold:weight …``: Σ weight · [x > threshold]."""
    place, line = source.line(0)
    rounds = [_round(triple, place) for triple in line.split()]
    feature, threshold, weight = (np.array(column) for column in zip(*rounds, strict=True))
    return source.other(Stumps(feature, threshold, weight))


def _round(triple: str, place: str) -> tuple[int, float, float]:
    parts = triple.split(":")
    if len(parts) != 3:
        raise ValueError(f"{place}: {triple[:40]!r} is no weak ranker; expected feature:threshold:weight")
    feature = whole(parts[0], place, "feature number", 1) - 1
    return feature, finite_number(parts[1], place, "threshold"), finite_number(parts[2], place, "weight")


RANKERS: dict[str, Callable[[Source], Scorer]] = {
    "coordinate ascent": _weighted_features,
    "adarank": _weighted_features,
    "linear regression": _linear_regression,
    "rankboost": _rank_boost,
    "ranknet": read_network,
    "lambdarank": read_network,
    "listnet": read_network,
    "mart": read_boosted,
    "lambdamart": read_boosted,
    "random forests": read_bags,
}
