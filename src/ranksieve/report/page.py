"""What all pages share: figures, wording of numbers, tables of features, gains of queries, rendering."""

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

from ranksieve._types import AnyArray, FloatArray
from ranksieve.errors import how_to_install
from ranksieve.metrics.profiles import STANDARD
from ranksieve.metrics.significance import paired_t, randomisation

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


def line(x: Iterable[Any], y: Iterable[Any], name: str, colour: str, **options: Any) -> Figure:
    """A line of one colour; ``options`` are added to the trace."""
    look = {"type": "scatter", "mode": "lines", "name": name, "line": {"color": colour, "width": 2}}
    return {**look, "x": list(x), "y": list(y), **options}


def marks(x: Iterable[Any], y: Iterable[Any], name: str, colour: Any, size: int, **options: Any) -> Figure:
    """Single points; ``options`` are added to the trace, ``marker`` to its marker."""
    marker = {"size": size, "color": colour, **options.pop("marker", {})}
    look = {"type": "scatter", "mode": "markers", "name": name, "marker": marker}
    return {**look, "x": list(x), "y": list(y), **options}


def method_line(
    style: Style, name: str, x: Iterable[Any], y: Iterable[Any], size: int = 7, **options: Any
) -> Figure:
    """A line in the colour of its method; the page's legend shows and hides it by ``legendgroup``."""
    look = {"color": style.colour, "dash": style.dash, "width": 2}
    marker = {"color": style.colour, "symbol": style.symbol, "size": size}
    return (
        line(x, y, style.title, style.colour, legendgroup=name) | {"line": look, "marker": marker} | options
    )


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


LEVEL = 0.95  # of intervals
WITHIN_NOISE = "within noise"
TIE = 1e-9  # a smaller difference is rounding error


@dataclass(frozen=True)
class Difference:
    """ours − theirs over queries: mean with its t-interval at 95 %, wins, ties, losses, p-values.

    ``p_t`` and ``p_randomisation`` are two-sided; those that end in ``_greater`` are one-sided, as in the
    papers: is ours better?
    """

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    p_t: float
    p_randomisation: float
    p_t_greater: float
    p_randomisation_greater: float

    @property
    def verdict(self) -> str:
        """Whether the interval holds 0."""
        if self.low <= 0.0 <= self.high:
            return WITHIN_NOISE
        return "significantly better" if self.mean > 0 else "significantly worse"


@dataclass(frozen=True, eq=False)
class Gains:
    """Values of one metric, query by query: of the baseline, and of methods by name (title, values).

    ``guided`` tells that the methods were chosen on these queries, which favours them. ``texts`` are the
    words of queries by their ids.
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
        """Plain data for the page, which draws the bars of the method that is chosen there."""
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
        """The value of each query, nothing where it is the baseline's."""
        equal = np.abs(ours - self.theirs) <= TIE
        return packed(None if same else value for value, same in zip(ours, equal, strict=True))


def difference(ours: AnyArray, theirs: AnyArray) -> Difference:
    """Paired comparison over the queries for which both have a value."""
    change = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    change = change[~np.isnan(change)]
    return Difference(
        *mean_with_interval(change),
        int(np.sum(change > TIE)),
        int(np.sum(np.abs(change) <= TIE)),
        int(np.sum(change < -TIE)),
        paired_t(ours, theirs),
        randomisation(ours, theirs),
        paired_t(ours, theirs, "greater"),
        randomisation(ours, theirs, alternative="greater"),
    )


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean over queries and its t-interval at 95 %, mean ± t_{0.975, n−1}·s/√n."""
    from scipy.stats import t

    known = values[~np.isnan(values)]
    n, mean, half = len(known), float(known.mean()), np.inf
    if n > 1:
        half = float(t.ppf(0.5 + LEVEL / 2, n - 1) * known.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def gain_answers(gains: Gains, name: str, change: Difference) -> list[Answer]:
    """How many queries a method wins and loses with the worst of them, and whether that is significant."""
    per_query = gains.ours[name][1] - gains.theirs
    worst = int(np.nanargmin(per_query))
    details = (
        f"{gains.where.capitalize()}, against {gains.baseline}: {counted(change.wins, 'query', 'queries')} "
        f"better, {change.ties} equal, {change.losses} worse."
    )
    if per_query[worst] < 0:
        details += f" Worst: query {gains.query_ids[worst]} with {signed(per_query[worst], 2)}."
    lost = Answer(LOST, f"{signed(change.mean)} {metric_title(gains.metric)}", details)
    return [lost, significance_answer(change, gains.guided)]


def significance_answer(change: Difference, guided: bool = False) -> Answer:
    """The interval of the mean difference, and the tests; ``guided`` if these queries guided the choice."""
    interval = f"{signed(change.low)} to {signed(change.high)}"
    details = (
        f"Mean difference {signed(change.mean)}, 95 % interval {interval}. "
        f"Two-sided: {p_value(change.p_t)} (paired t), {p_value(change.p_randomisation)} (randomisation). "
        f"One-sided as in the papers, is it better: {p_value(change.p_t_greater)}, "
        f"{p_value(change.p_randomisation_greater)}."
    )
    if not guided:
        return Answer(SIGNIFICANT, change.verdict, details)
    short = "no fair test here" if "better" in change.verdict else change.verdict
    warning = "The choice was made on these queries, which favours the chosen model; test queries would tell."
    return Answer(SIGNIFICANT, short, f"{warning} {details}")


def gains_figure(metric: str) -> Figure:
    """One bar per query, without the bars: the page fills in those of the method that is chosen."""
    hover = "query {data.0}: {y:+.4f}\n{data.1:.4f} against {data.2:.4f}"
    axes = {
        "xaxis": axis("queries that differ, by falling gain", showgrid=False, dtick=1),
        "yaxis": axis(f"change of {metric_title(metric)}", zeroline=True),
    }
    return {"data": [{"type": "bar", "gap": 0, "hover": hover}], "layout": layout(320, **axes)}


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
