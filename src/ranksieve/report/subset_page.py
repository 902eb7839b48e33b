"""Sentences and page about proven sets of features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve._version import __version__
from ranksieve.data.features import SIGNS
from ranksieve.report.page import (
    OTHER,
    PALETTE,
    Answer,
    Figure,
    axis,
    faint,
    join_names,
    layout,
    line,
    marks,
    metric_text,
    metric_title,
    percent,
    plural,
    render_page,
)

PROVEN_GAP = 1e-8  # smaller relative gaps are rounding error
FOLD_SETS = (
    "In cross-validation, the sets of each fold come from forward selection with swaps, not from the exact "
    "search."
)


def limit_clauses(parameters: Mapping[str, Any]) -> list[str]:
    """Limits on a set and its weights, as clauses such as "excludes f8"."""
    must_have, must_not = (_names(parameters.get(name)) for name in ("must_have", "must_not"))
    weights, signs = parameters.get("weights"), parameters.get("signs") or {}
    if isinstance(weights, list):
        must_not += [_name(j) for j, weight in enumerate(weights) if weight == repr(math.inf)]
    by_feature = signs if isinstance(signs, Mapping) else dict(enumerate(signs))
    bounds = [f"{_name(feature)} {_bound(sign)}" for feature, sign in by_feature.items() if sign]
    return [
        *([f"includes {join_names(must_have)}"] if must_have else []),
        *([f"excludes {join_names(must_not)}"] if must_not else []),
        *([f"has weights {join_names(bounds)}"] if bounds else []),
    ]


def _names(features: Any) -> list[str]:
    several = features if isinstance(features, list | tuple) else [features]
    return [_name(one) for one in several if one not in (None, "")]


def _name(feature: Any) -> str:
    return feature if isinstance(feature, str) else f"column {feature} (from 0)"


def _bound(sign: Any) -> str:
    number = SIGNS.get(sign, sign)
    return f"{'≥' if number > 0 else '≤'} 0" if isinstance(number, int | float) else f"of sign {sign}"


def limits_text(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The sets that a proof is about."""
    all_features = plural(certificate["n_features"], "feature")
    cost = [f"costs at most {certificate['max_cost']:g}"] if "max_cost" in certificate else []
    limits = [*cost, *limit_clauses(parameters)]
    return f"set of at most {certificate['max_features']} of the {all_features}{that_clause(limits)}"


def that_clause(limits: Sequence[str]) -> str:
    """Limits as a relative clause; empty if there are none."""
    return f" that {join_names(limits)}" if limits else ""


def subset_sentence(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """A bound on how much lower the objective of another allowed set can be."""
    others = limits_text(certificate, parameters)
    if certificate["relative_gap"] <= PROVEN_GAP:
        return f"Proven best: no other {others} has a lower training objective."
    return (
        f"Proven: no other {others} lowers the training objective by more than "
        f"{percent(certificate['relative_gap'])}."
    )


def screening_sentences(size: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Features that no better set uses, and that every better set uses; empty if the set is proven best."""
    better = "better set within these limits" if limit_clauses(parameters) else "better set"
    if size["relative_gap"] <= PROVEN_GAP:
        return []
    count = {key: plural(len(size[key]), "feature is", "features are") for key in ("never", "always")}
    return [
        f"Proven: {count[key]} in {which} {better}: {join_names(size[key], 12)}."
        for which, key in (("no", "never"), ("every", "always"))
        if size[key]
    ]


def tie_sentences(size: Mapping[str, Any]) -> list[str]:
    """Features that can be replaced by scaled copies."""
    return [
        f"{name} can be replaced by {join_names(copies, 6)}: within queries they differ only by a factor."
        for name, copies in size["ties"].items()
    ]


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
