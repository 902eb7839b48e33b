"""ranksieve evaluate: ranking metrics of a model, a score file or a TREC run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, table
from ranksieve.errors import DataError, ParameterError, lookup, while_doing

if TYPE_CHECKING:
    from ranksieve._types import FloatArray
    from ranksieve.metrics import Evaluation
    from ranksieve.metrics.profiles import Empty

EMPTY_RULES: dict[str, Empty] = {"0": 0.0, "1": 1.0, "skip": "skip"}


@command(
    "ranksieve evaluate model.json test.txt --metric ndcg@10 --metric map",
    "ranksieve evaluate scores.txt test.txt --empty skip --per-query",
    "ranksieve evaluate run.txt --qrels qrels.txt",
    "ranksieve evaluate hybrid.json bm25.run dense.run --qrels qrels.txt",
)
def evaluate(
    *,
    model: Annotated[
        str, opt.argument("MODEL", "A model, a file with one score per document, or a TREC run.")
    ],
    data: Annotated[opt.Text, opt.argument("DATA", opt.DATA_HELP)] = None,
    clauses: opt.MoreRuns,
    metrics: opt.MetricOptions,
    empty: Annotated[
        opt.Text, opt.value("Model", "RULE", "Queries without a relevant document: 0, 1 or skip.")
    ] = None,
    scoring: opt.ScoringOptions,
    per_query: Annotated[bool, opt.flag("Output", "--per-query", "Also show each query.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Compute ranking metrics of a model, a score file or a TREC run.

    All queries have equal weight. The default metric and profile of a model are those it was selected by. The
    letor profile follows the official LETOR scripts, where NDCG@k is 0 for a list shorter than k; the trec
    profile follows trec_eval -c.
    """
    rule = None if empty is None else lookup(EMPTY_RULES, empty, "empty")
    joined = None
    if data is not None:
        opt.check_files([data, *(clauses.runs or ()), metrics.qrels])
        joined = clauses.joined(data, metrics.qrels)
    result = measure([model], data, metrics, scoring, rule, joined)
    evaluation = result.evaluations[model]
    show = partial(_show, evaluation, per_query, result.description)
    opt.print_result(as_plain_data(evaluation, per_query), as_json, show)


def _show(evaluation: Evaluation, per_query: bool, by: str) -> None:
    from ranksieve.show.formats import metric_title

    if per_query:
        columns = [values.tolist() for values in evaluation.per_query.values()]
        heads = ["query", *map(metric_title, evaluation.per_query)]
        table(heads, zip(evaluation.query_ids.tolist(), *columns, strict=True))
    table(
        ["metric", "mean"], [(metric_title(name), f"{value:.4f}") for name, value in evaluation.mean.items()]
    )
    show_measures(evaluation, by)


class Measured(NamedTuple):
    """Evaluations by file name, a description of metric and profile, and the data."""

    evaluations: dict[str, Evaluation]
    description: str
    data: rs.Dataset | None


def measure(
    rankings: Sequence[str],
    data_file: str | None,
    metrics: opt.MetricOptions,
    scoring: opt.ScoringOptions,
    empty: Empty | None = None,
    clauses: rs.Dataset | None = None,
) -> Measured:
    """Evaluate models and scores on the data or on ``clauses``, or TREC runs against the judgements."""
    opt.check_measures(metrics.metric, metrics.profile, metrics.ties)
    opt.check_files([*rankings, data_file, metrics.qrels, *scoring.files])
    if clauses is None and (data_file is None) == (metrics.qrels is None):
        raise ValueError("specify either DATA, or --qrels FILE to evaluate TREC runs")
    if clauses is None and metrics.qrels is not None:
        if metrics.ties is not None:
            reason = "TREC runs are ranked in trec_eval's order, ties by document id; leave it out"
            raise ParameterError("ties", metrics.ties, reason)
        judged, by = rs.io.read_qrels(metrics.qrels), opt.measures_of_runs(metrics.metric, metrics.profile)
        runs = {
            run: rs.evaluate_run(rs.io.read_run(run), judged, by.metrics, by.profile, empty)
            for run in rankings
        }
        return Measured(runs, by.description, None)
    source = data_file or ""
    files = [file for file in rankings if opt.is_model(file)]
    data, models = scoring.with_models(source, files, clauses)
    by = opt.measures_for(models, data, metrics.metric, metrics.profile, metrics.ties, also=("map",))
    evaluations = {}
    for file in rankings:
        scores = opt.finite_scores(models[file], data) if file in models else _scores_of(file, data, source)
        documents = data
        if clauses is not None and data.document_weight is not None:  # all documents count in their list
            documents, scores = data.without_zero_weights()[0], scores[data.document_weight > 0]
        with while_doing(f"evaluating {source}"):
            evaluations[file] = rs.evaluate(scores, documents, by.metrics, by.profile, empty)
    return Measured(evaluations, by.description, data)


def _scores_of(file: str, data: rs.Dataset, data_file: str) -> FloatArray:
    scores = opt.read_scores(file)
    if len(scores) != data.n_docs:
        counts = f"has {len(scores)} scores, but {data_file} has {data.n_docs} documents"
        raise DataError(file, None, f"{counts}; write one score per document, in the same order")
    return scores


def show_measures(evaluation: Evaluation, by: str) -> None:
    """Print the number of queries, metric and profile, and the number of lists that are too short."""
    from ranksieve.metrics.evaluate import short_lists

    print_text(f"{len(evaluation.query_ids)} queries; {by}.")
    if evaluation.too_short:
        print_text(short_lists(evaluation))


def as_plain_data(evaluation: Evaluation, per_query: bool) -> dict[str, Any]:
    """An evaluation for JSON, with or without the values per query."""
    content = evaluation.to_dict()
    return content if per_query else {k: v for k, v in content.items() if k not in ("per_query", "query_ids")}
