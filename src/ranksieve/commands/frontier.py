"""frontier: what accuracy features and cost buy, as a table, JSON or picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.commands.demands import Demands
from ranksieve.commands.files import beside, check_inputs, check_outputs, read_data, write_text
from ranksieve.commands.fitting import check_widths, make_ranker, prepare_with
from ranksieve.commands.guard import while_doing
from ranksieve.commands.show import emit_json, json_text, progress, table, words
from ranksieve.estimators import frontier
from ranksieve.report.frontier_figure import frontier_page, pareto_front
from ranksieve.report.page import require_extra

SHOWN_POINTS = 12
SHOWN_NAMES = 6
WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {".json": json_text, ".html": frontier_page}


def measure_frontier(
    train: str,
    *,
    valid: str | None,
    named: Mapping[str, Any],
    demands: Demands,
    normalise: str | None,
    missing: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Fit all candidates, write and show what they reach."""
    writer = None if output is None else _writer(output)
    inputs = [train, valid, *demands.files]
    check_inputs(*inputs)
    ranker = make_ranker("sparseranker", [], {**named, **demands.parsed()})
    policy = prepare_with(ranker, normalise, missing)
    check_outputs([output], inputs)
    data = read_data(train, policy)
    held_out = None if valid is None else read_data(valid, policy)
    if held_out is not None:
        check_widths(data, train, held_out, valid or "")
    with progress(f"fitting {train}") as bar, while_doing(f"fitting {train}"):
        found = frontier(data, held_out, progress=bar, **ranker.get_params(deep=False)).to_dict()
    if writer is not None:
        write_text(writer(found), output)
    with beside(output):
        if as_json:
            emit_json(found)
            return
        _show(found)
        if output is not None:
            words(f"Wrote {output}.")


def _writer(output: str) -> Callable[[dict[str, Any]], str]:
    suffix = Path(output).suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(f"{output}: end the name in {' or '.join(WRITERS)} to say what to write")
    if suffix == ".html":
        require_extra()
    return WRITERS[suffix]


def _show(found: Mapping[str, Any]) -> None:
    points = [point for point in found["points"] if point["optimal"]]
    priced = bool(points) and points[0]["cost"] is not None
    steps = _about_ten(pareto_front(points, "cost" if priced else "n_features"))
    columns = [*(["cost"] if priced else []), "features", found["metric"], "which"]
    rows = [
        (*([p["cost"]] if priced else []), p["n_features"], f"{p['mean']:.4f}", _listed(p["features"]))
        for p in steps
    ]
    table(columns, rows)
    words(f"{len(found['points'])} models, of which {len(points)} are best for their features and cost.")


def _about_ten(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = np.unique(np.linspace(0, len(steps) - 1, SHOWN_POINTS).round().astype(int))
    return [steps[k] for k in shown]


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
