"""ranksieve evaluate: how well a model, a file of scores or a TREC run ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import ranksieve as rs
from ranksieve._util.messages import lookup
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    DATA_HELP,
    MODEL_HELP,
    Device,
    Json,
    MetricOptions,
    ScoringOptions,
    check_inputs,
    check_measures,
    finite_scores,
    measures_for,
    measures_of_runs,
    query_texts,
    read_scores,
)
from ranksieve.cli.output import emit_json, table, words
from ranksieve.errors import DataError, while_doing

if TYPE_CHECKING:
    from ranksieve._types import FloatArray
    from ranksieve.metrics import Evaluation
    from ranksieve.metrics.profiles import Empty
    from ranksieve.model.score_functions import Scorer


class Measuring(NamedTuple):
    """How to evaluate a file, by what in words, and what the queries were, if the data say it."""

    measure: Callable[[str], Evaluation]
    words: str
    texts: Callable[[], Mapping[Any, str]] = dict


EMPTY_RULES: dict[str, Empty] = {"0": 0.0, "1": 1.0, "skip": "skip"}


@command(
    "ranksieve evaluate test.txt --model model.json --metric ndcg@10 --metric map",
    "ranksieve evaluate test.txt --scores scores.txt --empty skip --per-query",
    "ranksieve evaluate --run run.txt --qrels qrels.txt",
)
def evaluate(
    *,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)] = None,
    model: Annotated[str | None, typer.Option(metavar="FILE", help=MODEL_HELP)] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="FILE", help="One score per line, in the order of the data.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="FILE", help="A TREC run, to measure against --qrels.")
    ] = None,
    metrics: MetricOptions,
    empty: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="What a query without a relevant document counts: 0, 1 or skip."),
    ] = None,
    scoring: ScoringOptions,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show every query too.")] = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Measure how well a model, a file of scores or a TREC run ranks.

    Each query counts the same. A model is measured by the metric and the conventions it was chosen by, unless
    told otherwise. The letor profile follows the official LETOR scripts, where a list shorter than k has an
    NDCG at k of zero; the trec profile follows trec_eval -c.
    """
    rule = None if empty is None else lookup(EMPTY_RULES, empty, "empty")
    ranking = _one_ranking(data, model, scores, run, metrics.qrels)
    how = evaluator(data, [ranking], [model] if model else [], metrics, scoring, rule, device or "cpu")
    evaluation = how.measure(ranking)
    if as_json:
        emit_json(as_plain_data(evaluation, per_query))
        return
    if per_query:
        columns = [values.tolist() for values in evaluation.per_query.values()]
        table(["query", *evaluation.per_query], zip(evaluation.query_ids.tolist(), *columns, strict=True))
    table(["metric", "mean"], [(name, f"{value:.4f}") for name, value in evaluation.mean.items()])
    say_how(evaluation, how.words)


def _one_ranking(
    data_file: str | None, model: str | None, scores: str | None, run: str | None, qrels: str | None
) -> str:
    """The file that is to be evaluated."""
    if (run is None) != (qrels is None) or (run is not None and (data_file or model or scores)):
        raise ValueError("--run and --qrels go together, without DATA, --model and --scores")
    if run is not None:
        return run
    if data_file is None:
        raise ValueError(
            "there is nothing to evaluate; give DATA with --model or --scores, or --run and --qrels"
        )
    if (model is None) == (scores is None):
        raise ValueError("give either --model or --scores, so that there is one ranking to evaluate")
    return model or scores or ""


def evaluator(
    data_file: str | None,
    rankings: Sequence[str],
    model_files: Sequence[str],
    metrics: MetricOptions,
    scoring: ScoringOptions,
    empty: Empty | None = None,
    device: str = "cpu",
) -> Measuring:
    """How to evaluate a ranking, as a run against the qrels or as a model or scores on the data."""
    check_measures(metrics.metric, metrics.profile)
    check_inputs(data_file, metrics.qrels, *rankings)
    if metrics.qrels is not None:
        judged, runs = rs.read_qrels(metrics.qrels), measures_of_runs(metrics.metric, metrics.profile)
        return Measuring(
            lambda file: rs.evaluate_run(rs.read_run(file), judged, runs.metrics, runs.profile, empty),
            runs.words,
        )
    source = data_file or ""
    models: dict[str, Scorer] = {}
    if model_files:
        data, models = scoring.read(source, model_files)
    else:  # without a model features do not matter
        data = scoring.data(source)
    measures = measures_for(models, data, metrics.metric, metrics.profile, also=("map",))

    def on_data(file: str) -> Evaluation:
        scores = finite_scores(models[file], data) if file in models else _scores_of(file, data, source)
        with while_doing(f"evaluating {source}"):
            return rs.evaluate(scores, data, measures.metrics, measures.profile, empty, device=device)

    return Measuring(on_data, measures.words, lambda: query_texts(data))


def _scores_of(file: str, data: rs.Dataset, data_file: str) -> FloatArray:
    scores = read_scores(file)
    if len(scores) != data.n_docs:
        raise DataError(
            file,
            None,
            f"has {len(scores)} scores, but {data_file} has {data.n_docs} documents; write one score per "
            "document, in the same order",
        )
    return scores


def say_how(evaluation: Evaluation, by: str) -> None:
    """Over how many queries, by what, and which lists were too short to count."""
    from ranksieve.report.page import short_lists

    words(f"{len(evaluation.query_ids)} queries; {by}.")
    if evaluation.too_short:
        words(short_lists(evaluation))


def as_plain_data(evaluation: Evaluation, per_query: bool) -> dict[str, Any]:
    """An evaluation for JSON, with or without the values of queries."""
    content = evaluation.to_dict()
    return content if per_query else {k: v for k, v in content.items() if k not in ("per_query", "query_ids")}
