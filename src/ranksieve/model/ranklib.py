"""RankLib model files: ``## NAME``, ``##`` comments, then the model as lines of numbers or XML trees."""

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
    StumpSum,
    Tree,
    TreeBuilder,
    WeightedSum,
    linear_model_from_weights,
)

RANKLIB_PREFIX = "##"
MAX_TITLE_LENGTH = 40
ROOT = "forest"
SIDES = ("left", "right")
Location: TypeAlias = tuple[str, int | None]
"""File name and, if known, line number."""


def read_ranklib(text: str, name: str, feature_names: Sequence[str] | None) -> Scorer:
    """Read a RankLib model; the first line names the ranker."""
    title = text.split("\n", 1)[0].removeprefix(RANKLIB_PREFIX).strip()[:MAX_TITLE_LENGTH]
    try:
        read = lookup(RANKERS, title.lower(), "ranker")
    except ValueError as error:
        raise DataError(name, 1, str(error)) from None
    return read(RankLibSource(text, name, f"RankLib {title}", feature_names))


@dataclass(frozen=True)
class RankLibSource:
    """Text of a model file, its name for messages, the ranker's name, and the names of the columns."""

    text: str
    name: str
    method: str
    feature_names: Sequence[str] | None

    @cached_property
    def lines(self) -> list[tuple[Location, str]]:
        """(location, line) below the header, without trailing comments."""
        pairs = ((location, line.partition("#")[0]) for location, line in content_lines(self.text, self.name))
        return [(location, line) for location, line in pairs if line]

    def line(self, number: int) -> tuple[Location, str]:
        """Line ``number`` (from 0) below the header, with its location."""
        if number >= len(self.lines):
            raise DataError(self.name, None, f"the {self.method} model is truncated; write the file again")
        return self.lines[number]

    def linear(self, weights: dict[int, float], intercept: float = 0.0) -> Scorer:
        """Make a linear model from weights by feature number (from 1)."""
        dense = np.zeros(max(weights, default=0))
        for feature, weight in weights.items():
            dense[feature - 1] = weight
        return linear_model_from_weights(dense, self.method, self.feature_names, intercept)

    def nonlinear(self, function: ScoreFunction) -> Scorer:
        return ForeignModel(function, self.method, max(function.n_features, len(self.feature_names or ())))


def parse_integer(word: str, location: Location, what: str, least: int) -> int:
    """Parse an integer from ``least`` to the largest feature number."""
    digits = word.lstrip("0") or word[:1]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < MAX_TITLE_LENGTH else -1
    if not least <= number <= LARGEST_INDEX:
        raise DataError(
            *location, f"the {what} is {word[:40]!r}; expected an integer from {least} to {LARGEST_INDEX}"
        )
    return number


# Lines of numbers


def _weighted_features(source: RankLibSource) -> Scorer:
    """``feature:weight …``; weights of a repeated feature, as in AdaRank's rounds, are added."""
    return source.linear(_weights(source, least=1))


def _linear_regression(source: RankLibSource) -> Scorer:
    """``0:constant feature:weight …``.

    RankLib writes the first feature's weight as the constant, and the constant as the weight of the last
    feature. It reads the file back literally, and so do we.
    """
    weights = _weights(source, least=0)
    intercept = weights.pop(0, 0.0)
    return source.linear(weights, intercept)


def _weights(source: RankLibSource, least: int) -> dict[int, float]:
    weights: dict[int, float] = {}
    location, line = source.line(0)
    for pair in line.split():
        feature, _, weight = pair.partition(":")
        number = parse_integer(feature, location, "feature number", least)
        weights[number] = weights.get(number, 0.0) + finite_number(weight, location, f"weight of {feature}")
    return weights


def _rank_boost(source: RankLibSource) -> Scorer:
    """``feature:threshold:weight …``: Σ weight · [x > threshold]."""
    location, line = source.line(0)
    rounds = [_round(triple, location) for triple in line.split()]
    feature, threshold, weight = (np.array(column) for column in zip(*rounds, strict=True))
    return source.nonlinear(StumpSum(feature, threshold, weight))


def _round(triple: str, location: Location) -> tuple[int, float, float]:
    parts = triple.split(":")
    if len(parts) != 3:
        raise DataError(*location, f"{triple[:40]!r} is not a weak ranker; expected feature:threshold:weight")
    feature = parse_integer(parts[0], location, "feature number", 1) - 1
    return (
        feature,
        finite_number(parts[1], location, "threshold"),
        finite_number(parts[2], location, "weight"),
    )


# Neural networks: RankNet, LambdaRank, ListNet


def _network(source: RankLibSource) -> Scorer:
    """Feature numbers; the number of hidden layers; their sizes; then ``layer neuron weight …``.

    The weights of a neuron connect it to the next layer. The last input neuron is the bias, which is
    connected to all neurons of all layers. Without a hidden layer, σ(w·x + b) ranks like w·x + b, so the
    model becomes linear.
    """
    location, line = source.line(0)
    features = [parse_integer(word, location, "feature number", 1) for word in line.split()]
    if len(set(features)) < len(features):
        raise DataError(*location, "an input feature occurs twice; write the file again")
    n_hidden = _size(source, 1, "number of hidden layers", least=0)
    hidden = [_size(source, 2 + k, "number of neurons", least=1) for k in range(n_hidden)]
    weights, biases = _layers(source, 2 + n_hidden, [len(features), *hidden, 1])
    if not hidden:
        return source.linear(dict(zip(features, weights[0][:, 0].tolist(), strict=True)), float(biases[0][0]))
    return source.nonlinear(Network(np.array(features) - 1, weights, biases))


def _size(source: RankLibSource, number: int, what: str, least: int) -> int:
    location, line = source.line(number)
    return parse_integer(line.strip(), location, what, least)


def _layers(
    source: RankLibSource, start: int, sizes: list[int]
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


def _links(source: RankLibSource, number: int, neuron: tuple[int, int], n_links: int) -> list[float]:
    location, line = source.line(number)
    words = line.split()
    if words[:2] != [str(part) for part in neuron] or len(words) != n_links + 2:
        raise DataError(
            *location,
            f"expected layer, neuron and the {n_links} weights of neuron {neuron[1]} of layer {neuron[0]}, "
            f"got {line[:40]!r}",
        )
    return [finite_number(word, location, "weight") for word in words[2:]]


# Trees: MART, LambdaMART and Random Forests, in XML


def _boosted(source: RankLibSource) -> Scorer:
    """One ensemble: Σ weight · tree, rounded to float32 after each addition, as in RankLib."""
    ensembles = _ensembles(source)
    if len(ensembles) > 1:
        raise DataError(source.name, None, f"a {source.method} model has one ensemble, not {len(ensembles)}")
    return source.nonlinear(ensembles[0])


def _bags(source: RankLibSource) -> Scorer:
    """The mean of the ensembles of all bags."""
    bags = _ensembles(source)
    return source.nonlinear(WeightedSum.plain(bags, divisor=len(bags)))


def _ensembles(source: RankLibSource) -> list[WeightedSum]:
    """Parse the XML; the root element replaces the first header line, so that line numbers stay correct."""
    lines = ["" if line.startswith(RANKLIB_PREFIX) else line for line in source.text.split("\n")]
    try:
        forest = ElementTree.fromstring("\n".join([f"<{ROOT}>", *lines[1:], f"</{ROOT}>"]))
    except ElementTree.ParseError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(source.name, error.position[0], f"damaged XML ({reason})") from None
    ensembles, location = list[WeightedSum](), (source.name, None)
    for ensemble in _parts(forest, "ensemble", location):
        trees = _parts(ensemble, "tree", location)
        weights = tuple(_float32(tree.get("weight"), location, "weight of the tree") for tree in trees)
        functions = tuple(_tree(tree, location) for tree in trees)
        ensembles.append(WeightedSum(functions, weights, dtype=np.float32))
    return ensembles


def _parts(element: Element, tag: str, location: Location) -> list[Element]:
    """Children of an element: at least one, all with the same tag."""
    for part in element:
        if part.tag != tag:
            raise DataError(
                *location, f"<{part.tag[:40]}> cannot be inside <{element.tag}> of a RankLib model"
            )
    if not len(element):
        raise DataError(*location, f"the {element.tag} has no {tag}; write the file again")
    return list(element)


def _tree(element: Element, location: Location) -> Tree:
    """A split has either ``output``, or ``feature``, ``threshold`` and two splits, the left one first."""
    root, *others = _parts(element, "split", location)
    if others:
        raise DataError(*location, "a tree has more than one split at its root")
    builder, stack = TreeBuilder(), list[tuple[Element, int | None]]([(root, None)])
    while stack:
        split, parent = stack.pop()
        node, children = builder.node(parent), split.findall("split")
        texts = {part.tag: part.text for part in split if part.tag != "split"}
        sides = tuple(part.get("pos", side) for part, side in zip(children, SIDES, strict=False))
        if texts.keys() == {"output"} and not children:
            builder.number[node] = _float32(texts["output"], location, "output")
        elif texts.keys() == {"feature", "threshold"} and len(children) == 2 and sides == SIDES:
            builder.feature[node] = (
                parse_integer((texts["feature"] or "").strip(), location, "feature number", 1) - 1
            )
            builder.number[node] = _float32(texts["threshold"], location, "threshold")
            stack += [(children[1], node), (children[0], node)]
        else:
            reason = "a split needs either an output, or a feature, a threshold, a left and a right split"
            raise DataError(*location, reason)
    return builder.tree()


def _float32(text: str | None, location: Location, what: str) -> float:
    """Parse a number and round it to float32."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(finite_number((text or "").strip(), location, what)))
    if math.isinf(rounded):
        raise DataError(*location, f"the {what} is {text}, too large for 32-bit numbers")
    return rounded


RANKERS: dict[str, Callable[[RankLibSource], Scorer]] = {
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
