"""Proven sets of features, in sentences and on a page."""

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
    counted,
    faint,
    layout,
    line,
    listed,
    marks,
    metric_text,
    metric_title,
    percent,
    render_page,
)

ROUNDING = 1e-8  # a relative gap below this is one of rounding
FOLD_SETS = (
    "In cross-validation the sets of each fold come from forward selection with swaps, not from the search "
    "that proves."
)


def asked_limits(parameters: Mapping[str, Any]) -> list[str]:
    """What the parameters demand of a set and its weights, as verbs with their objects."""
    must_have, must_not = (_names(parameters.get(name)) for name in ("must_have", "must_not"))
    weights, signs = parameters.get("weights"), parameters.get("signs") or {}
    if isinstance(weights, list):
        must_not += [_name(j) for j, weight in enumerate(weights) if weight == repr(math.inf)]
    by_feature = signs if isinstance(signs, Mapping) else dict(enumerate(signs))
    kept = [f"{_name(feature)} {_side(sign)}" for feature, sign in by_feature.items() if sign]
    return [
        *([f"holds {listed(must_have)}"] if must_have else []),
        *([f"lacks {listed(must_not)}"] if must_not else []),
        *([f"has the weights {listed(kept)}"] if kept else []),
    ]


def _names(features: Any) -> list[str]:
    given = features if isinstance(features, list | tuple) else [features]
    return [_name(one) for one in given if one not in (None, "")]


def _name(feature: Any) -> str:
    return feature if isinstance(feature, str) else f"column {feature} (from 0)"


def _side(sign: Any) -> str:
    number = SIGNS.get(sign, sign)
    return f"{'≥' if number > 0 else '≤'} 0" if isinstance(number, int | float) else f"of sign {sign}"


def limits_text(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The sets that a proof is about."""
    among = counted(certificate["n_features"], "feature")
    cost = [f"costs at most {certificate['max_cost']:g}"] if "max_cost" in certificate else []
    limits = [*cost, *asked_limits(parameters)]
    return f"set of at most {certificate['max_features']} of the {among}{that(limits)}"


def that(limits: Sequence[str]) -> str:
    """Limits as a clause; empty if there are none."""
    return f" that {listed(limits)}" if limits else ""


def subset_sentence(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """How much better another set can be, among those that the parameters allow."""
    others = limits_text(certificate, parameters)
    if certificate["relative_gap"] <= ROUNDING:
        return f"Proven best: no other {others} has a lower training objective."
    return (
        f"No other {others} has a training objective more than {percent(certificate['relative_gap'])} lower."
    )


def screening_sentences(size: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Which features no better set uses, and which every better set uses; none if the set is proven best."""
    better = "better set within these limits" if asked_limits(parameters) else "better set"
    if size["relative_gap"] <= ROUNDING:
        return []
    count = {key: counted(len(size[key]), "feature is", "features are") for key in ("never", "always")}
    return [
        f"{count[key]} provably in {which} {better}: {listed(size[key], 12)}."
        for which, key in (("no", "never"), ("every", "always"))
        if size[key]
    ]


def tie_sentences(size: Mapping[str, Any]) -> list[str]:
    """Features that could be exchanged for copies of them."""
    return [
        f"{name} could be exchanged for {listed(copies, 6)}: within queries they differ from it by a factor "
        "alone."
        for name, copies in size["ties"].items()
    ]


HOVER = "{name}\n{x} features: {y:.6g}"
MARKED = "{y}, best set of {x}: weight {data:.4g}"
ROW = 22  # pixels per feature in the picture of the sets
SIGNED_MARKS = (
    ("positive weight", 1, "square", PALETTE[0]),
    ("negative weight", -1, "square-open", PALETTE[3]),
)


def subset_page(found: Mapping[str, Any]) -> str:
    """The page as text, of what :func:`ranksieve.cli.subset.subset_data` gives."""
    sizes, limits, metric = found["sizes"], found["limits"], metric_title(found["metric"])
    first, last = sizes[0]["max_features"], sizes[-1]["max_features"]
    what = f"{first} to {last} features" if last > first else f"{first} feature{'s' if first > 1 else ''}"

    def sentences(size: Mapping[str, Any]) -> list[str]:
        proven = [subset_sentence(size, limits)]
        return [*proven, *screening_sentences(size, limits), *tie_sentences(size)]

    title = f"The best {what} of {found['n_features']}"
    content = {"found": found, "title": title, "sizes": sizes, "metric": metric, "sentences": sentences}
    content["answers"] = _answers(sizes, limits, metric)
    figures = {
        "objective": _objective_figure(sizes),
        "metric": _metric_figure(found),
        "sets": _sets_figure(sizes),
    }
    return render_page("subset.html.j2", {"figures": figures}, content=content, version=__version__)


def _answers(sizes: Sequence[Mapping[str, Any]], limits: Mapping[str, Any], metric: str) -> list[Answer]:
    """Which size ranks best, what is proven, at what effort."""
    best, widest = (max(sizes, key=lambda size: size[key]) for key in ("mean", "relative_gap"))
    n_proven = sum(size["relative_gap"] <= ROUNDING for size in sizes)
    ranks = f"Held-out {metric} {metric_text(best['mean'])} with {listed(best['features'], 10)}."
    proven = f"For these sizes no other set{that(asked_limits(limits))} has a lower training objective."
    if n_proven < len(sizes):
        proven += f" The widest gap is {percent(widest['relative_gap'])}, at {widest['max_features']}."
    effort = "So many regions of sets were bounded, until no bound was below the best set or time was up."
    return [
        Answer("Which size ranks best?", f"{len(best['features'])} features", ranks),
        Answer("What is proven?", f"{n_proven} of {len(sizes)} sizes", proven),
        Answer("At what effort?", counted(sum(size["n_nodes"] for size in sizes), "region"), effort),
    ]


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, **options: Any) -> Figure:
    look = {"mode": "lines+markers", "marker": {"color": colour, "size": 7}, "hover": HOVER}
    return line(x, y, name, colour, **look, **options)


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
    cells = [(size["max_features"], name, w) for size in sizes for name, w in size["weights"].items()]
    traces = []
    for words, sign, symbol, colour in SIGNED_MARKS:
        shown = [cell for cell in cells if sign * cell[2] > 0]
        k, names, weights = ([cell[part] for cell in shown] for part in range(3))
        look = {"marker": {"symbol": symbol}, "customdata": weights, "hover": MARKED}
        traces.append(marks(k, names, words, colour, 12, **look))
    places = {"type": "category", "categories": rows[::-1]}
    return {"data": traces, "layout": _look(100 + ROW * len(rows), "", **places)}
