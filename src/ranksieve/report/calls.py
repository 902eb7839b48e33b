"""Pages from results: what their method ``report`` calls, and the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ranksieve._types import PathLike
from ranksieve._util.files import atomic_write
from ranksieve.choice.held_out import Validation
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import Names, describe
from ranksieve.data.inputs import numbered_names
from ranksieve.explain import explain_query, feature_importance, worst_queries
from ranksieve.inspection import Inspection
from ranksieve.metrics import Evaluation, profile_for
from ranksieve.metrics.evaluate import evaluate, evaluate_quietly
from ranksieve.model.linear import LinearModel, as_linear_model
from ranksieve.rankers.best_subset import evaluate_sizes
from ranksieve.rankers.frontier import Frontier
from ranksieve.rankers.measures import single_feature, too_short_to_count
from ranksieve.rankers.sparse_ranker import model_of_candidate
from ranksieve.report.card_page import card_page
from ranksieve.report.explain_page import ExplainPage, explain_page
from ranksieve.report.fit_page import (
    ModelTest,
    Support,
    build_content,
    content_of_model,
    rival_of,
    write_report,
)
from ranksieve.report.frontier_page import frontier_page
from ranksieve.report.inspect_page import inspect_page, remarks
from ranksieve.report.results_page import write_results_page
from ranksieve.report.subset_page import subset_page
from ranksieve.show.fit import VALIDATION_DATA, selection_text
from ranksieve.show.sentences import FOLD_SETS

REPORT_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "mrr")
LIMIT_PARAMETERS = ("must_have", "must_not", "signs")
TEST_DATA = "the test data"
WORST_ON_PAGE = 10
EXPLAINED_ON_PAGE = 3  # of the worst queries


def report_fit(
    ranker: Any,
    path: PathLike,
    *,
    train: Dataset | None = None,
    valid: Dataset | None = None,
    test: Dataset | None = None,
    title: str = "Sparse ranker",
) -> None:
    """Write the page of a fitted ranker."""
    as_linear_model(ranker, "so it has no weights to show")
    model = ranker.to_model()
    on_valid = VALIDATION_DATA if valid is not None or "valid" in model.data else None
    content = build_content(
        ranker, title=title, choice=selection_text(ranker, on_valid),
        evaluations=valid_metrics(ranker, on_valid, valid),
        support=None if train is None else feature_strength(ranker, train),
        uncounted="" if train is None else too_short_to_count(ranker, train, valid),
        test=None if test is None else evaluate_test(TEST_DATA, test, model, ranker),
        query_texts=query_texts(train, valid, test), previous_file="the previous model", train=train,
    )  # fmt: skip
    write_report(content, path)


def report_model(
    model: LinearModel, path: PathLike, *, test: Dataset | None = None, title: str = "Linear model"
) -> None:
    """Write the page of a model, such as a scorecard."""
    tested = None if test is None else evaluate_test(TEST_DATA, test, model)
    if model.card is not None:
        measured = {} if tested is None else {TEST_DATA: tested.evaluation}
        _write(card_page(model, measured, title=title, data=test), path)
        return
    write_report(content_of_model(model, title=title, test=tested), path)


def report_frontier(frontier: Frontier, path: PathLike) -> None:
    """Write the page of a frontier."""
    _write(frontier_page(frontier.to_dict()), path)


def report_inspection(inspection: Inspection, path: PathLike, data: Dataset) -> None:
    """Write the page of a data set."""
    figures, texts = describe(data), list(data.texts)
    content = {**figures.to_dict(), "remarks": remarks(figures, inspection, texts), "texts": texts}
    _write(inspect_page({**content, **inspection.to_dict()}, data.source or "the data"), path)


def report_results(results: Any, path: PathLike, baseline: str | None = None) -> None:
    """Write the page of a bench."""
    write_results_page(results, path, baseline)


def report_explanation(
    model: Any,
    path: PathLike,
    data: Dataset,
    *,
    queries: Sequence[Any] | None = None,
    feature_costs: Any = None,
    metric: str | None = None,
    title: str = "Explanation",
) -> None:
    """Write the page that explains the rankings of a model."""
    linear = as_linear_model(model, "so its scores are not a sum over features")
    chosen_by = linear.chosen_by or {}
    by, profile = metric or chosen_by.get("metric", "ndcg@10"), profile_for(chosen_by.get("profile"), data)
    drops = feature_importance(linear, data, [by], feature_costs, profile=profile)
    worst = worst_queries(linear.predict(data), data, by, WORST_ON_PAGE, profile=profile)
    shown = [one.query for one in worst[:EXPLAINED_ON_PAGE]] if queries is None else queries
    explained = [explain_query(linear, data, query) for query in shown]
    measured = f"Over {data.n_queries} queries; {by}, {profile.phrase}."
    _write(explain_page(ExplainPage(title, linear, measured, drops, worst, explained, data)), path)


def report_sizes(
    rankers: Sequence[Any], path: PathLike, data: Dataset, valid: Dataset | None = None, **options: Any
) -> None:
    """Write the page of the best subsets of several sizes; ``options`` of ``evaluate_sizes``."""
    validation, n_folds = evaluate_sizes(rankers, data, valid, **options)
    on_valid = None if valid is None else VALIDATION_DATA
    _write(subset_page(subset_data(rankers, validation, measured_on(on_valid, n_folds))), path)


def _write(page: str, path: str | os.PathLike[str]) -> None:
    with atomic_write(path) as file:
        file.write(page)


def widen_to(data: Dataset, n_features: int) -> Dataset:
    """Append columns of zeros up to ``n_features`` if the columns are numbered, as in LETOR text."""
    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def query_texts(*parts: Dataset | None) -> dict[Any, str]:
    """Texts of the queries, if the data have them."""
    return {
        query: text for part in parts if part is not None for query, text in Names(part).query_texts.items()
    }


def feature_strength(ranker: Any, data: Dataset) -> Support | None:
    """Metric of ranking the data by each feature alone, averaged over the orders of equal values.

    None for curves, which need no monotone feature.
    """

    if ranker.preparation_.steps is not None:
        return None
    parameters = ranker.get_params(deep=False)
    profile = profile_for(parameters.get("profile"), data).with_ties("mean")
    metric = parameters.get("metric", "ndcg@10")
    strength = single_feature(ranker.preparation_.for_learning(data), metric, None, profile)
    return Support(strength=strength, metric=metric, profile=profile.name)


def valid_metrics(ranker: Any, name: str | None, held_out: Dataset | None) -> dict[str, Evaluation]:
    """Metrics on the validation data; the label states if the weights were also fitted to it."""

    if held_out is None:
        return {}
    parameters = ranker.get_params(deep=False)
    label = f"{name} (also used for fitting)" if parameters.get("refit_on") == "all" else str(name)
    scores = ranker.predict(held_out)
    return {label: evaluate_quietly(scores, held_out, REPORT_METRICS, parameters.get("profile"))}


def evaluate_test(name: str, data: Dataset, model: Any, ranker: Any = None) -> ModelTest:
    """Evaluate a model, and another candidate of its ranker, on data not used for fitting or selection."""

    chosen_by = model.chosen_by or {}
    metric, profile = chosen_by.get("metric", "ndcg@10"), chosen_by.get("profile")
    wide = widen_to(data, model.n_features)
    metrics = list(dict.fromkeys([metric, *REPORT_METRICS]))
    evaluation, rival = evaluate(model.predict(wide), data, metrics, profile), None
    if (compared := rival_of(ranker)) is not None:
        scores = model_of_candidate(ranker, compared[0].coef).predict(wide)
        rival = compared[1], evaluate_quietly(scores, data, metric, profile).per_query[metric]
    return ModelTest(name, evaluation, metric, rival)


def measured_on(valid: str | None, n_folds: int) -> str:
    """Sentences about the data that the held-out metric was measured on."""

    by_folds = f"by {n_folds}-fold cross-validation over the training queries" if n_folds else ""
    on = " and ".join(filter(None, [f"on {valid}" if valid else "", by_folds]))
    sets = f" {FOLD_SETS}" if n_folds else ""
    return f"Metric measured {on or 'on the training data, because a single query cannot be held out'}.{sets}"


def subset_data(rankers: Sequence[Any], validation: Validation, chosen: str) -> dict[str, Any]:
    """All sizes as plain data."""
    first = rankers[0]
    model = first.to_model()
    return {
        "n_features": first.n_features_in_,
        "ridge": first.ridge_,
        "pair_weighting": first.pair_weighting,
        "metric": validation.metric,
        "profile": validation.profile.name,
        "chosen": chosen,
        "priced": first.costs_ is not None,
        "limits": {name: model.parameters[name] for name in LIMIT_PARAMETERS},
        "fingerprint": model.fingerprint,
        "sizes": [
            _size(ranker, float(mean), float(error))
            for ranker, mean, error in zip(rankers, validation.mean, validation.standard_error, strict=True)
        ],
    }


def _size(ranker: Any, mean: float, error: float) -> dict[str, Any]:
    model = ranker.to_model()
    claims = {name: value for name, value in model.certificate.items() if name not in ("kind", "proof")}
    ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
    return {
        **claims,
        "root_bound": ranker.root_bound_,
        "n_nodes": ranker.n_iter_,
        "seconds": ranker.subset_.seconds,
        "mean": mean,
        "standard_error": error,
        "cost": model.metrics.get("cost"),
        "features": [term.name for term in ordered],
        "weights": {term.name: term.weight for term in ordered},
        "never": ranker.never_,
        "always": ranker.always_,
        "ties": ranker.ties_,
    }
