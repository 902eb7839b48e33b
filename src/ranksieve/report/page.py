"""Shared by all pages: figures, formats of numbers, feature tables, gains per query, rendering."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.errors import how_to_install
from ranksieve.metrics.significance import paired_t, randomisation
from ranksieve.show.formats import certificate, metric_title, p_value, plural, signed
from ranksieve.show.sentences import family_title

Figure = dict[str, Any]
# Contrast of at least 3 : 1 on the light and the dark page.
PALETTE = ("#3b8fd6", "#c87b00", "#1ea077", "#d9534f", "#b06ad4", "#259ba8", "#85951a", "#d9669b")
MORE_COLOURS = ("#6b78e0", "#a0724a", "#a88900", "#5f8f8f")
OTHER = "#7f8791"
CHOSEN = PALETTE[3]  # of the chosen model, on all pages
FAMILY_COLOURS = {
    "l1": PALETTE[0], "log": PALETTE[1], "forward": PALETTE[2], "kept": PALETTE[4], "refitted": PALETTE[5],
    "subset": PALETTE[6],
}  # fmt: skip
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot")
WIDE_RANGE = 20.0  # ratio of the largest to the smallest value from which an axis is logarithmic
LEADING_ZERO = re.compile(r"(?<!\d)0\.")
PAGE_DIGITS = 5  # significant digits of numbers in page data
EDGE_DIGITS = 9  # of thresholds, which may be dates or ids


@dataclass(frozen=True)
class Style:
    """Appearance of a method in all figures."""

    title: str
    colour: str
    symbol: str
    dash: str


Styles = Mapping[str, Style]


def make_styles(titles: Mapping[str, str]) -> dict[str, Style]:
    """A colour and a symbol for each name; after twelve colours the dash changes."""
    colours = PALETTE + MORE_COLOURS
    return {
        name: Style(
            title,
            colours[k % len(colours)],
            SYMBOLS[k % len(SYMBOLS)],
            DASHES[k // len(colours) % len(DASHES)],
        )
        for k, (name, title) in enumerate(titles.items())
    }


def base_family(label: str) -> str:
    """A family of candidates without its variant: "l1" of "l1 × cost^1"."""
    head = label.partition(" ")[0]
    return head if head in FAMILY_COLOURS else label


def family_colour(label: str) -> str:
    """Colour of a family of candidates on all pages, the same for its variants."""
    return FAMILY_COLOURS.get(base_family(label), PALETTE[0])


def legend_title(family: str) -> str:
    """Name of a family with its variants."""
    return "path over kept features" if family == "kept" else family_title(family)


def layout(height: int, **parts: Any) -> dict[str, Any]:
    """Layout of a figure; ``height`` is in pixels, without the category names below.

    ``alt`` is the text alternative: what the figure shows, in a sentence.
    """
    return {"height": height, "showlegend": False, **parts}


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis; ``type`` is linear, log or category, ``dtick`` the minimum distance of ticks."""
    return {"title": title, **options}


def log_axis(title: str, **options: Any) -> dict[str, Any]:
    """A logarithmic axis with ticks at powers of ten only."""
    return axis(title, type="log", **options)


def size_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """An axis of numbers of features or costs, logarithmic if a few large ones would squeeze the others."""
    if len(values) and min(values) > 0 and max(values) > WIDE_RANGE * min(values):
        return log_axis(title)
    return axis(title, rangemode="tozero", dtick=int(title == "features"))


def line(x: Iterable[Any], y: Iterable[Any], name: str, colour: str, **options: Any) -> Figure:
    """A line of one colour; ``options`` are added to the trace."""
    look = {"type": "scatter", "mode": "lines", "name": name, "line": {"color": colour, "width": 2}}
    return {**look, "x": list(x), "y": list(y), **options}


def steps(
    edges: Iterable[float], y: Iterable[float], colour: str, fill: bool = False, **options: Any
) -> Figure:
    """A step function that is ``y[k]`` between the edges k and k + 1, or bars; edges keep nine digits."""
    look = {"fill": colour} if fill else {"line": {"color": colour, "width": 2}}
    return {"type": "steps", **look, "x": pack(edges, EDGE_DIGITS), "y": list(y), **options}


def marks(x: Iterable[Any], y: Iterable[Any], name: str, colour: Any, size: int, **options: Any) -> Figure:
    """Markers; ``options`` are added to the trace, ``marker`` to its marker."""
    marker = {"size": size, "color": colour, **options.pop("marker", {})}
    look = {"type": "scatter", "mode": "markers", "name": name, "marker": marker}
    return {**look, "x": list(x), "y": list(y), **options}


def method_line(
    style: Style, name: str, x: Iterable[Any], y: Iterable[Any], size: int = 7, **options: Any
) -> Figure:
    """A line in the style of its method; the legend of the page shows and hides it by ``legendgroup``."""
    look = {"color": style.colour, "dash": style.dash, "width": 2}
    marker = {"color": style.colour, "symbol": style.symbol, "size": size}
    return (
        line(x, y, style.title, style.colour, legendgroup=name) | {"line": look, "marker": marker} | options
    )


def faint(colour: str) -> str:
    """A colour #rrggbb with an opacity of 17 %."""
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.17)"


def pack(values: Iterable[float | None], digits: int = PAGE_DIGITS) -> str:
    """Comma-separated numbers, empty for None, without trailing commas; shorter than JSON."""
    texts = ("" if value is None else f"{value:.{digits}g}" for value in values)
    return ",".join(LEADING_ZERO.sub(".", text) for text in texts).rstrip(",")


def compact(value: Any) -> Any:
    """Convert to JSON types with five significant digits; numbers that are not finite become None."""
    if isinstance(value, np.ndarray | np.generic):
        return compact(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): compact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    if isinstance(value, float):
        short = float(f"{value:.{PAGE_DIGITS}g}") if math.isfinite(value) else None
        return int(short) if short is not None and short == int(short) else short
    return value


INSTALL_HINT = f"the HTML report needs jinja2: {how_to_install('report')}"
WHICH_FEATURES, HOW_SURE = "Which features?", "How sure?"
WHAT_IS_LOST, IS_SIGNIFICANT = "What is lost per query?", "Is it significant?"
MAX_ROWS = 300  # of a feature table
LONGEST_WORD = 16  # characters of a name without a possible line break
ALONE = "in the better direction, averaged over the orders of equal values"


@dataclass(frozen=True)
class Answer:
    """A question, its answer in a few words, and the details."""

    question: str
    short: str
    details: str


@dataclass(frozen=True)
class Column:
    """A column of numbers: key, heading, format of values, and meaning."""

    key: str
    title: str
    write: Callable[[float], str]
    meaning: str


@dataclass(frozen=True)
class FeatureTable:
    """One row per feature with a value for each column.

    ``methods``: values of the columns that depend on the method, if the page has a choice of methods.
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
    """At most ``MAX_ROWS`` rows, sorted by decreasing |weight|, then by the other columns.

    ``values`` has one array per column; columns without values are left out.
    """
    shown = [column for column in columns if column.key in values]
    rows = [
        (name, {column.key: float(values[column.key][j]) for column in shown}) for j, name in enumerate(names)
    ]
    rows.sort(key=lambda row: [-abs(value) for value in row[1].values()])
    return FeatureTable(shown, rows[:MAX_ROWS], len(names))


CONFIDENCE_LEVEL = 0.95
WITHIN_NOISE = "within noise"
TIE_TOLERANCE = 1e-9  # a smaller difference is rounding error


@dataclass(frozen=True)
class Difference:
    """ours − theirs over queries: mean with its 95 % t-interval, wins, ties, losses, p-values.

    The p-values are two-sided, as the interval is, so that they agree with it.
    """

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p_t: float
    p_randomisation: float

    @property
    def verdict(self) -> str:
        """Significance, by whether the interval contains 0."""
        if self.low <= 0.0 <= self.high:
            return WITHIN_NOISE
        return "significantly better" if self.mean > 0 else "significantly worse"


@dataclass(frozen=True, eq=False)
class Gains:
    """Values of one metric per query: of the baseline, and of methods by name (title, values).

    ``guided``: True if the methods were selected on these queries, which favours them. ``texts``: texts of
    queries by id.
    """

    metric: str
    where: str
    baseline: str
    query_ids: Sequence[Any]
    theirs: FloatArray
    ours: Mapping[str, tuple[str, FloatArray]]
    guided: bool = False
    texts: Mapping[Any, str] = field(default_factory=dict)

    def page_data(self) -> dict[str, Any]:
        """Plain data for the page, which draws the bars of the method selected there."""
        return {
            "metric": self.metric,
            "baseline": self.baseline,
            "queries": [str(query) for query in self.query_ids],
            "texts": [self.texts.get(query, "") for query in self.query_ids] if self.texts else [],
            "theirs": self.theirs,
            "methods": {
                name: {"title": title, "changed": self._changed(ours)}
                for name, (title, ours) in self.ours.items()
            },
            "figure": gains_figure(self.metric),
        }

    def _changed(self, ours: FloatArray) -> str:
        """The value of each query, empty if it equals the baseline's."""
        equal = np.abs(ours - self.theirs) <= TIE_TOLERANCE
        return pack(None if same else value for value, same in zip(ours, equal, strict=True))


def difference(ours: AnyArray, theirs: AnyArray) -> Difference:
    """Paired comparison over the queries that have both values."""
    change = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    change = change[~np.isnan(change)]
    return Difference(
        *mean_with_interval(change),
        int(np.sum(change > TIE_TOLERANCE)),
        int(np.sum(np.abs(change) <= TIE_TOLERANCE)),
        int(np.sum(change < -TIE_TOLERANCE)),
        paired_t(ours, theirs),
        randomisation(ours, theirs),
    )


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """Mean over queries and its 95 % t-interval, mean ± t_{0.975, n−1}·s/√n."""
    from scipy.stats import t

    values = values[~np.isnan(values)]
    n, mean, half = len(values), float(values.mean()), np.inf
    if n > 1:
        half = float(t.ppf(0.5 + CONFIDENCE_LEVEL / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def gain_answers(gains: Gains, name: str, change: Difference) -> list[Answer]:
    """Numbers of queries that a method wins and loses, the worst of them, and the significance."""
    per_query = gains.ours[name][1] - gains.theirs
    worst = int(np.nanargmin(per_query))
    details = (
        f"{gains.where.capitalize()}, against {gains.baseline}: {plural(change.wins, 'query', 'queries')} "
        f"better, {change.ties} equal, {change.losses} worse."
    )
    if per_query[worst] < 0:
        details += f" Worst: query {gains.query_ids[worst]} with {signed(per_query[worst], 2)}."
    lost = Answer(WHAT_IS_LOST, f"{signed(change.mean)} {metric_title(gains.metric)}", details)
    return [lost, significance_answer(change, gains.guided)]


def significance_answer(change: Difference, guided: bool = False) -> Answer:
    """Mean difference with its interval and tests; ``guided``: the model was selected on these queries."""
    interval = f"{signed(change.low)} to {signed(change.high)}"
    details = (
        f"Mean difference {signed(change.mean)} (95 % CI {interval}). "
        f"Two-sided: {p_value(change.p_t)} (t-test), {p_value(change.p_randomisation)} (randomisation)."
    )
    if not guided:
        return Answer(IS_SIGNIFICANT, change.verdict, details)
    short = "no fair test" if "better" in change.verdict else change.verdict
    warning = (
        "The model was selected on these queries, which favours it; use test data for a fair comparison."
    )
    return Answer(IS_SIGNIFICANT, short, f"{warning} {details}")


def gains_figure(metric: str) -> Figure:
    """Figure with one bar per query; the page adds the bars of the selected method."""
    hover = "query {data.0}: {y:+.4f}\n{data.1:.4f} against {data.2:.4f}"
    axes = {
        "xaxis": axis("queries that differ, by decreasing gain", showgrid=False, dtick=1),
        "yaxis": axis(f"change in {metric_title(metric)}", zeroline=True),
    }
    return {"data": [{"type": "bar", "gap": 0, "hover": hover}], "layout": layout(320, **axes)}


def sort_value(cell: Any) -> str:
    """Sort key of a table cell; empty if its text can be used."""
    try:
        float(cell.text.replace("−", "-").removesuffix(" %"))
        sorts_by_text = not cell.marks
    except ValueError:
        sorts_by_text = isinstance(cell.value, str)
    return "" if sorts_by_text or cell.value is None else f"{cell.value:.6g}"


def breakable(name: str) -> Any:
    """A name that lines break after its separators, and after each ``LONGEST_WORD`` characters, as HTML."""
    from markupsafe import Markup

    parts = re.findall(rf"[^\W_]{{1,{LONGEST_WORD}}}[\W_]?|[\W_]", name)
    return Markup("<wbr>").join(parts)


def digest(script: str) -> str:
    """Hash of a script for the page's content security policy, which blocks all other scripts."""
    return b64encode(sha256(script.encode()).digest()).decode()


def require_extra() -> None:
    """Raise an ImportError with installation instructions unless jinja2 is installed."""
    if find_spec("jinja2") is None:
        raise ImportError(INSTALL_HINT)


def render_page(template: str, data: dict[str, Any], **context: Any) -> str:
    """Render a template with the data of its scripts; the text is the same on every run."""
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
        "breakable": breakable, "certificate": certificate, "digest": digest, "metric_title": metric_title,
        "signed": signed, "sort_value": sort_value,
    }  # fmt: skip
    return environment.get_template(template).render(page_data=with_shared_parts(compact(data)), **context)


def with_shared_parts(data: dict[str, Any]) -> dict[str, Any]:
    """Store styles and x values that several traces share only once."""
    looks: dict[str, int] = {}
    lists: dict[str, int] = {}

    def index_of(part: Any, indices: dict[str, int]) -> int:
        return indices.setdefault(json.dumps(part), len(indices))

    def shorten(trace: dict[str, Any]) -> dict[str, Any]:
        own = ("x", "yaxis")  # x may be packed
        values = {key: value for key, value in trace.items() if isinstance(value, list) or key in own}
        look = {key: value for key, value in trace.items() if key not in values}
        x = {"x": index_of(values.pop("x"), lists)} if "x" in values else {}
        return {"look": index_of(look, looks), **values, **x}

    def figure(whole: dict[str, Any]) -> dict[str, Any]:
        return {**whole, "data": [shorten(trace) for trace in whole["data"]]}

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
