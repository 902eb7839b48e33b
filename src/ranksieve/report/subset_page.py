"""Sentences and page about proven sets of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve._version import __version__
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    Answer,
    Figure,
    axis,
    faint,
    layout,
    line,
    marks,
    render_page,
)
from ranksieve.show.formats import join_names, metric_text, metric_title, percent, plural
from ranksieve.show.sentences import (
    PROVEN_GAP,
    limit_clauses,
    screening_sentences,
    subset_sentence,
    that_clause,
    tie_sentences,
)

SIZE_HOVER = "{name}\n{x} features: {y:.6g}"
MARKED = "{y}, best set of {x}: weight {data:.4g}"
ROW_HEIGHT = 22  # pixels per feature in the figure of the sets
SIGNED_MARKS = (
    ("positive weight", 1, "square", PALETTE[0]),
    ("negative weight", -1, "square-open", PALETTE[3]),
)


def subset_page(result: Mapping[str, Any]) -> str:
    """HTML page of the result of :func:`ranksieve.cli.subset.subset_data`."""
    sizes, limits, metric = result["sizes"], result["limits"], metric_title(result["metric"])
    first, last = sizes[0]["max_features"], sizes[-1]["max_features"]
    numbers = f"{first} to {last} features" if last > first else f"{first} feature{'s' if first > 1 else ''}"

    def sentences(size: Mapping[str, Any]) -> list[str]:
        return [subset_sentence(size, limits), *screening_sentences(size, limits), *tie_sentences(size)]

    title = f"The best {numbers} of {result['n_features']}"
    content = {"result": result, "title": title, "sizes": sizes, "metric": metric, "sentences": sentences}
    content["answers"] = _answers(sizes, limits, metric)
    figures = {
        "objective": _objective_figure(sizes),
        "metric": _metric_figure(result),
        "sets": _sets_figure(sizes),
    }
    return render_page("subset.html.j2", {"figures": figures}, content=content, version=__version__)


def _answers(sizes: Sequence[Mapping[str, Any]], limits: Mapping[str, Any], metric: str) -> list[Answer]:
    """The best size, the proofs, and the effort."""
    best, widest = (max(sizes, key=lambda size: size[key]) for key in ("mean", "relative_gap"))
    n_proven = sum(size["relative_gap"] <= PROVEN_GAP for size in sizes)
    ranks = f"Held-out {metric} {metric_text(best['mean'])} with {join_names(best['features'], 10)}."
    proven = (
        f"For these sizes, no other set{that_clause(limit_clauses(limits))} has a lower training objective."
    )
    if n_proven < len(sizes):
        proven += f" The widest gap is {percent(widest['relative_gap'])}, at {widest['max_features']}."
    effort = "Regions of sets bounded by the search, until no bound was below the best set or time was up."
    return [
        Answer("Which size ranks best?", f"{len(best['features'])} features", ranks),
        Answer("What is proven?", f"{n_proven} of {len(sizes)} sizes", proven),
        Answer("How much work?", plural(sum(size["n_nodes"] for size in sizes), "region"), effort),
    ]


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, **options: Any) -> Figure:
    look = {"mode": "lines+markers", "marker": {"color": colour, "size": 7}, "hover": SIZE_HOVER}
    return line(x, y, name, colour, **look, **options)


def _look(height: int, y: str, **options: Any) -> dict[str, Any]:
    x = axis("features at most", dtick=1)
    return layout(height, showlegend=True, xaxis=x, yaxis=axis(y, **options))


def _objective_figure(sizes: Sequence[Mapping[str, Any]]) -> Figure:
    """Objective of the best set found, the lower bound for all sets, and the bound before the first split."""
    k = [size["max_features"] for size in sizes]
    bound, objective = [size["bound"] for size in sizes], [size["objective"] for size in sizes]
    lines = [
        {"type": "band", "x": k, "low": bound, "high": objective, "color": faint(PALETTE[1])},
        _line(k, bound, "proven lower bound for all sets", PALETTE[2]),
        _line(k, objective, "best set found", PALETTE[0]),
        _line(k, [size["root_bound"] for size in sizes], "bound before the first split", OTHER)
        | {"line": {"color": OTHER, "width": 1.5, "dash": "dot"}, "mode": "lines"},
    ]
    return {"data": lines, "layout": _look(360, "training objective")}


def _metric_figure(result: Mapping[str, Any]) -> Figure:
    sizes = result["sizes"]
    k, mean = [size["max_features"] for size in sizes], [size["mean"] for size in sizes]
    errors = [size["standard_error"] for size in sizes]
    line = _line(k, mean, "mean and standard error over queries", PALETTE[0], error_y=errors)
    return {"data": [line], "layout": _look(320, f"held-out {metric_title(result['metric'])}")}


def _sets_figure(sizes: Sequence[Mapping[str, Any]]) -> Figure:
    """One row per feature in use, one column per size."""
    first: dict[str, tuple[int, int]] = {}
    for size in sizes:
        for name in size["features"]:
            smallest, uses = first.get(name, (size["max_features"], 0))
            first[name] = (smallest, uses + 1)
    rows = sorted(first, key=lambda name: (first[name][0], -first[name][1], name))
    cells = [(size["max_features"], name, w) for size in sizes for name, w in size["weights"].items()]
    traces = []
    for label, sign, symbol, colour in SIGNED_MARKS:
        shown = [cell for cell in cells if sign * cell[2] > 0]
        k, names, weights = ([cell[part] for cell in shown] for part in range(3))
        look = {"marker": {"symbol": symbol}, "customdata": weights, "hover": MARKED}
        traces.append(marks(k, names, label, colour, 12, **look))
    categories = {"type": "category", "categories": rows[::-1]}
    return {"data": traces, "layout": _look(100 + ROW_HEIGHT * len(rows), "", **categories)}
