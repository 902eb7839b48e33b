"""Figures of the pages drawn elsewhere: by matplotlib, and in notebooks as on the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from ranksieve.errors import how_to_install
from ranksieve.report.page import OTHER, Figure, compact, digest, pack
from ranksieve.show.result import escape_controls

NEEDS_MATPLOTLIB = "plots need matplotlib: {}; plot(interactive=True) needs nothing"
MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "triangle-down": "v", "star": "*",
    "pentagon": "p", "x": "X",
}  # fmt: skip
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
RGBA = re.compile(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)")
PIXELS = 100.0  # per inch


def pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError that says how to install it."""
    if find_spec("matplotlib") is None:
        raise ImportError(NEEDS_MATPLOTLIB.format(how_to_install("plot")))
    from matplotlib import pyplot as plt

    return plt


def draw(figure: Figure, ax: Any = None) -> Any:
    """Draw a figure on axes of matplotlib, by default new ones, and return them.

    A figure with several panels is drawn on axes inside them.
    """
    plt = pyplot()
    look = figure["layout"]
    if ax is None:
        _, ax = plt.subplots(figsize=(7.2, look["height"] / PIXELS), layout="constrained")
    panels = _panels(look, ax)
    for trace in figure["data"]:
        panel = panels[_panel_of(trace)]
        TRACES[trace["type"]](panel, trace)
    for (x, y), panel in panels.items():
        _set_axis(panel, "x", look.get(x, {}))
        _set_axis(panel, "y", look.get(y, {}))
        for shape in look.get("shapes", ()):
            panel.axvline(shape["x0"], color=shape["line"]["color"], linestyle=":", linewidth=1.0)
    if look.get("showlegend"):
        next(iter(panels.values())).legend(fontsize="small")
    return ax


def _panel_of(trace: Mapping[str, Any]) -> tuple[str, str]:
    x, y = (f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}" for letter in "xy")
    return x, y


def _panels(look: Mapping[str, Any], ax: Any) -> dict[tuple[str, str], Any]:
    """Axes of matplotlib for each pair of axes: ``ax`` itself if there is one, else axes inside it."""
    xs = [name for name in look if name.startswith("xaxis")]
    ys = [name for name in look if name.startswith("yaxis")]
    if len(xs) == len(ys) == 1:
        return {(xs[0], ys[0]): ax}
    ax.set_axis_off()
    panels: dict[tuple[str, str], Any] = {}
    for x in xs:
        for y in ys:
            (left, right), (low, high) = (look[name].get("domain", (0.0, 1.0)) for name in (x, y))
            if x == xs[0] or y == ys[0]:
                panels[x, y] = ax.inset_axes([left, low, right - left, high - low])
    return panels


def plain_text(text: str) -> str:
    """Text as matplotlib should show it: not a formula, not hidden from a legend as names with "_" are."""
    shown = escape_controls(text).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _colour(colour: Any) -> Any:
    if isinstance(colour, str) and (match := RGBA.fullmatch(colour)):
        red, green, blue = (int(part) / 255 for part in match.groups()[:3])
        return (red, green, blue, float(match[4]))
    return colour


def _scatter(ax: Any, trace: Mapping[str, Any]) -> None:
    mode, marker, stroke = trace.get("mode", "lines"), trace.get("marker", {}), trace.get("line", {})
    x, y = trace["x"], trace["y"]
    label = None if trace.get("showlegend") is False else plain_text(trace.get("name", "")) or None
    if "lines" in mode:
        options = {"color": stroke.get("color"), "linewidth": 0.8 * stroke.get("width", 2), "label": label}
        style = DASHES[stroke.get("dash", "solid")]
        step = "steps-post" if stroke.get("shape") == "hv" else "default"
        ax.plot(x, y, linestyle=style, drawstyle=step, **options)
        label = None
    if "error_y" in trace:
        ax.errorbar(x, y, yerr=trace["error_y"], fmt="none", ecolor=stroke.get("color"), linewidth=1.0)
    if "markers" in mode:
        kind, is_open, _ = str(marker.get("symbol", "circle")).partition("-open")
        symbol, colours = MARKERS[kind], marker.get("color", stroke.get("color"))
        options = {"s": marker.get("size", 6) ** 2, "alpha": marker.get("opacity"), "label": label}
        fill = {"facecolors": "none", "edgecolors": colours} if is_open else {"c": colours}
        ax.scatter(x, y, marker=symbol, zorder=3, **fill, **options)


def _band(ax: Any, trace: Mapping[str, Any]) -> None:
    ax.fill_between(trace["x"], trace["low"], trace["high"], color=_colour(trace["color"]), linewidth=0.0)


def _steps(ax: Any, trace: Mapping[str, Any]) -> None:
    edges = trace["x"]
    edges = [float(part) for part in edges.split(",")] if isinstance(edges, str) else edges
    if "fill" in trace:
        ax.stairs(trace["y"], edges, fill=True, color=trace["fill"])
    else:
        ax.stairs(trace["y"], edges, baseline=None, color=trace["line"]["color"], linewidth=1.6)


def _bar(ax: Any, trace: Mapping[str, Any]) -> None:
    places = range(len(trace["x"]))
    ax.bar(places, trace["y"], width=1.0 - trace.get("gap", 0.2), color=trace["marker"]["color"])
    turned = {"rotation": 45, "ha": "right"} if len(places) > 6 else {}
    ax.set_xticks(places, [plain_text(str(name)) for name in trace["x"]], **turned)


TRACES: dict[str, Any] = {"scatter": _scatter, "band": _band, "steps": _steps, "bar": _bar}


def _set_axis(ax: Any, letter: str, look: Mapping[str, Any]) -> None:
    """Title, scale, range and ticks of an axis."""
    one = getattr(ax, f"{letter}axis")
    if title := look.get("title"):
        one.set_label_text(title)
    if look.get("type") == "log":
        getattr(ax, f"set_{letter}scale")("log")
        if letter == "x" and not look.get("reversed"):  # numbers of features, costs
            _plain_ticks(one)
    elif look.get("dtick") == 1:
        from matplotlib.ticker import MaxNLocator

        one.set_major_locator(MaxNLocator(integer=True))
    if (ends := look.get("range")) is not None:
        getattr(ax, f"set_{letter}lim")(*ends)
    elif look.get("rangemode") == "tozero":
        getattr(ax, f"set_{letter}lim")(**{"left" if letter == "x" else "bottom": 0.0})
    if look.get("reversed"):
        one.set_inverted(True)
    if "tickvals" in look:
        one.set_ticks(look["tickvals"], look["ticktext"])
    if look.get("zeroline") and letter == "y":
        ax.axhline(0.0, color=OTHER, linewidth=0.8, zorder=0)
    if look.get("showgrid", True) and look.get("title"):
        ax.grid(axis=letter, alpha=0.3)


def _plain_ticks(one: Any) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, as plain numbers."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    one.set_major_formatter(FormatStrFormatter("%g"))
    one.set_minor_locator(NullLocator())


STYLE = """
:root { color-scheme: light dark; --ink: #24292f; --soft: #59636e; --paper: #ffffff; --line: #dfe3e8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe3e8; --soft: #9aa4af; --paper: #14171a; --line: #333a43; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.4 system-ui, sans-serif; }
figure { margin: 0; }
"""
PARTS_OF_STYLE = (".plot", ".key", ".tip", ".curves")
START = """
const figures = JSON.parse(document.getElementById("figure-data").textContent);
for (const figure of figures) for (const trace of figure.data) for (const key of ["x", "y"]) {
  if (typeof trace[key] === "number") trace[key] = figure.lists[trace[key]];
  if (typeof trace[key] === "string") trace[key] = numbers(trace[key]);
}
const containers = document.querySelectorAll(".plot");
const paint = () => containers.forEach((container, k) => {
  const width = Math.max(container.clientWidth, 200);
  drawFigure(container, figures[k], {width, small: width < 500, hidden: new Set()});
});
paint();
addEventListener("resize", paint);
"""
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><style>{style}</style></head>
<body><div class="{kind}">{plots}</div>
<script type="application/json" id="figure-data">{data}</script><script>{script}</script></body></html>
"""
LONG_LIST = 10
PER_ROW = 2  # curves beside each other at the width of a notebook
ROOM_BELOW = 90  # pixels for the key and the names of categories


@dataclass(frozen=True)
class InteractiveFigure:
    """Figures of the pages by name, which notebooks show; nothing is fetched."""

    figures: Mapping[str, Figure]
    title: str = "ranksieve"

    def __repr__(self) -> str:
        return f"<InteractiveFigure: {self.title}>"

    @property
    def page(self) -> str:
        """The page, whose policy allows only its own script."""
        room = files("ranksieve.report")
        script = "\n".join(
            [*((room / name).read_text("utf-8") for name in ("scales.js", "figure.js")), START]
        )
        lines = (room / "page.css").read_text("utf-8").splitlines()
        style = "\n".join([STYLE, *_rules(lines)])
        packed = [_packed(figure) for figure in self.figures.values()]
        data = json.dumps(packed, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")
        policy = f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'unsafe-inline'"
        captions = (f"<figcaption>{escape(name)}</figcaption>" if name else "" for name in self.figures)
        plots = "".join(f'<figure>{caption}<div class="plot"></div></figure>' for caption in captions)
        kind = "curves" if len(self.figures) > 1 else "one"
        return PAGE.format(
            policy=policy,
            title=escape(self.title),
            style=style,
            kind=kind,
            plots=plots,
            data=data,
            script=script,
        )

    def _repr_html_(self) -> str:
        rows = -(-len(self.figures) // PER_ROW)
        height = rows * (max(one["layout"]["height"] for one in self.figures.values()) + ROOM_BELOW)
        source = self.page.replace("&", "&amp;").replace('"', "&quot;")
        return (
            f'<iframe srcdoc="{source}" title="{escape(self.title)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {height}px; border: 0"></iframe>'
        )


def _packed(figure: Figure) -> dict[str, Any]:
    """The figure with long lists of numbers as text, each list of x values once."""
    lists: list[Any] = []
    traces = []
    for trace in compact(figure["data"]):
        short = {key: _as_text(trace[key]) for key in ("x", "y") if key in trace}
        if short["x"] not in lists:
            lists.append(short["x"])
        traces.append({**trace, **short, "x": lists.index(short["x"])})
    return {"data": traces, "layout": compact(figure["layout"]), "lists": lists}


def _as_text(values: Any) -> Any:
    numeric = not isinstance(values, str) and all(isinstance(one, int | float | None) for one in values)
    return pack(values) if numeric and len(values) > LONG_LIST else values


def _rules(lines: list[str]) -> list[str]:
    """The rules of the style sheet that figures need, with their continued lines."""
    kept: list[str] = []
    for line in lines:
        continues = bool(kept) and not kept[-1].rstrip().endswith("}")
        if line.startswith(PARTS_OF_STYLE) or continues:
            kept.append(line)
    return kept
