"""The page of a frontier: what features and cost buy, in words, as a table of steps and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranksieve._version import __version__
from ranksieve.report.frontier_figure import frontier_figure, frontier_steps, paid_in
from ranksieve.report.page import render_page
from ranksieve.report.words import counted, listed, metric_text, metric_title, percent_text

NEARLY = 0.99  # of the best metric


@dataclass(frozen=True)
class FrontierPage:
    """What the template shows."""

    found: Mapping[str, Any]
    title: str = "What features and cost buy"

    @property
    def priced(self) -> bool:
        return paid_in(self.found) == "cost"

    @property
    def metric(self) -> str:
        return metric_title(self.found["metric"])

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        return frontier_steps(self.found)

    @property
    def sentences(self) -> list[str]:
        """The best there is, and the first step that is nearly as good."""
        points, steps = self.found["points"], self.steps
        if not steps:
            return [f"None of the {counted(len(points), 'model')} uses a feature."]
        best, nearly = steps[-1], next(s for s in steps if s["mean"] >= NEARLY * steps[-1]["mean"])
        told = [f"The best held-out {self.metric} is {metric_text(best['mean'])}, with {self._paid(best)}."]
        if nearly is not best:
            share = percent_text(NEARLY)
            told.append(f"{share} of it takes {self._paid(nearly)}: {listed(nearly['features'], 8)}.")
        optimal = sum(point["optimal"] for point in points)
        compared = counted(len(points), "model was", "models were")
        return [*told, f"{compared} compared; {optimal} are best for what they use."]

    def _paid(self, step: Mapping[str, Any]) -> str:
        price = f" at a cost of {step['cost']:g}" if self.priced else ""
        return counted(step["n_features"], "feature") + price


def frontier_page(found: Mapping[str, Any]) -> str:
    """The page as text, of what :meth:`ranksieve.Frontier.to_dict` gives."""
    data = {"figures": {"frontier": frontier_figure(found)}}
    return render_page("frontier.html.j2", data, content=FrontierPage(found), version=__version__)
