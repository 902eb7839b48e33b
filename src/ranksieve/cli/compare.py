"""ranksieve compare: whether rankings differ, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import lookup
from ranksieve.cli.app import command
from ranksieve.cli.evaluate import as_plain_data, evaluator, say_how
from ranksieve.cli.options import Json, MetricOptions, ScoringOptions, is_model
from ranksieve.cli.output import emit_json, table, words
from ranksieve.errors import DataError

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation
    from ranksieve.metrics.significance import Alternative, Comparison

TWO = 2
SHOWN_QUERIES = 3
ALTERNATIVES: dict[str, Alternative] = {"two-sided": "two-sided", "greater": "greater"}


@command(
    "ranksieve compare test.txt sparse.json dense.json",
    "ranksieve compare test.txt a.txt b.txt --baseline b",
    "ranksieve compare bm25.run model.run --qrels qrels.txt",
)
def compare(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="DATA A B [C ...]: data, then models or files of scores; with --qrels TREC runs only.",
        ),
    ],
    metrics: MetricOptions,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare all with this one instead of every pair.")
    ] = None,
    alternative: Annotated[
        str, typer.Option(metavar="NAME", help="two-sided, or greater: is the first better than the second?")
    ] = "two-sided",
    scoring: ScoringOptions,
    as_json: Json = False,
) -> None:
    """Test whether rankings differ, query by query.

    Shows means and differences, and the p-values of the paired t-test and of the randomisation test, both
    also with Holm's correction for many comparisons. Metric and conventions are those that the models were
    chosen by, unless told otherwise or they differ.
    """
    side = lookup(ALTERNATIVES, alternative, "alternative")
    data_file, rankings = (None, files) if metrics.qrels else (files[0], files[1:])
    names = short_names(rankings)
    models = [] if metrics.qrels else [file for file in rankings if is_model(file)]
    how = evaluator(data_file, rankings, models, metrics, scoring)
    evaluations = {names[file]: how.measure(file) for file in rankings}
    result = rs.compare(evaluations, names.get(baseline or "", baseline), alternative=side)
    if as_json:
        told = {name: as_plain_data(evaluation, False) for name, evaluation in evaluations.items()}
        first, means = next(iter(told.values())), {name: one["mean"] for name, one in told.items()}
        shared = {name: first[name] for name in ("profile", "too_short")}
        emit_json({**shared, "mean": means, **result.to_dict()})
    else:
        _show(evaluations, result)
        if len(evaluations) == TWO:
            _show_queries(evaluations, how.texts())
        say_how(next(iter(evaluations.values())), how.words)


def _show_queries(evaluations: Mapping[str, Evaluation], texts: Mapping[Any, str]) -> None:
    """The queries on which two rankings differ most, with their words."""
    from ranksieve.choice.update import most_changed
    from ranksieve.report.fit_page import query_cells

    (a, one), (b, other) = evaluations.items()
    metric = next(iter(one.mean))
    rows = most_changed(one.query_ids, other.per_query[metric], one.per_query[metric], SHOWN_QUERIES)
    if rows:
        table(["query", b, a, "change"], query_cells(rows, texts), f"Most lost and won by {a} ({metric})")


def short_names(files: Sequence[str]) -> dict[str, str]:
    """Each file's stem, or the whole path where stems are equal."""
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        raise DataError(twice, None, "is named twice; give different models or score files")
    stems = [Path(file).stem for file in files]
    return {f: stem if stems.count(stem) == 1 else f for f, stem in zip(files, stems, strict=True)}


def _show(evaluations: dict[str, Evaluation], result: Comparison) -> None:
    metrics = list(next(iter(evaluations.values())).mean)
    means = [(name, *(f"{e.mean[m]:.4f}" for m in metrics)) for name, e in evaluations.items()]
    table(["ranking", *metrics], means)
    columns = ["metric", "a", "b", "a - b", "wins", "ties", "losses", "p (t)", "Holm", "p (random)", "Holm"]
    rows = [
        (r.metric, r.a, r.b, f"{r.difference:+.4f}", r.wins, r.ties, r.losses,
         r.p_t, r.p_t_holm, r.p_randomisation, r.p_randomisation_holm)
        for r in result.rows
    ]  # fmt: skip
    table(columns, rows)
    words(
        f"Paired t and randomisation tests over queries, {result.alternative}; Holm: corrected over the "
        "pairs of a metric."
    )
