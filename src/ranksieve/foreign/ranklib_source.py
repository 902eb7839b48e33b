"""The text of a RankLib model and the words in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ranksieve.foreign.model import ForeignModel, Scorer, linear_model
from ranksieve.foreign.parts import Part
from ranksieve.formats.text_files import content_lines

HEADER = "##"


@dataclass(frozen=True)
class Source:
    """A model file: text, name for messages, the ranker's name, and the names of the columns."""

    text: str
    name: str
    method: str
    feature_names: Sequence[str] | None

    @cached_property
    def lines(self) -> list[tuple[str, str]]:
        """(place, line) below the header, without comments at the end of a line."""
        pairs = ((place, line.partition("#")[0]) for place, line in content_lines(self.text, self.name))
        return [(place, line) for place, line in pairs if line]

    def line(self, number: int) -> tuple[str, str]:
        """The line of that number (from 0) below the header."""
        if number >= len(self.lines):
            raise ValueError(f"{self.name}: the {self.method} model breaks off; write the file again")
        return self.lines[number]

    def linear(self, weights: dict[int, float], intercept: float = 0.0) -> Scorer:
        """The linear model of weights by feature number (from 1)."""
        dense = np.zeros(max(weights, default=0))
        for feature, weight in weights.items():
            dense[feature - 1] = weight
        return linear_model(dense, self.method, self.feature_names, intercept)

    def other(self, part: Part) -> Scorer:
        """A model that is not linear."""
        return ForeignModel(part, self.method, max(part.n_features, len(self.feature_names or ())))


def whole(word: str, place: str, what: str, least: int) -> int:
    """A whole number of at least ``least``."""
    number = int(word) if word.isascii() and word.isdecimal() else -1
    if number < least:
        raise ValueError(f"{place}: the {what} is {word[:40]!r}; expected a whole number from {least} on")
    return number
