"""Page of a scorecard: the card, to print, then an example, the proof and the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranksieve._version import __version__
from ranksieve.data.dataset import Dataset
from ranksieve.explain import explain_query
from ranksieve.metrics import Evaluation
from ranksieve.model.linear import Card, LinearModel
from ranksieve.report.bars import Bar, Bars
from ranksieve.report.explain_page import score_bars
from ranksieve.report.page import render_page
from ranksieve.show.card import DATA_TITLES
from ranksieve.show.explain import card_title, how_to_add_up, preparation_sentences
from ranksieve.show.formats import by_range, metric_text, metric_title, signed
from ranksieve.show.sentences import optimality


@dataclass(frozen=True)
class CardPage:
    """Content of the template.

    ``measured`` says on what; ``data`` give the example; ``unused`` features have 0 points.
    """

    title: str
    model: LinearModel
    card: Card
    evaluations: Mapping[str, Evaluation]
    measured: str = ""
    data: Dataset | None = None
    unused: Sequence[str] = ()

    @property
    def size(self) -> str:
        return card_title(self.model)

    @property
    def lead(self) -> str:
        return how_to_add_up(self.model)

    @property
    def preparation(self) -> list[str]:
        return preparation_sentences(self.model)

    @property
    def tables(self) -> list[Bars]:
        """With curves, the points by range of each feature; else one table with the points per unit."""
        if self.model.has_curves:
            return _ranges(self.model)
        return [Bars("", _by_unit(self.model, self.card), ZERO, ("feature", "points"))]

    @property
    def example(self) -> Bars | None:
        """How the points of the best document of the first query add up."""
        if self.data is None:
            return None
        return score_bars(explain_query(self.model, self.data, self.data.query_ids[0]))

    @property
    def proof(self) -> str:
        return optimality(self.model.certificate, self.model.parameters)

    @property
    def metrics(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows of the metrics."""
        names = list(dict.fromkeys(name for one in self.evaluations.values() for name in one.mean))
        rows = [
            [label, *(metric_text(one.mean[name]) for name in names)]
            for label, one in self.evaluations.items()
        ]
        return [metric_title(name) for name in names], rows

    @property
    def provenance(self) -> list[tuple[str, Any]]:
        data = [(DATA_TITLES.get(name, name), value) for name, value in self.model.data.items()]
        return [("made by", f"ranksieve {self.model.version}"), *data]


ZERO = 50.0  # % of the track
Points = tuple[str, str, float]
"""Name, detail, points."""


def _bars(rows: Sequence[Points], most: float) -> list[Bar]:
    """Bars to both sides of the middle."""
    return [
        Bar(
            name,
            signed(points, 0) if points else "0",
            ZERO - ZERO * max(-points, 0.0) / most,
            ZERO * abs(points) / most,
            "up" if points >= 0 else "down",
            detail,
        )
        for name, detail, points in rows
    ]


def _by_unit(model: LinearModel, card: Card) -> list[Bar]:
    missing = model.preparation.missing
    fills = dict(zip(missing.features, missing.means, strict=True))
    rows = []
    for name in sorted(card.points, key=lambda name: -abs(card.points[name])):
        filled = name in fills and name not in missing.indicators
        detail = f"per {card.units[name]:g}" + (f"; if missing: {fills[name]:.6g}" if filled else "")
        rows.append((name, detail, float(card.points[name])))
    return _bars(rows, max(abs(points) for _, _, points in rows))


def _ranges(model: LinearModel) -> list[Bars]:
    curves = by_range(model.curves)
    most = max(abs(level) for curve in curves.values() for level in (*curve.levels, curve.missing)) or 1.0
    return [
        Bars(name, _bars(list(_points(curve)), most), ZERO, ("value", "points"))
        for name, curve in curves.items()
    ]


def _points(curve: Any) -> Iterator[Points]:
    """One row for each range of values; thresholds with all their digits, since they decide."""
    ends = [repr(end).replace("-", "−") for end in curve.thresholds]
    for k, level in enumerate(curve.levels):
        low, high = ends[k - 1 : k], ends[k : k + 1]
        if low and high:
            text = f"{low[0]} to below {high[0]}"
        elif high:
            text = f"below {high[0]}"
        else:
            text = f"{low[0]} or more" if low else "any value"
        yield text, "", float(level)
    if curve.missing:
        yield "missing", "", float(curve.missing)


def card_page(
    model: LinearModel,
    evaluations: Mapping[str, Evaluation] | None = None,
    measured: str = "",
    *,
    title: str = "Scorecard",
    data: Dataset | None = None,
    unused: Sequence[str] = (),
) -> str:
    """HTML page of a scorecard."""
    assert model.card is not None
    content = CardPage(title, model, model.card, evaluations or {}, measured, data, unused)
    return render_page("card.html.j2", {"figures": {}}, content=content, version=__version__)
