"""What all pages share: answers, the table of features, and rendering into one HTML file without network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from ranksieve._util.messages import how_to_install
from ranksieve.report.canvas import compact
from ranksieve.report.words import certificate, metric_title

EXTRA = f"the HTML report needs plotly and jinja2: {how_to_install('report')}"
WHICH, SURE = "Which features?", "How sure?"
LOST, SIGNIFICANT = "What is lost per query?", "Is it significant?"
MAX_ROWS = 300  # of the widest data only what matters most


@dataclass(frozen=True)
class Answer:
    """A question that a team asks first, its answer in a few words, and the details."""

    question: str
    short: str
    details: str


@dataclass(frozen=True)
class Column:
    """A column of numbers: its key, its heading, how a value is written, and what it means."""

    key: str
    title: str
    write: Callable[[float], str]
    meaning: str


@dataclass(frozen=True)
class FeatureTable:
    """One row per feature with a value for each column.

    ``methods`` holds, for a page where the method can be chosen, its values of the columns that depend on it.
    """

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Mapping[str, float]]]
    n_features: int
    methods: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def largest_weight(self) -> float:
        """The largest |weight|, for the bars."""
        return max((abs(values.get("weight", 0.0)) for _, values in self.rows), default=0.0) or 1.0


def feature_table(columns: Sequence[Column], names: Sequence[str], values: Mapping[str, Any]) -> FeatureTable:
    """Rows by falling |weight|, then by the other columns, at most ``MAX_ROWS``; one array per column.

    A column without values is left out.
    """
    kept = [column for column in columns if column.key in values]
    rows = [
        (name, {column.key: float(values[column.key][j]) for column in kept}) for j, name in enumerate(names)
    ]
    rows.sort(key=lambda row: [-abs(value) for value in row[1].values()])
    return FeatureTable(kept, rows[:MAX_ROWS], len(names))


def require_extra() -> None:
    """Raise an ImportError that says how to install the extra ``report`` unless its packages are there."""
    if find_spec("plotly") is None or find_spec("jinja2") is None:
        raise ImportError(EXTRA)


def render_page(template: str, data: dict[str, Any], *, plots: bool = True, **context: Any) -> str:
    """A template with plotly.js, if it has ``plots``, and the data of its scripts included."""
    require_extra()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("ranksieve.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"certificate": certificate, "metric_title": metric_title}
    return environment.get_template(template).render(
        page_data=compact(data), plotly_js=get_plotlyjs() if plots else "", **context
    )
