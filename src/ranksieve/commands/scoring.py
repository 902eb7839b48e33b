"""rank, evaluate and compare: scores of models on data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ranksieve._types import FloatArray
from ranksieve._util.lookup import lookup
from ranksieve.commands.files import check_inputs, check_outputs, read_data, read_scores, write_text
from ranksieve.commands.guard import while_doing
from ranksieve.commands.models import finite_scores, is_model, read_with_models
from ranksieve.commands.show import emit_json, table, words
from ranksieve.data.dataset import Dataset
from ranksieve.formats.judgements import NumbersOfDocuments
from ranksieve.formats.trec import read_qrels, read_run, run_lines
from ranksieve.metrics import Evaluation, Profile, evaluate
from ranksieve.metrics.evaluate import parse_all
from ranksieve.metrics.profiles import Empty, as_profile
from ranksieve.metrics.run import evaluate_run
from ranksieve.significance import Alternative, Comparison, Row, compare

EMPTY: dict[str, Empty] = {"0": 0.0, "1": 1.0, "skip": "skip"}
ALTERNATIVES: dict[str, Alternative] = {"two-sided": "two-sided", "greater": "greater"}
Write = Callable[[Dataset, FloatArray, str], Iterator[str]]


class Yardstick(NamedTuple):
    """How rankings are measured."""

    metrics: Sequence[str]
    profile: Profile
    empty: Empty | None = None

    def of_scores(self, scores: FloatArray, data: Dataset) -> Evaluation:
        return evaluate(scores, data, *self)

    def of_run(self, run: NumbersOfDocuments, qrels: NumbersOfDocuments) -> Evaluation:
        return evaluate_run(run, qrels, *self)


def rank_documents(
    model_file: str,
    data_file: str,
    *,
    missing: str | None,
    first_feature: int | None,
    output: str | None,
    form: str,
) -> None:
    """Score documents and write the scores."""
    write = lookup(FORMATS, form, "format")
    check_outputs([output], [model_file, data_file], stdout=True)
    data, models = read_with_models(data_file, [model_file], missing, first_feature)
    model = models[model_file]
    write_text("".join(write(data, finite_scores(model, data), model.method or "ranksieve")), output)


def _score_lines(data: Dataset, scores: FloatArray, tag: str) -> Iterator[str]:
    return (f"{score!r}\n" for score in scores.tolist())


FORMATS: dict[str, Write] = {"scores": _score_lines, "trec": run_lines}


def evaluate_scores(
    data_file: str | None,
    *,
    model: str | None,
    scores: str | None,
    run: str | None,
    qrels: str | None,
    metrics: Sequence[str],
    profile: str | None,
    empty: str | None,
    missing: str | None,
    first_feature: int | None,
    per_query: bool,
    as_json: bool,
) -> None:
    """Measure a model or a file of scores on data, or a TREC run against qrels."""
    rule = None if empty is None else lookup(EMPTY, empty, "rule for queries without a relevant document")
    yardstick = Yardstick(metrics, _conventions(metrics, profile, qrels), rule)
    ranking = _one_ranking(data_file, model, scores, run, qrels)
    check_inputs(data_file or qrels, ranking)
    models = [model] if model else []
    evaluation = _measure(yardstick, data_file, qrels, models, missing, first_feature)(ranking)
    if as_json:
        emit_json(_plain(evaluation, per_query))
        return
    if per_query:
        columns = [values.tolist() for values in evaluation.per_query.values()]
        table(["query", *evaluation.per_query], zip(evaluation.query_ids.tolist(), *columns, strict=True))
    table(["metric", "mean"], [(name, f"{value:.4f}") for name, value in evaluation.mean.items()])
    words(f"{len(evaluation.query_ids)} queries, {yardstick.profile.name} profile.")


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


def compare_rankings(
    files: Sequence[str],
    *,
    qrels: str | None,
    baseline: str | None,
    metrics: Sequence[str],
    profile: str | None,
    alternative: str,
    missing: str | None,
    first_feature: int | None,
    as_json: bool,
) -> None:
    """Measure several rankings and test their differences.

    The files are data and then models or scores; or, with qrels, TREC runs.
    """
    yardstick = Yardstick(metrics, _conventions(metrics, profile, qrels))
    side = lookup(ALTERNATIVES, alternative, "alternative")
    data_file, rankings = (None, files) if qrels else (files[0], files[1:])
    names = short_names(rankings)
    check_inputs(data_file or qrels, *rankings)
    models = [file for file in rankings if is_model(file)]
    measure = _measure(yardstick, data_file, qrels, models, missing, first_feature)
    evaluations = {names[file]: measure(file) for file in rankings}
    result = compare(evaluations, names.get(baseline or "", baseline), alternative=side)
    if as_json:
        means = {name: _plain(evaluation, False)["mean"] for name, evaluation in evaluations.items()}
        emit_json({"profile": yardstick.profile.name, "mean": means, **result.to_dict()})
    else:
        _show_comparison(evaluations, result)


def _measure(
    yardstick: Yardstick,
    data_file: str | None,
    qrels: str | None,
    model_files: Sequence[str],
    missing: str | None,
    first_feature: int | None,
) -> Callable[[str], Evaluation]:
    """How to evaluate a file: as a run against the qrels, or as a model or scores on the data."""
    if qrels is not None:
        judged = read_qrels(qrels)
        return lambda file: yardstick.of_run(read_run(file), judged)
    source = data_file or ""
    if model_files:
        data, models = read_with_models(source, model_files, missing, first_feature)
    else:  # without a model features do not matter
        data, models = read_data(source, "keep"), {}

    def on_data(file: str) -> Evaluation:
        scores = finite_scores(models[file], data) if file in models else _scores_from(data, source, file)
        with while_doing(f"evaluating {source}"):
            return yardstick.of_scores(scores, data)

    return on_data


def short_names(files: Sequence[str]) -> dict[str, str]:
    """Each file's stem, or the whole path where stems are equal."""
    if len(set(files)) < len(files):
        raise ValueError("a file is named twice; give different models or score files")
    stems = [Path(file).stem for file in files]
    return {f: stem if stems.count(stem) == 1 else f for f, stem in zip(files, stems, strict=True)}


def _show_comparison(evaluations: dict[str, Evaluation], result: Comparison) -> None:
    metrics = list(next(iter(evaluations.values())).mean)
    means = [(name, *(f"{e.mean[m]:.4f}" for m in metrics)) for name, e in evaluations.items()]
    table(["ranking", *metrics], means)
    columns = ["metric", "a", "b", "a - b", "wins", "ties", "losses", "p (t)", "Holm", "p (random)", "Holm"]
    table(columns, [_comparison_cells(row) for row in result.rows])
    words(
        f"Paired t and randomisation tests over queries, {result.alternative}; Holm: corrected over the "
        "pairs of a metric."
    )


def _comparison_cells(row: Row) -> tuple[Any, ...]:
    p_values = (row.p_t, row.p_t_holm, row.p_randomisation, row.p_randomisation_holm)
    return (row.metric, row.a, row.b, f"{row.difference:+.4f}", row.wins, row.ties, row.losses, *p_values)


def _conventions(metrics: Sequence[str], profile: str | None, qrels: str | None) -> Profile:
    """The profile asked for, else letor, or trec for runs; metrics that do not exist are refused."""
    parse_all(metrics)
    return as_profile(profile or ("trec" if qrels else "letor"))


def _scores_from(data: Dataset, data_file: str, file: str) -> FloatArray:
    scores = read_scores(file)
    if len(scores) != data.n_docs:
        raise ValueError(
            f"{file} has {len(scores)} scores but {data_file} has {data.n_docs} documents; "
            "expected one score a document, in the same order"
        )
    return scores


def _plain(evaluation: Evaluation, per_query: bool) -> dict[str, Any]:
    content = evaluation.to_dict()
    return content if per_query else {k: v for k, v in content.items() if k not in ("per_query", "query_ids")}
