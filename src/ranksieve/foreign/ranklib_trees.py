"""RankLib's tree ensembles: MART, LambdaMART and Random Forests, in XML."""

from __future__ import annotations

import math
from collections.abc import Callable
from xml.parsers import expat

import numpy as np

from ranksieve.foreign.model import Scorer
from ranksieve.foreign.parts import LEAF, Tree, WeightedSum
from ranksieve.foreign.ranklib_source import HEADER, Source, whole
from ranksieve.foreign.tree_builder import TreeBuilder
from ranksieve.formats.text_files import finite_number

ROOT = "forest"
PARENTS = {
    "ensemble": (ROOT,),
    "tree": ("ensemble",),
    "split": ("tree", "split"),
    "feature": ("split",),
    "threshold": ("split",),
    "output": ("split",),
}
SIDES = ("left", "right")


def read_boosted(source: Source) -> Scorer:
    """One ensemble: Σ weight · tree, rounded to float32 after each addition as RankLib does."""
    ensembles = _EnsembleReader(source).read()
    if len(ensembles) > 1:
        raise ValueError(f"{source.name}: a {source.method} model has one ensemble, not {len(ensembles)}")
    return source.other(ensembles[0])


def read_bags(source: Source) -> Scorer:
    """The mean of the ensembles of all bags."""
    bags = _EnsembleReader(source).read()
    return source.other(WeightedSum(bags, (1.0,) * len(bags), divisor=len(bags)))


def _single(text: str, place: str, what: str) -> float:
    """A number as float32."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(finite_number(text, place, what)))
    if math.isinf(rounded):
        raise ValueError(f"{place}: the {what} is {text}, which is too large for 32-bit numbers")
    return rounded


class _EnsembleReader:
    """Reads ``<ensemble><tree weight><split>…`` with the line of whatever is wrong.

    A split holds either ``output``, or ``feature``, ``threshold`` and two splits, the left one first.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.ensembles: list[WeightedSum] = []
        self.trees: list[tuple[Tree, float]] = []
        self.weight, self.text = 0.0, ""
        self.tags: list[str] = []
        self.builder = TreeBuilder()
        self.open: list[int] = []

    @property
    def place(self) -> str:
        return f"{self.source.name}:{self.parser.CurrentLineNumber}"

    def read(self) -> tuple[WeightedSum, ...]:
        """All ensembles; the first header line becomes a root around them, so lines keep their numbers."""
        lines = ["" if line.startswith(HEADER) else line for line in self.source.text.split("\n")]
        try:
            self.parser.Parse("\n".join([f"<{ROOT}>", *lines[1:], f"</{ROOT}>"]), True)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            raise ValueError(f"{self.source.name}:{error.lineno}: damaged XML ({reason})") from None
        if not self.ensembles:
            raise ValueError(f"{self.source.name}: holds no ensemble of trees; write the file again")
        return tuple(self.ensembles)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.tags and self.tags[-1] not in PARENTS.get(tag, ()):
            raise ValueError(f"{self.place}: <{tag}> cannot stand in <{self.tags[-1]}> of a RankLib model")
        self.tags.append(tag)
        self.text = ""
        if tag == "tree":
            self.weight = _single(attributes.get("weight", ""), self.place, "weight of the tree")
            self.builder, self.open = TreeBuilder(), []
        if tag == "split":
            self._check_side(attributes)
            self.open.append(self.builder.node(self.open[-1] if self.open else None))

    def _check_side(self, attributes: dict[str, str]) -> None:
        """One root a tree; below a split the left one and then the right one."""
        before = len(self.builder.children[self.open[-1]]) if self.open else 2 * len(self.builder.feature)
        side = attributes.get("pos", SIDES[min(before, 1)])
        if before > 1 or side != SIDES[before]:
            raise ValueError(
                f"{self.place}: a tree has one split, and a split one left and then one right split, so none "
                f"for {side!r} is expected here"
            )

    def _end(self, tag: str) -> None:
        self.tags.pop()
        if tag in ENDINGS:
            ENDINGS[tag](self)

    def _characters(self, text: str) -> None:
        self.text += text

    def _feature(self) -> None:
        self.builder.feature[self.open[-1]] = whole(self.text.strip(), self.place, "feature number", 1) - 1

    def _number(self) -> None:
        self.builder.number[self.open[-1]] = _single(self.text.strip(), self.place, "threshold or output")

    def _split(self) -> None:
        node = self.open.pop()
        n_splits = 0 if self.builder.feature[node] == LEAF else 2
        if len(self.builder.children[node]) != n_splits or math.isnan(self.builder.number[node]):
            raise ValueError(
                f"{self.place}: a split needs either an output, or a feature, a threshold and two splits"
            )

    def _tree(self) -> None:
        if not self.builder.feature:
            raise ValueError(f"{self.place}: the tree has no split; write the file again")
        self.trees.append((self.builder.tree(), self.weight))

    def _ensemble(self) -> None:
        if not self.trees:
            raise ValueError(f"{self.place}: the ensemble has no tree; write the file again")
        trees, weights = zip(*self.trees, strict=True)
        self.ensembles.append(WeightedSum(trees, weights, dtype=np.float32))
        self.trees = []


ENDINGS: dict[str, Callable[[_EnsembleReader], None]] = {
    "feature": _EnsembleReader._feature,
    "threshold": _EnsembleReader._number,
    "output": _EnsembleReader._number,
    "split": _EnsembleReader._split,
    "tree": _EnsembleReader._tree,
    "ensemble": _EnsembleReader._ensemble,
}
