"""What a data set holds: what is worth a look, labels and list lengths, each feature with its histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksieve._version import __version__
from ranksieve.report.inspect_words import between
from ranksieve.report.page import MAX_ROWS, Answer, render_page
from ranksieve.report.words import counted, metric_title, percent_text

FLAGS = {"constant": "constant", "constant_within_queries": "constant within queries"}
DOWN = "↓"
LEAST_HEIGHT = 0.4


@dataclass(frozen=True)
class Bar:
    """A value or range, how many have it, and which share of all that is."""

    name: str
    count: int
    share: float


@dataclass(frozen=True)
class InspectPage:
    """What the template shows."""

    found: Mapping[str, Any]
    source: str

    @property
    def title(self) -> str:
        return f"What {Path(self.source).name} holds"

    @property
    def metric(self) -> str:
        return metric_title(self.found["metric"])

    @property
    def answers(self) -> list[Answer]:
        """How much there is, what is learned from, what is missing."""
        found = self.found
        lengths = f"{found['list_length_min']} to {found['list_length_max']}"
        without = found["n_queries_without_pairs"]
        partly = sum(one["missing"] > 0 for one in found["features"])
        return [
            Answer(
                "How much?",
                f"{found['n_docs']:,} documents",
                f"{found['n_queries']:,} queries of {lengths} documents, {found['list_length_median']:g} in "
                f"the median; {found['n_features']} features.",
            ),
            Answer(
                "What is learned from?",
                f"{found['n_pairs']:,} pairs",
                "Pairs of documents of one query with different labels; "
                f"{counted(without, 'query has', 'queries have')} none.",
            ),
            Answer(
                "What is missing?",
                percent_text(found["n_missing"] / (found["n_docs"] * found["n_features"])) + " of the values",
                f"{partly} of {found['n_features']} features have missing values; "
                f"{percent_text(found['zero_share'])} of all values are 0.",
            ),
        ]

    @property
    def between(self) -> str:
        return between(self.found)

    @property
    def labels(self) -> list[Bar]:
        """How often each label occurs."""
        return _bars(list(self.found["label_counts"].items()))

    @property
    def lengths(self) -> list[Bar]:
        """How many queries have lists of these lengths."""
        return _bars([(_range(*ends), count) for *ends, count in self.found["list_lengths"]])

    @property
    def features(self) -> list[Mapping[str, Any]]:
        """The features that rank best alone first."""
        ranked = sorted(self.found["features"], key=lambda one: -one["metric"])
        return [{**one, "flag": _flag(one), "bars": _heights(one["histogram"])} for one in ranked[:MAX_ROWS]]


def inspect_page(found: Mapping[str, Any], source: str) -> str:
    """The page of what ``ranksieve inspect --json`` prints."""
    content = InspectPage(found, source)
    return render_page("inspect.html.j2", {"figures": {}}, content=content, version=__version__, down=DOWN)


def _bars(counts: Sequence[tuple[str, int]]) -> list[Bar]:
    total = sum(count for _, count in counts)
    return [Bar(str(name), count, count / total) for name, count in counts[:MAX_ROWS]]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _flag(one: Mapping[str, Any]) -> str:
    return next((words for name, words in FLAGS.items() if one[name]), "")


def _heights(counts: Sequence[int]) -> list[float]:
    """Heights of the bars of a histogram from 0 to 10, by square roots, so that rare values can be seen."""
    most = max(counts, default=0)
    return [max(10 * math.sqrt(count / most), LEAST_HEIGHT) if count else 0.0 for count in counts]
