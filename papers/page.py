"""The results page, extended with published numbers, claims, studies, paths and pictures of the papers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from papers.bench import TABLES
from papers.choices import PaperResults, Reproduction
from papers.claims import claims_table
from papers.pictures import OVERVIEWS, PICTURES, render_pictures
from papers.stand_ins import stand_in_table
from papers.studies import study_tables
from ranksieve._types import FloatArray
from ranksieve.experiment.tables import baselines_by_data_set
from ranksieve.report.fit_page import Curves, largest_weights, path_explorer
from ranksieve.report.page import ALONE, Column, Styles
from ranksieve.report.results_page import (
    METRIC,
    DataSetContent,
    ResultsContent,
    Section,
    build_results_content,
    choose_baseline,
    features_of,
    styles_of,
    write_content,
)
from ranksieve.show.formats import metric_text, percent_text

STABILITY = Column(
    "stability",
    "stability",
    percent_text,
    "Share of the points on the certified paths of all folds that use the feature: larger if it enters "
    "early and stays.",
)
STRENGTH = Column(
    "strength",
    "alone, test NDCG@10",
    metric_text,
    f"NDCG@10 of ranking the test data by the feature alone, {ALONE}; profile of the bench, mean over folds.",
)


def write_page(results: Reproduction, path: str | os.PathLike[str], baseline: str | None = None) -> None:
    """Write the page of ``results``, loaded by :func:`papers.bench.load_results`, atomically."""
    write_content(page_content(results, baseline), path)


def page_content(results: Reproduction, baseline: str | None = None) -> ResultsContent:
    """The content of the page; ``baseline``: a method, by default the best dense one of each data set."""
    content, styles = build_results_content(results, baseline), styles_of(results)
    baselines = baselines_by_data_set(results, baseline)
    stand_ins = stand_in_table(results.folder)
    return replace(
        content,
        data_sets=[
            _add_paper_parts(data, results.data_sets[data.name], baselines[data.name], styles)
            for data in content.data_sets
        ],
        tables=[] if stand_ins is None else [stand_ins],
        overviews=render_pictures(OVERVIEWS, results, styles),
    )


def _add_paper_parts(
    content: DataSetContent, results: PaperResults, requested_baseline: str | None, styles: Styles
) -> DataSetContent:
    baseline = choose_baseline(results, requested_baseline)
    studies = [table for table in (claims_table(results), *study_tables(results)) if table.rows]
    section = Section("studies", "experiments", "The papers' experiments", studies)
    return replace(
        content,
        tables=[table for build in TABLES if (table := build(results, baseline)).rows],
        features=features_of(results, content.method, _feature_columns(results)),
        explorers=_explorers(results),
        pictures=render_pictures(PICTURES, results, {name: styles[name] for name in results.methods}),
        sections=[section] if studies else [],
    )


def _feature_columns(results: PaperResults) -> list[tuple[Column, FloatArray]]:
    """Additional columns of the feature table: STABILITY and STRENGTH."""
    columns = []
    points = [point for study in results.studies if "path" in study for point in study["path"]["weights"]]
    if points:
        shares = [np.mean([name in point for point in points]) for name in results.features]
        columns.append((STABILITY, np.array(shares)))
    alone = [study["single_features"]["alone"] for study in results.studies if "single_features" in study]
    if alone:
        columns.append((STRENGTH, np.mean(alone, axis=0)))
    return columns


def _explorers(results: PaperResults) -> list[dict[str, Any]]:
    """One path explorer per fold with a stored path."""
    explorers = []
    for number, study in enumerate(results.studies, start=1):
        if "path" in study:
            curves = curves_of_study(study["path"], results.features, METRIC, f"Fold {number}")
            weights = curves.points[curves.chosen]
            explorers.append(path_explorer(curves, sorted(weights, key=lambda name: -abs(weights[name]))))
    return explorers


def curves_of_study(path: Mapping[str, Any], names: Sequence[str], metric: str, label: str) -> Curves:
    """The stored path of one fold. Selected: the best point on validation data, ties: the sparsest."""
    coefs = np.array([[point.get(name, 0.0) for name in names] for point in path["weights"]])
    validation, used = path["validation"][metric], np.asarray(path["n_nonzero"])
    mean = np.where(used > 0, validation["mean"], -np.inf)
    chosen = int(np.lexsort((used, -mean))[0])
    return Curves(
        alphas=path["alphas"],
        objectives=path["objectives"],
        relative_gaps=path["relative_gaps"],
        n_nonzero=path["n_nonzero"],
        weights=largest_weights(coefs, coefs[chosen], names),
        points=path["weights"],
        chosen=chosen,
        metric=metric,
        mean=validation["mean"],
        standard_error=validation["standard_error"],
        test=path["test"][metric]["mean"],
        label=label,
    )
