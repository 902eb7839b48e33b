"""ranksieve frontier: what accuracy features and cost buy, as a table, JSON or page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import shortened
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    FitData,
    Json,
    MaxFeatures,
    RankerOptions,
    Weights,
    beside,
    check_inputs,
    check_outputs,
    write_text,
)
from ranksieve.cli.output import emit_json, json_text, progress, table, words
from ranksieve.errors import DataError, while_doing

SHOWN_POINTS = 12
SHOWN_NAMES = 6


@command(
    "ranksieve frontier train.txt --valid vali.txt --costs ms.csv",
    "ranksieve frontier train.txt --costs ms.csv --max-cost 20 -o frontier.html",
)
def frontier(
    *,
    source: FitData,
    weights: Weights,
    max_features: MaxFeatures = None,
    wanted: RankerOptions,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write all points as .json or a page as .html."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what features and cost buy in accuracy.

    Fits the models that "fit" chooses from and measures them on held-out queries as "fit" does; the table
    shows about ten steps of the best metric that a cost can buy. Look here for a budget, then give it to
    "fit".
    """
    from ranksieve.report.frontier_page import frontier_page
    from ranksieve.report.page import require_extra

    writers = {".json": json_text, ".html": frontier_page}
    suffix = "" if output is None else Path(output).suffix.lower()
    if output is not None and suffix not in writers:
        raise DataError(output, None, f"must end in {' or '.join(writers)}")
    if suffix == ".html":
        require_extra()
    inputs = [*source.files, *wanted.files, *weights.files]
    check_inputs(*inputs)
    ranker = rs.SparseRanker(**wanted.parameters(max_features))
    check_outputs([output], inputs)
    settings = {**ranker.get_params(deep=False), **weights.for_fit}
    data, held_out = source.read(ranker.missing, document_weight=weights.document_weight)
    title = f"fitting {source.train}"
    with progress(title) as bar, while_doing(title):
        found = rs.frontier(data, held_out, progress=bar, **settings).to_dict()
    if output is not None:
        write_text(writers[suffix](found), output)
    with beside(output):
        if as_json:
            emit_json(found)
            return
        _show(found)
        if output is not None:
            words(f"Wrote {output}.")


def _show(found: Mapping[str, Any]) -> None:
    import numpy as np

    from ranksieve.report.frontier_page import frontier_steps, paid_in

    steps, priced = frontier_steps(found), paid_in(found) == "cost"
    shown = np.unique(np.linspace(0, len(steps) - 1, SHOWN_POINTS).round().astype(int))
    rows = [
        (
            *([step["cost"]] if priced else []),
            step["n_features"],
            f"{step['mean']:.4f}",
            shortened(step["features"], SHOWN_NAMES),
        )
        for step in (steps[k] for k in shown)
    ]
    table([*(["cost"] if priced else []), "features", found["metric"], "which"], rows)
    words(
        f"{found['metric'].upper()}, {found['profile']} profile: {len(found['points'])} models, of which "
        f"{sum(point['optimal'] for point in found['points'])} are best for their features and cost."
    )
