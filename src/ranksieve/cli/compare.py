"""ranksieve compare: whether rankings differ, query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.evaluate import measure, show_measures
from ranksieve.cli.output import table, words
from ranksieve.errors import DataError, lookup

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation
    from ranksieve.metrics.significance import Alternative, Comparison

TWO = 2
SHOWN_QUERIES = 3
ALTERNATIVES: dict[str, Alternative] = {"two-sided": "two-sided", "greater": "greater"}


@command(
    "ranksieve compare sparse.json dense.json test.txt",
    "ranksieve compare a.txt b.txt test.txt --baseline b",
    "ranksieve compare bm25.run model.run --qrels qrels.txt",
)
def compare(
    *,
    files: Annotated[
        list[str], opt.argument("MODEL MODEL... DATA", "Models or files of scores, then data; or TREC runs.")
    ],
    metrics: opt.MetricOptions,
    baseline: Annotated[
        opt.Text, opt.value("Model", "NAME", "Compare the others with this one, not every pair.")
    ] = None,
    alternative: Annotated[
        str, opt.value("Model", "NAME", "two-sided, or greater: is the first better than the second?")
    ] = "two-sided",
    scoring: opt.ScoringOptions,
    as_json: opt.Json = False,
) -> None:
    """Test whether rankings differ, query by query.

    Shows means, differences, and the p-values of the paired t-test and of the randomisation test, with and
    without Holm's correction for multiple comparisons. The default metric and conventions are those the
    models were chosen by.
    """
    side = lookup(ALTERNATIVES, alternative, "alternative")
    data_file, rankings = (None, files) if metrics.qrels else (files[-1], files[:-1])
    names = short_names(rankings)
    result = measure(rankings, data_file, metrics, scoring)
    evaluations = {names[file]: evaluation for file, evaluation in result.evaluations.items()}
    comparison = rs.compare(evaluations, names.get(baseline or "", baseline), alternative=side)
    first = next(iter(evaluations.values()))
    content = {name: first.to_dict()[name] for name in ("profile", "too_short")}
    content["mean"] = {name: dict(evaluation.mean) for name, evaluation in evaluations.items()}

    def show() -> None:
        _show(evaluations, comparison)
        if len(evaluations) == TWO:
            _show_queries(evaluations, opt.query_texts(result.data))
        show_measures(first, result.words)

    opt.present(content | comparison.to_dict(), as_json, show)


def _show_queries(evaluations: Mapping[str, Evaluation], texts: Mapping[Any, str]) -> None:
    """The queries on which two rankings differ most, with their texts."""
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
