"""What the page of a results folder says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import TABLES, Table, baseline_where_known, title
from ranksieve.report.answers import Answer
from ranksieve.report.canvas import Figure, Style, Styles, make_styles
from ranksieve.report.feature_rows import (
    Column,
    FeatureRows,
    make_rows,
    metric_text,
    percent_text,
    share_text,
)
from ranksieve.report.figures import colours, path_figure
from ranksieve.report.gains import Gains, difference
from ranksieve.report.paths import curves_of_study, explorer
from ranksieve.report.pictures import OVERVIEWS, PICTURES, Picture
from ranksieve.report.provenance import certificate_table, provenance_tables
from ranksieve.report.results_summary import METRIC, answers, choose_baseline, choose_sparse, lead, make_gains


@dataclass(frozen=True)
class Drawn:
    """A picture with its figure; ``legend`` names the lines by method."""

    name: str
    title: str
    words: str
    figure: Figure
    legend: Sequence[tuple[str, Style]]


@dataclass(frozen=True, eq=False)
class DataSetContent:
    """One data set: ``method`` is the one that the summary speaks of."""

    name: str
    method: str
    baseline: str
    lead: str
    answers: Sequence[Answer]
    tables: Sequence[Table]
    gains: Gains
    features: FeatureRows
    explorers: Sequence[Mapping[str, Any]]
    pictures: Sequence[Drawn]
    certificates: Table
    provenance: Sequence[Table]

    @property
    def choices(self) -> dict[str, str]:
        """Methods whose weights the table of features can show."""
        return {name: title(name) for name in self.features.methods}


@dataclass(frozen=True, eq=False)
class ResultsContent:
    """The whole page."""

    title: str
    version: str
    data_sets: Sequence[DataSetContent]
    overviews: Sequence[Drawn]


def build_results_content(results: Results, baseline: str | None = None) -> ResultsContent:
    """The content of the page; ``baseline`` names a method, default the best dense one of each data set."""
    titles = {name: title(name) for data in results.data_sets.values() for name in data.methods}
    styles = make_styles(titles)
    given = baseline_where_known(results, baseline)
    data_sets = [_data_set(data, given[name], styles) for name, data in results.data_sets.items()]
    version = next(iter(results.data_sets.values())).header["version"]
    return ResultsContent(
        f"Sparse rankers on {' and '.join(results.data_sets)}",
        version,
        data_sets,
        list(_drawn(OVERVIEWS, results, styles)),
    )


def _data_set(results: DataSetResults, given: str | None, styles: Styles) -> DataSetContent:
    baseline = choose_baseline(results, given)
    method = choose_sparse(results, baseline)
    gains = make_gains(results, baseline)
    change = None if method == baseline else difference(gains.ours[method][1], gains.theirs)
    return DataSetContent(
        results.name,
        method,
        title(baseline),
        lead(results, method, baseline, change),
        answers(results, method, gains, change),
        [table for build in TABLES if (table := build(results, baseline)).rows],
        gains,
        _feature_rows(results, method),
        _explorers(results),
        list(_drawn(PICTURES, results, {name: styles[name] for name in results.methods})),
        certificate_table(results),
        provenance_tables(results),
    )


def _drawn(pictures: Mapping[str, Picture[Any]], source: Any, styles: Styles) -> Sequence[Drawn]:
    drawn = []
    for name, picture in pictures.items():
        figure = picture.draw(source, styles)
        if figure is not None:
            legend = [*styles.items(), *picture.others.items()] if picture.legend else []
            drawn.append(Drawn(name, picture.title, picture.words, figure, legend))
    return drawn


def _explorers(results: DataSetResults) -> list[dict[str, Any]]:
    """One a fold that has its path."""
    profile, found = results.header["identity"]["profile"], []
    for number, study in enumerate(results.studies, start=1):
        if "path" in study:
            curves = curves_of_study(study["path"], results.features, METRIC, profile, f"Fold {number}")
            chosen = curves.points[curves.chosen]
            named = sorted(chosen, key=lambda name: -abs(chosen[name]))
            found.append(explorer(curves, path_figure(curves, named), colours(named)))
    return found


def _feature_rows(results: DataSetResults, method: str) -> FeatureRows:
    columns = (
        Column("weight", "weight", share_text, "Mean weight over folds, each model scaled to Σ|w| = 1."),
        Column("folds", "folds", percent_text, "Share of this method's folds that use the feature."),
        Column("models", "all methods", percent_text, "Share of the models of all methods that use it."),
        Column(
            "stability",
            "stability",
            percent_text,
            "Share of all points of the folds' certified paths that use it: the earlier it enters and the "
            "longer it stays, the larger.",
        ),
        Column("strength", "alone, NDCG@10", metric_text, "Test NDCG@10 of ranking by this feature alone."),
    )
    of_method = {name: _method_columns(coefs) for name, coefs in _linear_coefs(results).items()}
    shown = of_method.get(method) or next(iter(of_method.values()), {})  # a ranker may have no weights
    values = {**shown, **_shared_columns(results)}
    rows = make_rows(columns, results.features, values)
    place = {name: j for j, name in enumerate(results.features)}
    kept = [place[name] for name, _ in rows.rows]
    by_method = {
        name: {key: [column[j] for j in kept] for key, column in of.items()} for name, of in of_method.items()
    }
    return FeatureRows(rows.columns, rows.rows, rows.n_features, by_method)


def _linear_coefs(results: DataSetResults) -> dict[str, FloatArray]:
    """Folds × features of each linear method."""
    stacked = {name: np.array([f.coef for f in result.folds]) for name, result in results.results.items()}
    return {name: coefs for name, coefs in stacked.items() if not np.isnan(coefs).any()}


def _method_columns(coefs: FloatArray) -> dict[str, list[float]]:
    norms = np.abs(coefs).sum(axis=1, keepdims=True)
    scaled = np.divide(coefs, norms, out=np.zeros_like(coefs), where=norms > 0)
    return {"weight": scaled.mean(axis=0).tolist(), "folds": np.mean(coefs != 0, axis=0).tolist()}


def _shared_columns(results: DataSetResults) -> dict[str, list[float]]:
    coefs = list(_linear_coefs(results).values())
    columns = {"models": np.mean(np.concatenate(coefs) != 0, axis=0)} if coefs else {}
    paths = [study["path"]["weights"] for study in results.studies if "path" in study]
    if paths:
        points = [point for path in paths for point in path]
        columns["stability"] = np.array([np.mean([n in point for point in points]) for n in results.features])
    alone = [study["single_features"]["alone"] for study in results.studies if "single_features" in study]
    if alone:
        columns["strength"] = np.mean(alone, axis=0)
    return {key: column.tolist() for key, column in columns.items()}
