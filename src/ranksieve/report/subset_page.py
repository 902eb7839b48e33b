"""The best sets of 1, 2, … features: objective, bound and held-out metric, which features, what is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranksieve._version import __version__
from ranksieve.report.canvas import OTHER, PALETTE, Figure, axis, faint, layout
from ranksieve.report.page import Answer, render_page
from ranksieve.report.subset_words import (
    ROUNDING,
    asked_limits,
    screening_sentences,
    subset_sentence,
    that,
    tie_sentences,
)
from ranksieve.report.words import counted, listed, metric_text, metric_title, percent

HOVER = "{name}\n{x} features: {y:.6g}"
MARKED = "{y}, best set of {x}: weight {data:.4g}"
ROW = 22  # pixels per feature in the picture of the sets


@dataclass(frozen=True)
class SubsetPage:
    """What the template shows."""

    found: Mapping[str, Any]

    @property
    def title(self) -> str:
        first, last = self.sizes[0]["max_features"], self.sizes[-1]["max_features"]
        what = f"{first} to {last} features" if last > first else f"{first} feature{'s' if first > 1 else ''}"
        return f"The best {what} of {self.found['n_features']}"

    @property
    def sizes(self) -> Sequence[Mapping[str, Any]]:
        return self.found["sizes"]  # type: ignore[no-any-return]

    @property
    def metric(self) -> str:
        return metric_title(self.found["metric"])

    @property
    def answers(self) -> list[Answer]:
        """Which size ranks best, what is proven, at what effort."""
        best = max(self.sizes, key=lambda size: size["mean"])
        proven = [size for size in self.sizes if size["relative_gap"] <= ROUNDING]
        widest = max(self.sizes, key=lambda size: size["relative_gap"])
        rest = (
            ""
            if len(proven) == len(self.sizes)
            else f" The widest gap is {percent(widest['relative_gap'])}, at {widest['max_features']}."
        )
        nodes, limits = sum(size["n_nodes"] for size in self.sizes), that(asked_limits(self.found["limits"]))
        return [
            Answer(
                "Which size ranks best?",
                f"{len(best['features'])} features",
                f"Held-out {self.metric} {metric_text(best['mean'])} with {listed(best['features'], 10)}.",
            ),
            Answer(
                "What is proven?",
                f"{len(proven)} of {len(self.sizes)} sizes",
                f"For these sizes no other set{limits} has a lower training objective.{rest}",
            ),
            Answer(
                "At what effort?",
                counted(nodes, "region"),
                "So many regions of sets were bounded, until no bound was below the best set or time was up.",
            ),
        ]

    def sentences(self, size: Mapping[str, Any]) -> list[str]:
        """All that is proven of one size."""
        limits = self.found["limits"]
        proven = [subset_sentence(size, limits)]
        return [*proven, *screening_sentences(size, limits), *tie_sentences(size)]


def subset_page(found: Mapping[str, Any]) -> str:
    """The page as text, of what :func:`ranksieve.cli.subset.subset_data` gives."""
    figures = {
        "objective": _objective_figure(found["sizes"]),
        "metric": _metric_figure(found),
        "sets": _sets_figure(found["sizes"]),
    }
    return render_page("subset.html.j2", {"figures": figures}, content=SubsetPage(found), version=__version__)


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, **options: Any) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": 7},
        "hover": HOVER,
        **options,
    }


def _look(height: int, y: str, **options: Any) -> dict[str, Any]:
    x = axis("features at most", dtick=1)
    return layout(height, showlegend=True, xaxis=x, yaxis=axis(y, **options))


def _objective_figure(sizes: Sequence[Mapping[str, Any]]) -> Figure:
    """Objective of the best set found, the bound that no set is below, and the bound before any split."""
    k = [size["max_features"] for size in sizes]
    bound, objective = [size["bound"] for size in sizes], [size["objective"] for size in sizes]
    lines = [
        {"type": "band", "x": k, "low": bound, "high": objective, "color": faint(PALETTE[1])},
        _line(k, bound, "proven bound of all sets", PALETTE[2]),
        _line(k, objective, "best set found", PALETTE[0]),
        _line(k, [size["root_bound"] for size in sizes], "bound before the first split", OTHER)
        | {"line": {"color": OTHER, "width": 1.5, "dash": "dot"}, "mode": "lines"},
    ]
    return {"data": lines, "layout": _look(360, "training objective")}


def _metric_figure(found: Mapping[str, Any]) -> Figure:
    sizes = found["sizes"]
    k, mean = [size["max_features"] for size in sizes], [size["mean"] for size in sizes]
    errors = [size["standard_error"] for size in sizes]
    line = _line(k, mean, "mean and standard error over queries", PALETTE[0], error_y=errors)
    return {"data": [line], "layout": _look(320, f"held-out {metric_title(found['metric'])}")}


def _sets_figure(sizes: Sequence[Mapping[str, Any]]) -> Figure:
    """One row per feature that a set uses, one column per size."""
    first: dict[str, tuple[int, int]] = {}
    for size in sizes:
        for name in size["features"]:
            known, uses = first.get(name, (size["max_features"], 0))
            first[name] = (known, uses + 1)
    rows = sorted(first, key=lambda name: (first[name][0], -first[name][1], name))
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": words,
            "x": [size["max_features"] for size in sizes for w in size["weights"].values() if sign * w > 0],
            "y": [name for size in sizes for name, w in size["weights"].items() if sign * w > 0],
            "customdata": [w for size in sizes for w in size["weights"].values() if sign * w > 0],
            "marker": {"symbol": symbol, "size": 12, "color": colour},
            "hover": MARKED,
        }
        for words, sign, symbol, colour in (
            ("positive weight", 1, "square", PALETTE[0]),
            ("negative weight", -1, "square-open", PALETTE[3]),
        )
    ]
    names = {"type": "category", "categories": rows[::-1]}
    return {"data": marks, "layout": _look(100 + ROW * len(rows), "", **names)}
