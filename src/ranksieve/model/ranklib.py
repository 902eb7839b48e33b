"""RankLib model files: ``## NAME``, free ``##`` lines, then the model; lines of numbers, or trees in XML."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.errors import DataError, lookup
from ranksieve.io.letor import LARGEST_INDEX
from ranksieve.io.text_files import content_lines, finite_number
from ranksieve.model.score_functions import (
    ForeignModel,
    Network,
    ScoreFunction,
    Scorer,
    Stumps,
    Tree,
    TreeBuilder,
    WeightedSum,
    linear_model,
)

HEADER = "##"
LONGEST_TITLE = 40
ROOT = "forest"
SIDES = ("left", "right")
Place: TypeAlias = tuple[str, int | None]
"""A file and the number of a line, if it is known."""


def read_ranklib(text: str, name: str, feature_names: Sequence[str] | None) -> Scorer:
    """A RankLib model; the first line tells the ranker."""
    title = text.split("\n", 1)[0].removeprefix(HEADER).strip()[:LONGEST_TITLE]
    try:
        read = lookup(RANKERS, title.lower(), "ranker")
    except ValueError as error:
        raise DataError(name, 1, str(error)) from None
    return read(Source(text, name, f"RankLib {title}", feature_names))


@dataclass(frozen=True)
class Source:
    """A model file: text, name for messages, the ranker's name, and the names of the columns."""

    text: str
    name: str
    method: str
    feature_names: Sequence[str] | None

    @cached_property
    def lines(self) -> list[tuple[Place, str]]:
        """(place, line) below the header, without comments at the end of a line."""
        pairs = ((place, line.partition("#")[0]) for place, line in content_lines(self.text, self.name))
        return [(place, line) for place, line in pairs if line]

    def line(self, number: int) -> tuple[Place, str]:
        """The line of that number (from 0) below the header."""
        if number >= len(self.lines):
            raise DataError(self.name, None, f"the {self.method} model breaks off; write the file again")
        return self.lines[number]

    def linear(self, weights: dict[int, float], intercept: float = 0.0) -> Scorer:
        """The linear model of weights by feature number (from 1)."""
        dense = np.zeros(max(weights, default=0))
        for feature, weight in weights.items():
            dense[feature - 1] = weight
        return linear_model(dense, self.method, self.feature_names, intercept)

    def other(self, function: ScoreFunction) -> Scorer:
        """A model that is not linear."""
        return ForeignModel(function, self.method, max(function.n_features, len(self.feature_names or ())))


def whole(word: str, place: Place, what: str, least: int) -> int:
    """A whole number from ``least`` to the largest number of a feature."""
    digits = word.lstrip("0") or word[:1]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < LONGEST_TITLE else -1
    if not least <= number <= LARGEST_INDEX:
        raise DataError(
            *place, f"the {what} is {word[:40]!r}; expected an integer from {least} to {LARGEST_INDEX}"
        )
    return number


# Lines of numbers


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


def _round(triple: str, place: Place) -> tuple[int, float, float]:
    parts = triple.split(":")
    if len(parts) != 3:
        raise DataError(*place, f"{triple[:40]!r} is not a weak ranker; expected feature:threshold:weight")
    feature = whole(parts[0], place, "feature number", 1) - 1
    return feature, finite_number(parts[1], place, "threshold"), finite_number(parts[2], place, "weight")


# Neural networks: RankNet, LambdaRank, ListNet


def _network(source: Source) -> Scorer:
    """Feature numbers; the number of hidden layers; their sizes; then ``layer neuron weight …``.

    The weights of a neuron lead to the next layer. The last input neuron is the bias, whose weights lead to
    all neurons of all layers. Without a hidden layer the score σ(w·x + b) ranks like w·x + b, which is
    what we keep.
    """
    place, line = source.line(0)
    features = [whole(word, place, "feature number", 1) for word in line.split()]
    if len(set(features)) < len(features):
        raise DataError(*place, "a feature occurs twice among the inputs; write the file again")
    n_hidden = _size(source, 1, "number of hidden layers", least=0)
    hidden = [_size(source, 2 + k, "number of neurons", least=1) for k in range(n_hidden)]
    weights, biases = _layers(source, 2 + n_hidden, [len(features), *hidden, 1])
    if not hidden:
        return source.linear(dict(zip(features, weights[0][:, 0].tolist(), strict=True)), float(biases[0][0]))
    return source.other(Network(np.array(features) - 1, weights, biases))


def _size(source: Source, number: int, what: str, least: int) -> int:
    place, line = source.line(number)
    return whole(line.strip(), place, what, least)


def _layers(
    source: Source, start: int, sizes: list[int]
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Weights (from × to) and biases of each layer."""
    neurons = ((layer, j) for layer in range(len(sizes) - 1) for j in range(sizes[layer] + (layer == 0)))
    bias = (0, sizes[0])
    links = {}
    for number, neuron in enumerate(neurons, start=start):
        n_links = sum(sizes[1:]) if neuron == bias else sizes[neuron[0] + 1]
        links[neuron] = _links(source, number, neuron, n_links)
    weights = (np.array([links[layer, j] for j in range(size)]) for layer, size in enumerate(sizes[:-1]))
    return tuple(weights), tuple(np.split(np.array(links[bias]), np.cumsum(sizes[1:-1])))


def _links(source: Source, number: int, neuron: tuple[int, int], n_links: int) -> list[float]:
    place, line = source.line(number)
    words = line.split()
    if words[:2] != [str(part) for part in neuron] or len(words) != n_links + 2:
        raise DataError(
            *place,
            f"{line[:40]!r} should give the {n_links} weights of neuron {neuron[1]} of layer "
            f"{neuron[0]}; expected: layer neuron weight …",
        )
    return [finite_number(word, place, "weight") for word in words[2:]]


# Trees: MART, LambdaMART and Random Forests, in XML


def _boosted(source: Source) -> Scorer:
    """One ensemble: Σ weight · tree, rounded to float32 after each addition as RankLib does."""
    ensembles = _ensembles(source)
    if len(ensembles) > 1:
        raise DataError(source.name, None, f"a {source.method} model has one ensemble, not {len(ensembles)}")
    return source.other(ensembles[0])


def _bags(source: Source) -> Scorer:
    """The mean of the ensembles of all bags."""
    bags = _ensembles(source)
    return source.other(WeightedSum.plain(bags, divisor=len(bags)))


def _ensembles(source: Source) -> list[WeightedSum]:
    """The first header line becomes a root around them, so lines keep their numbers."""
    lines = ["" if line.startswith(HEADER) else line for line in source.text.split("\n")]
    try:
        forest = ElementTree.fromstring("\n".join([f"<{ROOT}>", *lines[1:], f"</{ROOT}>"]))
    except ElementTree.ParseError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(source.name, error.position[0], f"damaged XML ({reason})") from None
    ensembles, place = list[WeightedSum](), (source.name, None)
    for ensemble in _parts(forest, "ensemble", place):
        trees = _parts(ensemble, "tree", place)
        weights = tuple(_single(tree.get("weight"), place, "weight of the tree") for tree in trees)
        functions = tuple(_tree(tree, place) for tree in trees)
        ensembles.append(WeightedSum(functions, weights, dtype=np.float32))
    return ensembles


def _parts(element: Element, tag: str, place: Place) -> list[Element]:
    """What is inside, at least one and all of one kind."""
    for part in element:
        if part.tag != tag:
            raise DataError(*place, f"<{part.tag[:40]}> cannot be inside <{element.tag}> of a RankLib model")
    if not len(element):
        raise DataError(*place, f"the {element.tag} has no {tag}; write the file again")
    return list(element)


def _tree(element: Element, place: Place) -> Tree:
    """A split holds either ``output``, or ``feature``, ``threshold`` and two splits, the left one first."""
    root, *others = _parts(element, "split", place)
    if others:
        raise DataError(*place, "a tree has more than one split at its root")
    builder, waiting = TreeBuilder(), list[tuple[Element, int | None]]([(root, None)])
    while waiting:
        split, parent = waiting.pop()
        node, below = builder.node(parent), split.findall("split")
        texts = {part.tag: part.text for part in split if part.tag != "split"}
        sides = tuple(part.get("pos", side) for part, side in zip(below, SIDES, strict=False))
        if texts.keys() == {"output"} and not below:
            builder.number[node] = _single(texts["output"], place, "output")
        elif texts.keys() == {"feature", "threshold"} and len(below) == 2 and sides == SIDES:
            builder.feature[node] = whole((texts["feature"] or "").strip(), place, "feature number", 1) - 1
            builder.number[node] = _single(texts["threshold"], place, "threshold")
            waiting += [(below[1], node), (below[0], node)]
        else:
            reason = "a split needs either an output, or a feature, a threshold, a left and a right split"
            raise DataError(*place, reason)
    return builder.tree()


def _single(text: str | None, place: Place, what: str) -> float:
    """A number as float32."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(finite_number((text or "").strip(), place, what)))
    if math.isinf(rounded):
        raise DataError(*place, f"the {what} is {text}, which is too large for 32-bit numbers")
    return rounded


RANKERS: dict[str, Callable[[Source], Scorer]] = {
    "coordinate ascent": _weighted_features,
    "adarank": _weighted_features,
    "linear regression": _linear_regression,
    "rankboost": _rank_boost,
    "ranknet": _network,
    "lambdarank": _network,
    "listnet": _network,
    "mart": _boosted,
    "lambdamart": _boosted,
    "random forests": _bags,
}
