"""ranksieve compare: paired tests of rankings over queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.evaluate import measure, show_measures
from ranksieve.cli.output import print_all, table
from ranksieve.errors import lookup

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation
    from ranksieve.metrics.significance import Alternative, Comparison

ALTERNATIVES: dict[str, Alternative] = {"two-sided": "two-sided", "greater": "greater"}


@command(
    "ranksieve compare sparse.json dense.json test.txt",
    "ranksieve compare a.txt b.txt test.txt --baseline b",
    "ranksieve compare bm25.run model.run --qrels qrels.txt",
)
def compare(
    *,
    files: Annotated[
        list[str], opt.argument("MODEL MODEL... DATA", "Models or score files, then the data; or TREC runs.")
    ],
    metrics: opt.MetricOptions,
    baseline: Annotated[
        opt.Text, opt.value("Model", "NAME", "Compare the others with this one instead of all pairs.")
    ] = None,
    alternative: Annotated[
        str, opt.value("Model", "NAME", "two-sided, or greater: tests whether the first is better.")
    ] = "two-sided",
    scoring: opt.ScoringOptions,
    as_json: opt.Json = False,
) -> None:
    """Test whether rankings differ significantly.

    Shows means, differences, and p-values of the paired t-test and the randomisation test over queries, with
    and without Holm's correction for multiple comparisons. The default metric and profile are those the
    models were selected by.
    """
    from ranksieve.metrics.significance import check_baseline, check_enough

    side = lookup(ALTERNATIVES, alternative, "alternative")
    data_file, rankings = (None, files) if metrics.qrels else (files[-1], files[:-1])
    names = opt.short_names(rankings)
    check_enough(rankings)
    baseline = names.get(baseline or "", baseline)
    check_baseline(list(names.values()), baseline)
    result = measure(rankings, data_file, metrics, scoring)
    evaluations = {names[file]: evaluation for file, evaluation in result.evaluations.items()}
    comparison = rs.compare(evaluations, baseline, alternative=side)
    first = next(iter(evaluations.values()))
    content = {name: first.to_dict()[name] for name in ("profile", "ties", "too_short")}
    content["mean"] = {name: dict(evaluation.mean) for name, evaluation in evaluations.items()}

    def show() -> None:
        _show(evaluations, comparison)
        _show_queries(evaluations, opt.query_texts(result.data))
        show_measures(first, result.description)

    opt.print_result(content | comparison.to_dict(), as_json, show)


def _show_queries(evaluations: Mapping[str, Evaluation], texts: Mapping[Any, str]) -> None:
    """If there are two rankings: the queries on which they differ most, with their texts."""
    from ranksieve.choice.update import most_changed
    from ranksieve.show.fit import CHANGED_QUERIES_SHOWN
    from ranksieve.show.formats import metric_title
    from ranksieve.show.sentences import query_cells

    match list(evaluations.items()):
        case [(a, one), (b, other)]:
            pass
        case _:
            return
    metric = next(iter(one.mean))
    rows = most_changed(one.query_ids, other.per_query[metric], one.per_query[metric], CHANGED_QUERIES_SHOWN)
    if rows:
        table(
            ["query", b, a, "change"],
            query_cells(rows, texts),
            f"Largest changes ({metric_title(metric)})",
        )


def _show(evaluations: dict[str, Evaluation], result: Comparison) -> None:
    from ranksieve.show.formats import metric_title

    metrics = list(next(iter(evaluations.values())).mean)
    means = [(name, *(f"{e.mean[m]:.4f}" for m in metrics)) for name, e in evaluations.items()]
    table(["ranking", *map(metric_title, metrics)], means)
    print_all(result.shown())
