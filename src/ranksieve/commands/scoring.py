"""rank, evaluate and compare: scores of models on data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.commands.files import check_inputs, check_outputs, read_data, read_for, read_scores, write_text
from ranksieve.commands.guard import while_doing
from ranksieve.commands.show import emit_json, table, words
from ranksieve.data import Dataset
from ranksieve.metrics import Evaluation, evaluate
from ranksieve.metrics.evaluate import parse_all
from ranksieve.metrics.lookup import lookup
from ranksieve.metrics.profiles import Empty, as_profile
from ranksieve.model import LinearModel, load_model
from ranksieve.significance import Alternative, Comparison, Row, compare

EMPTY: dict[str, Empty] = {"0": 0.0, "1": 1.0, "skip": "skip"}
ALTERNATIVES: dict[str, Alternative] = {"two-sided": "two-sided", "greater": "greater"}


def rank_documents(model_file: str, data_file: str, *, missing: str, output: str | None, form: str) -> None:
    """Score documents and write the scores."""
    write = lookup(FORMATS, form, "format")
    model = load_model(model_file)
    check_outputs([output], [model_file, data_file])
    data = read_for(model, data_file, missing)
    write_text("".join(write(data, finite_scores(model, data), model.method or "ranksieve")), output)


def finite_scores(model: LinearModel, data: Dataset) -> FloatArray:
    """Scores in row order; a row without one is refused."""
    scores = model.predict(data)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise ValueError(
            f"{data.source or 'the data'}: the score of document {bad[0] + 1} is {scores[bad[0]]}, because a "
            "feature in use is missing or infinite; choose --missing zero, query_min or column_mean"
        )
    return scores


def _score_lines(data: Dataset, scores: FloatArray, tag: str) -> Iterator[str]:
    return (f"{score!r}\n" for score in scores.tolist())


def _trec_lines(data: Dataset, scores: FloatArray, tag: str) -> Iterator[str]:
    """``qid Q0 docid rank score tag``, best first; documents without an id go by their row number."""
    queries = data.queries
    for q, query in enumerate(queries.ids.tolist()):
        rows = queries.order[queries.offsets[q] : queries.offsets[q + 1]]
        for rank, row in enumerate(rows[np.argsort(-scores[rows], kind="stable")].tolist(), start=1):
            document = data.doc_ids[row] if data.doc_ids is not None else ""
            yield f"{_token(query)} Q0 {_token(document) or row + 1} {rank} {float(scores[row])!r} {tag}\n"


FORMATS = {"scores": _score_lines, "trec": _trec_lines}


def _token(value: Any) -> str:
    """An id as one word."""
    return "_".join(str(value).split())


def evaluate_scores(
    data_file: str,
    *,
    model: str | None,
    scores: str | None,
    metrics: Sequence[str],
    profile: str,
    empty: str | None,
    missing: str,
    per_query: bool,
    as_json: bool,
) -> None:
    """Measure a model or a file of scores."""
    if (model is None) == (scores is None):
        raise ValueError("give either --model or --scores, so that there is one ranking to evaluate")
    _check_names(metrics, profile, empty)
    check_inputs(data_file, scores)
    data = _judged(data_file, [model] if model else [], missing)
    given = finite_scores(load_model(model), data) if model else _scores_from(data, data_file, scores or "")
    with while_doing(f"evaluating {data_file}"):
        evaluation = evaluate(given, data, metrics, profile, None if empty is None else EMPTY[empty])
    if as_json:
        emit_json(_plain(evaluation, per_query))
        return
    if per_query:
        columns = [values.tolist() for values in evaluation.per_query.values()]
        table(["query", *evaluation.per_query], zip(evaluation.query_ids.tolist(), *columns, strict=True))
    table(["metric", "mean"], [(name, f"{value:.4f}") for name, value in evaluation.mean.items()])
    words(f"{data.n_queries} queries, {profile} profile.")


def compare_rankings(
    data_file: str,
    files: Sequence[str],
    *,
    baseline: str | None,
    metrics: Sequence[str],
    profile: str,
    alternative: str,
    missing: str,
    as_json: bool,
) -> None:
    """Measure several models or files of scores and test their differences."""
    _check_names(metrics, profile, None)
    side = lookup(ALTERNATIVES, alternative, "alternative")
    names = short_names(files)
    check_inputs(data_file, *files)
    data = _judged(data_file, [file for file in files if _is_model(file)], missing)
    scores = {names[file]: _scores(data, data_file, file) for file in files}
    with while_doing(f"evaluating {data_file}"):
        evaluations = {name: evaluate(values, data, metrics, profile) for name, values in scores.items()}
    result = compare(evaluations, names.get(baseline or "", baseline), alternative=side)
    if as_json:
        means = {name: _plain(evaluation, False)["mean"] for name, evaluation in evaluations.items()}
        emit_json({"profile": profile, "mean": means, **result.to_dict()})
    else:
        _show_comparison(evaluations, result)


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


def _check_names(metrics: Sequence[str], profile: str, empty: str | None) -> None:
    parse_all(metrics)
    as_profile(profile)
    if empty is not None:
        lookup(EMPTY, empty, "rule for queries without a relevant document")


def _judged(data_file: str, models: Sequence[str], missing: str) -> Dataset:
    """Data wide enough for all models; without a model features do not matter."""
    if not models:
        return read_data(data_file, "keep")
    widest = max((load_model(model) for model in models), key=lambda model: model.n_features)
    return read_for(widest, data_file, missing)


def _is_model(file: str) -> bool:
    return file.endswith(".json")


def _scores(data: Dataset, data_file: str, file: str) -> FloatArray:
    if _is_model(file):
        return finite_scores(load_model(file), data)
    return _scores_from(data, data_file, file)


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
