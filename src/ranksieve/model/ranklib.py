"""RankLib model files: ``## NAME``, free ``##`` lines, then weights in one line, or trees in XML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np

from ranksieve._util.messages import lookup
from ranksieve.errors import DataError
from ranksieve.io.letor import LARGEST_INDEX
from ranksieve.io.text_files import content_lines, finite_number
from ranksieve.model.score_functions import LEAF, ForeignModel, Scorer, Tree, WeightedSum, linear_model

HEADER = "##"
LONGEST_TITLE = 40
ROOT = "forest"
SIDES = ("left", "right")
LINEAR, TREES, BAGS = "weights of features", "one ensemble of trees", "the mean of several ensembles"
RANKERS = {
    "coordinate ascent": LINEAR,
    "adarank": LINEAR,
    "mart": TREES,
    "lambdamart": TREES,
    "random forests": BAGS,
}
Place: TypeAlias = tuple[str, int | None]
"""A file and the number of a line, if it is known."""


def read_ranklib(text: str, name: str, feature_names: Sequence[str] | None) -> Scorer:
    """A RankLib model; the first line tells the ranker."""
    title = text.split("\n", 1)[0].removeprefix(HEADER).strip()[:LONGEST_TITLE]
    try:
        kind = lookup(RANKERS, title.lower(), "ranker")
    except ValueError as error:
        raise DataError(name, 1, str(error)) from None
    method = f"RankLib {title}"
    if kind == LINEAR:
        weights = _weights(text, name)
        dense = np.zeros(max(weights))
        for feature, weight in weights.items():
            dense[feature - 1] = weight
        return linear_model(dense, method, feature_names)
    ensembles = _ensembles(text, (name, None))
    if kind == TREES and len(ensembles) > 1:
        raise DataError(name, None, f"a {method} model has one ensemble, not {len(ensembles)}")
    function = WeightedSum.plain(ensembles, divisor=len(ensembles))
    return ForeignModel(function, method, max(function.n_features, len(feature_names or ())))


def _weights(text: str, name: str) -> dict[int, float]:
    """``feature:weight …``; a feature that comes twice, as in AdaRank's rounds, adds up."""
    lines = ((place, line.partition("#")[0]) for place, line in content_lines(text, name))
    place, line = next(((place, line) for place, line in lines if line), ((name, None), ""))
    weights: dict[int, float] = {}
    for pair in line.split():
        feature, _, weight = pair.partition(":")
        number = _feature(feature, place)
        weights[number] = weights.get(number, 0.0) + finite_number(weight, place, f"weight of {feature}")
    if not weights:
        raise DataError(name, None, "the RankLib model breaks off; write the file again")
    return weights


def _feature(word: str, place: Place) -> int:
    """The number of a feature, from 1."""
    digits = word.lstrip("0") or word[:1]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < LONGEST_TITLE else -1
    if not 1 <= number <= LARGEST_INDEX:
        raise DataError(
            *place, f"the feature number is {word[:40]!r}; expected an integer from 1 to {LARGEST_INDEX}"
        )
    return number


def _ensembles(text: str, place: Place) -> list[WeightedSum]:
    """Each Σ weight · tree, rounded to float32 after each addition as RankLib does.

    The first header line becomes a root around them, so lines keep their numbers.
    """
    lines = ["" if line.startswith(HEADER) else line for line in text.split("\n")]
    try:
        forest = ElementTree.fromstring("\n".join([f"<{ROOT}>", *lines[1:], f"</{ROOT}>"]))
    except ElementTree.ParseError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(place[0], error.position[0], f"damaged XML ({reason})") from None
    ensembles = []
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
    splits, feature, number, children = [root], list[int](), list[float](), list[tuple[int, int]]()
    for split in splits:  # which grows: both children of a split join it
        below = split.findall("split")
        texts = {part.tag: part.text for part in split if part.tag != "split"}
        sides = tuple(part.get("pos", side) for part, side in zip(below, SIDES, strict=False))
        if texts.keys() == {"output"} and not below:
            feature.append(LEAF)
            number.append(_single(texts["output"], place, "output"))
            children.append((0, 0))
        elif texts.keys() == {"feature", "threshold"} and len(below) == 2 and sides == SIDES:
            feature.append(_feature((texts["feature"] or "").strip(), place) - 1)
            number.append(_single(texts["threshold"], place, "threshold"))
            children.append((len(splits), len(splits) + 1))
            splits += below
        else:
            reason = "a split needs either an output, or a feature, a threshold, a left and a right split"
            raise DataError(*place, reason)
    left, right = np.array(children, dtype=np.int64).T
    return Tree(np.array(feature), np.array(number), left, right, np.array(number))


def _single(text: str | None, place: Place, what: str) -> float:
    """A number as float32."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(finite_number((text or "").strip(), place, what)))
    if math.isinf(rounded):
        raise DataError(*place, f"the {what} is {text}, which is too large for 32-bit numbers")
    return rounded
