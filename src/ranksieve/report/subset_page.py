"""Sentences and page about proven sets of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve._version import __version__
from ranksieve.report.page import (
    PALETTE,
    Answer,
    Figure,
    axis,
    faint,
    layout,
    line,
    render_page,
)
from ranksieve.show.formats import join_names, metric_text, metric_title, percent, plural, weight_text
from ranksieve.show.sentences import (
    PROVEN_GAP,
    limit_clauses,
    screening_sentences,
    subset_sentence,
    that_clause,
    tie_sentences,
)

SIZE_HOVER = "{name}\n{x} features: {y:.6g}"


def subset_page(result: Mapping[str, Any]) -> str:
    """HTML page of the result of :func:`ranksieve.cli.subset.subset_data`."""
    sizes, limits, metric = result["sizes"], result["limits"], metric_title(result["metric"])
    first, last = sizes[0]["max_features"], sizes[-1]["max_features"]
    numbers = f"{first} to {last} features" if last > first else f"{first} feature{'s' if first > 1 else ''}"

    title = f"The best {numbers} of {result['n_features']}"
    content = {"result": result, "title": title, "sizes": sizes, "metric": metric}
    content["lead"], content["proofs"] = _lead(sizes, metric), _proofs(sizes, limits)
    content["open"] = any(size["relative_gap"] > PROVEN_GAP for size in sizes)
    content["answers"] = _answers(sizes, limits, metric)
    content["sets"] = _sets(sizes)
    figures = {"metric": _metric_figure(result), "objective": _objective_figure(sizes)}
    return render_page(
        "subset.html.j2", {"figures": figures}, content=content, version=__version__,
        proven_gap=PROVEN_GAP, weight_text=weight_text,
    )  # fmt: skip


def _lead(sizes: Sequence[Mapping[str, Any]], metric: str) -> str:
    """The size that ranks best, and what is proven about its set."""
    best = max(sizes, key=lambda size: size["mean"])
    gap = best["relative_gap"]
    by = "has a lower training objective" if gap <= PROVEN_GAP else (
        f"lowers the training objective by more than {percent(gap)}"
    )  # fmt: skip
    return (
        f"{plural(len(best['features']), 'feature has', 'features have')} the best held-out {metric}, "
        f"{metric_text(best['mean'])}; proven: no other set of at most that size {by}."
    )


def _proofs(sizes: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """(features, sentences): all proven sizes in one sentence, then each other size; ties of each size."""
    proven = [str(size["max_features"]) for size in sizes if size["relative_gap"] <= PROVEN_GAP]
    allowed, texts = that_clause(limit_clauses(limits)), []
    if proven:
        which = f"{join_names(proven, len(proven))} feature{'' if proven == ['1'] else 's'}"
        best = f"Proven best: no other set of at most that many{allowed} has a lower training objective."
        texts.append((which, [best]))
    for size in sizes:
        unproven = size["relative_gap"] > PROVEN_GAP
        first = [subset_sentence(size, limits), *screening_sentences(size, limits)] if unproven else []
        if sentences := [*first, *tie_sentences(size)]:
            texts.append((plural(size["max_features"], "feature"), sentences))
    return texts


def _answers(sizes: Sequence[Mapping[str, Any]], limits: Mapping[str, Any], metric: str) -> list[Answer]:
    """The best size, the proofs, and the effort."""
    best, widest = (max(sizes, key=lambda size: size[key]) for key in ("mean", "relative_gap"))
    n_proven = sum(size["relative_gap"] <= PROVEN_GAP for size in sizes)
    allowed = that_clause(limit_clauses(limits))
    ranks = f"Held-out {metric} {metric_text(best['mean'])} with {join_names(best['features'], 10)}."
    best_of = f"No other set of at most that many features{allowed} has a lower training objective."
    proven = best_of if n_proven else ""
    if n_proven < len(sizes):
        proven += f" The widest gap is {percent(widest['relative_gap'])}, at {widest['max_features']}."
    effort = "Regions of sets bounded by the search, until no bound was below the best set or time was up."
    return [
        Answer("Which size ranks best?", f"{len(best['features'])} features", ranks),
        Answer("Which sets are proven best?", f"{n_proven} of {len(sizes)} sizes", proven.strip()),
        Answer("How much work?", plural(sum(size["n_nodes"] for size in sizes), "region"), effort),
    ]


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, **options: Any) -> Figure:
    look = {"mode": "lines+markers", "marker": {"color": colour, "size": 7}, "hover": SIZE_HOVER}
    return line(x, y, name, colour, **look, **options)


def _look(height: int, y: str, **options: Any) -> dict[str, Any]:
    x = axis("features at most", dtick=1)
    return layout(height, showlegend=True, xaxis=x, yaxis=axis(y, **options))


def _objective_figure(sizes: Sequence[Mapping[str, Any]]) -> Figure:
    """Objective of the best set found and the lower bound for all sets, unless they are equal."""
    k = [size["max_features"] for size in sizes]
    bound, objective = [size["bound"] for size in sizes], [size["objective"] for size in sizes]
    lines = [_line(k, objective, "best set found", PALETTE[0])]
    if any(size["relative_gap"] > PROVEN_GAP for size in sizes):
        band = {"type": "band", "x": k, "low": bound, "high": objective, "color": faint(PALETTE[1])}
        lines = [band, _line(k, bound, "proven lower bound for all sets", PALETTE[2]), *lines]
    return {"data": lines, "layout": _look(360, "training objective")}


def _metric_figure(result: Mapping[str, Any]) -> Figure:
    sizes = result["sizes"]
    k, mean = [size["max_features"] for size in sizes], [size["mean"] for size in sizes]
    errors = [size["standard_error"] for size in sizes]
    line = _line(k, mean, "mean and standard error over queries", PALETTE[0], error_y=errors)
    return {"data": [line], "layout": _look(320, f"held-out {metric_title(result['metric'])}")}


def _sets(sizes: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[float | None]]]:
    """Each feature in use with its weight for each size, in the order in which sizes use them."""
    first: dict[str, tuple[int, int]] = {}
    for size in sizes:
        for name in size["features"]:
            smallest, uses = first.get(name, (size["max_features"], 0))
            first[name] = (smallest, uses - 1)
    rows = sorted(first, key=lambda name: (first[name], name))
    return [(name, [size["weights"].get(name) for size in sizes]) for name in rows]
