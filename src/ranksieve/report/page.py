"""What all pages share: figures, wording of numbers, tables of features, rendering."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksieve._util.messages import how_to_install
from ranksieve.metrics.profiles import STANDARD

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation


Figure = dict[str, Any]
PALETTE = ("#3b8fd6", "#e08a00", "#1fa37a", "#d9534f", "#b06ad4", "#2bb5c4", "#8a9a1b", "#d9669b")
MORE = ("#6b78e0", "#a0724a", "#c9a400", "#5f8f8f")
OTHER = "#9aa0a8"
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot")
LEADING_ZERO = re.compile(r"(?<!\d)0\.")
DIGITS = 5  # significant, in what a page holds


@dataclass(frozen=True)
class Style:
    """How a method looks in all pictures."""

    title: str
    colour: str
    symbol: str
    dash: str


Styles = Mapping[str, Style]


def make_styles(titles: Mapping[str, str]) -> dict[str, Style]:
    """A colour and a symbol for each name; beyond the twelve colours the dash changes."""
    colours = PALETTE + MORE
    return {
        name: Style(
            title,
            colours[k % len(colours)],
            SYMBOLS[k % len(SYMBOLS)],
            DASHES[k // len(colours) % len(DASHES)],
        )
        for k, (name, title) in enumerate(titles.items())
    }


def layout(height: int, **parts: Any) -> dict[str, Any]:
    """Axes and what else a figure has beside its traces; ``height`` is in pixels, without names below."""
    return {"height": height, "showlegend": False, **parts}


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis; ``type`` is linear, log or category, ``dtick`` the least distance of ticks."""
    return {"title": title, **options}


def log_axis(title: str, **options: Any) -> dict[str, Any]:
    """A logarithmic axis with ticks at powers of ten only."""
    return axis(title, type="log", **options)


def method_line(
    style: Style, name: str, x: Iterable[Any], y: Iterable[Any], size: int = 7, **options: Any
) -> Figure:
    """A line in the colour of its method; the page's legend shows and hides it by ``legendgroup``."""
    return {
        "type": "scatter", "mode": "lines", "name": style.title, "legendgroup": name,
        "x": list(x), "y": list(y),
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": size},
        **options,
    }  # fmt: skip


def faint(colour: str) -> str:
    """A colour #rrggbb with an opacity of 17 %."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.17)"


def packed(values: Iterable[float | None], digits: int = DIGITS) -> str:
    """Numbers with commas between them, nothing for None and at the end; shorter than JSON."""
    written = ("" if value is None else f"{value:.{digits}g}" for value in values)
    return ",".join(LEADING_ZERO.sub(".", text) for text in written).rstrip(",")


def compact(value: Any) -> Any:
    """As JSON holds it, with five significant digits; what is not finite becomes None."""
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, float):
        short = float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        return int(short) if short is not None and short == int(short) else short
    return value


ROUNDING = 1e-14  # below this a relative gap is rounding error of float64
FAR = 0.1  # above this a relative gap proves nothing of use


def percent(share: float) -> str:
    """A share as a percentage with two significant digits and no exponent: 9.2e-7 -> "0.000092 %"."""
    return np.format_float_positional(100.0 * share, precision=2, fractional=False, trim="-") + " %"


def percent_text(share: float) -> str:
    """0.254 -> "25 %"."""
    return f"{100.0 * share:.0f} %"


def certificate(relative_gap: float | None) -> str:
    """What a relative duality gap proves; None: the method has none."""
    if relative_gap is None:
        return "without a proof of how near the best possible objective it is"
    if relative_gap <= ROUNDING:
        return "equal to the best possible objective up to rounding"
    if relative_gap > FAR:
        return f"not proved to be near the best possible objective (gap {percent(relative_gap)})"
    return f"within {percent(relative_gap)} of the best possible objective"


def metric_title(metric: str) -> str:
    """ndcg@10 -> NDCG@10."""
    return metric.upper()


def metric_text(value: float) -> str:
    """Four decimals."""
    return f"{value:.4f}"


def p_value(p: float) -> str:
    """Two significant digits, and no zero."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def signed(value: float, digits: int = 4) -> str:
    """With its sign, a true minus, and no sign before a rounded zero."""
    written = f"{value:+.{digits}f}"
    return written[1:] if float(written) == 0.0 else written.replace("-", "−")


def weight_text(value: float) -> str:
    """A weight with five significant digits."""
    return f"{value:+.5g}".replace("-", "−") if value else "0"


def share_text(value: float) -> str:
    """A weight of a model that is scaled to Σ|w| = 1, with four decimals."""
    return signed(value) if value else "0"


def counted(count: int, noun: str, plural: str = "") -> str:
    """1 query, 2 queries."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """f1, f2 and f3; of many the first few and how many more."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def short_lists(evaluation: Evaluation) -> str:
    """How many lists are too short to count, and for which metrics; nothing if none is."""
    if not evaluation.too_short:
        return ""
    counts, metrics = list(evaluation.too_short.values()), list(evaluation.too_short)
    one = counts == [1]
    return (
        f"{listed([str(count) for count in counts])} of {len(evaluation.query_ids)} queries "
        f"{'has' if one else 'have'} fewer than {listed([name.partition('@')[2] for name in metrics])} "
        f"documents; the {evaluation.profile.name} profile counts {'its' if one else 'their'} "
        f"{listed([metric_title(name) for name in metrics])} as 0 ({STANDARD.name} does not)."
    )


EXTRA = f"the HTML report needs jinja2: {how_to_install('report')}"
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


def sort_value(cell: Any) -> str:
    """What a cell of a table is sorted by, if its text does not do."""
    try:
        float(cell.text.replace("−", "-").removesuffix(" %"))
        told = not cell.marks
    except ValueError:
        told = isinstance(cell.value, str)
    return "" if told or cell.value is None else f"{cell.value:.6g}"


def digest(script: str) -> str:
    """What a page's policy names a script by, so that no other one runs."""
    return b64encode(sha256(script.encode()).digest()).decode()


def require_extra() -> None:
    """Raise an ImportError that says how to install the extra ``report`` unless jinja2 is there."""
    if find_spec("jinja2") is None:
        raise ImportError(EXTRA)


def render_page(template: str, data: dict[str, Any], **context: Any) -> str:
    """A template with the data of its scripts included; the same text on every run."""
    require_extra()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ranksieve.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {
        "certificate": certificate, "digest": digest, "metric_title": metric_title, "sort_value": sort_value
    }  # fmt: skip
    return environment.get_template(template).render(page_data=with_shared_parts(compact(data)), **context)


def with_shared_parts(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a page with what several traces share, looks and x values, written once."""
    looks: dict[str, int] = {}
    lists: dict[str, int] = {}

    def place(part: Any, places: dict[str, int]) -> int:
        return places.setdefault(json.dumps(part), len(places))

    def shorter(trace: dict[str, Any]) -> dict[str, Any]:
        own = {key: value for key, value in trace.items() if isinstance(value, list) or key == "yaxis"}
        look = {key: value for key, value in trace.items() if key not in own}
        x = {"x": place(own.pop("x"), lists)} if "x" in own else {}
        return {"look": place(look, looks), **own, **x}

    def figure(whole: dict[str, Any]) -> dict[str, Any]:
        return {**whole, "data": [shorter(trace) for trace in whole["data"]]}

    figures = {name: figure(whole) for name, whole in data["figures"].items()}
    explorers = {
        name: [{**path, "figure": figure(path["figure"])} for path in paths]
        for name, paths in data.get("explorers", {}).items()
    }
    shared = {
        "looks": [json.loads(look) for look in looks],
        "lists": [json.loads(values) for values in lists],
    }
    return {**data, "figures": figures, "explorers": explorers, **shared}
