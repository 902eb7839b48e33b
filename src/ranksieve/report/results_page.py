"""The page of a results folder: what it says, as plain data, and its rendering."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.atomic import atomic_write
from ranksieve.experiment.claims import claims_table
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.studies import study_tables
from ranksieve.experiment.studies.stand_ins import stand_in_table
from ranksieve.experiment.tables import (
    TABLES,
    Cell,
    Table,
    baseline_where_known,
    title,
    unfinished_sentences,
    word,
)
from ranksieve.report.canvas import Figure, Style, Styles, make_styles
from ranksieve.report.gains import Gains, difference
from ranksieve.report.page import Answer, Column, FeatureTable, feature_table, render_page, require_extra
from ranksieve.report.path_explorer import curves_of_study, path_explorer
from ranksieve.report.pictures import OVERVIEWS, PICTURES, Picture
from ranksieve.report.pictures.features import linear_coefs
from ranksieve.report.results_summary import (
    METRIC,
    answers,
    choose_baseline,
    choose_sparse,
    lead,
    make_gains,
    worst_gap,
)
from ranksieve.report.words import certificate, metric_text, percent_text, share_text

FEATURE_COLUMNS = (
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


@dataclass(frozen=True)
class RenderedPicture:
    """A picture with its figure; ``legend`` names the lines by method."""

    name: str
    title: str
    caption: str
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
    features: FeatureTable
    explorers: Sequence[Mapping[str, Any]]
    pictures: Sequence[RenderedPicture]
    studies: Sequence[Table]
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
    overviews: Sequence[RenderedPicture]
    stand_ins: Table | None
    unfinished: Sequence[str] = ()


def write_results_page(results: Results, path: str | os.PathLike[str], baseline: str | None = None) -> None:
    """Write the page of a results folder, whole or not at all.

    Parameters
    ----------
    results : Results
        As :func:`ranksieve.experiment.results_folder.load_results` gives them.
    path : path
        The HTML file.
    baseline : str, optional
        Method that the others are compared with; default the best dense one of each data set.
    """
    require_extra()
    page = render_results(build_results_content(results, baseline))
    with atomic_write(path) as file:
        file.write(page)


def render_results(content: ResultsContent) -> str:
    """The page as text."""
    numbered = {f"d{k}": data for k, data in enumerate(content.data_sets, start=1)}
    figures = {f"{at}-{p.name}": p.figure for at, data in numbered.items() for p in data.pictures}
    data = {
        "figures": figures | {f"all-{p.name}": p.figure for p in content.overviews},
        "explorers": {at: data.explorers for at, data in numbered.items()},
        "gains": {at: data.gains.page_data() for at, data in numbered.items()},
        "features": {f"{at}-table": data.features.methods for at, data in numbered.items()},
    }
    return render_page("results.html.j2", data, content=content)


def build_results_content(results: Results, baseline: str | None = None) -> ResultsContent:
    """The content of the page; ``baseline`` names a method, default the best dense one of each data set."""
    titles = {name: title(name) for data in results.data_sets.values() for name in data.methods}
    styles = make_styles(titles)
    given = baseline_where_known(results, baseline)
    return ResultsContent(
        f"Sparse rankers on {' and '.join(results.data_sets)}",
        next(iter(results.data_sets.values())).header["version"],
        [_data_set(data, given[name], styles) for name, data in results.data_sets.items()],
        _render_pictures(OVERVIEWS, results, styles),
        stand_in_table(results),
        unfinished_sentences(results),
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
        _feature_table(results, method),
        _explorers(results),
        _render_pictures(PICTURES, results, {name: styles[name] for name in results.methods}),
        [table for table in (claims_table(results), *study_tables(results)) if table.rows],
        certificate_table(results),
        [provenance_table(results), parameter_table(results)],
    )


def _render_pictures(
    pictures: Mapping[str, Picture[Any]], source: Any, styles: Styles
) -> list[RenderedPicture]:
    """Those pictures for which the results hold the data."""
    rendered = []
    for name, picture in pictures.items():
        figure = picture.draw(source, styles)
        if figure is not None:
            legend = [*styles.items(), *picture.others.items()] if picture.legend else []
            rendered.append(RenderedPicture(name, picture.title, picture.caption, figure, legend))
    return rendered


def _explorers(results: DataSetResults) -> list[dict[str, Any]]:
    """One per fold that has its path."""
    profile, found = results.header["identity"]["profile"], []
    for number, study in enumerate(results.studies, start=1):
        if "path" in study:
            curves = curves_of_study(study["path"], results.features, METRIC, profile, f"Fold {number}")
            weights = curves.points[curves.chosen]
            found.append(path_explorer(curves, sorted(weights, key=lambda name: -abs(weights[name]))))
    return found


def _feature_table(results: DataSetResults, method: str) -> FeatureTable:
    """Columns of the method, or of the first linear one, then those that all methods share."""
    by_method: dict[str, dict[str, FloatArray]] = {}
    coefs_of = linear_coefs(results)
    for name, coefs in coefs_of.items():
        norms = np.abs(coefs).sum(axis=1, keepdims=True)
        scaled = np.divide(coefs, norms, out=np.zeros_like(coefs), where=norms > 0)
        by_method[name] = {"weight": scaled.mean(axis=0), "folds": np.mean(coefs != 0, axis=0)}
    values = dict(by_method.get(method) or next(iter(by_method.values()), {}))
    if coefs_of:
        values["models"] = np.mean(np.concatenate(list(coefs_of.values())) != 0, axis=0)
    points = [point for study in results.studies if "path" in study for point in study["path"]["weights"]]
    if points:
        values["stability"] = np.array([np.mean([n in point for point in points]) for n in results.features])
    alone = [study["single_features"]["alone"] for study in results.studies if "single_features" in study]
    if alone:
        values["strength"] = np.mean(alone, axis=0)
    table = feature_table(FEATURE_COLUMNS, results.features, values)
    place = {name: j for j, name in enumerate(results.features)}
    shown = [place[name] for name, _ in table.rows]
    methods = {
        name: {key: column[shown].tolist() for key, column in columns.items()}
        for name, columns in by_method.items()
    }
    return replace(table, methods=methods)


def certificate_table(results: DataSetResults) -> Table:
    """Of each method, the largest relative gap of its folds' chosen fits."""
    rows = []
    for name in results.methods:
        gap = worst_gap(results, name)
        text = "–" if gap is None else f"{gap:.1e}".replace("-", "−")
        rows.append((word(title(name)), Cell(gap, text), word(certificate(gap))))
    return Table(
        "certificates",
        f"{results.name}: certificates",
        ("method", "largest relative gap", "in words"),
        tuple(rows),
        "Of the folds' chosen fits the one furthest from its proof, by the duality gap as a share of the "
        "objective: each method's own training objective, not its accuracy. Methods that stop early or are "
        "not convex have a large gap or none.",
    )


def provenance_table(results: DataSetResults) -> Table:
    """Software and data."""
    header = results.header
    identity, notes = header["identity"], header["notes"]
    software = {"ranksieve": header["version"], **notes["versions"]}
    facts = {
        "software": ", ".join(f"{name} {version}" for name, version in software.items()),
        "metric profile": identity["profile"],
        "folds": identity["n_folds"],
        "features": f"{len(notes['features'])}, of which {sum(notes['varying'])} vary within a query",
    }
    for number, fold in enumerate(next(iter(results.methods.values())), start=1):
        n_queries, n_docs = fold.header["notes"]["n_queries"], fold.header["notes"]["n_docs"]
        facts[f"fold {number} data"] = "; ".join(
            f"{part} {fingerprint} ({n_queries[part]} queries, {n_docs[part]} documents)"
            for part, fingerprint in fold.header["identity"]["fingerprints"].items()
        )
    rows = tuple((word(name), word(str(text))) for name, text in facts.items())
    return Table("provenance", f"{results.name}: software and data", ("what", "value"), rows)


def parameter_table(results: DataSetResults) -> Table:
    """Grids, choices and parameters of each method."""
    rows = []
    for name, folds in results.methods.items():
        identity = folds[0].header["identity"]
        ranges: dict[str, list[Any]] = {}
        for point in identity["grid"]:
            for key, value in point.items():
                if value not in ranges.setdefault(key, []):
                    ranges[key].append(value)
        grid = "; ".join(f"{key} ∈ {{{', '.join(map(_short, values))}}}" for key, values in ranges.items())
        cells = (
            title(name),
            identity["select"],
            f"{len(identity['grid'])}: {grid or 'one'}",
            "; ".join(_settings((fold.chosen or {})["parameters"]) for fold in folds),
            _settings(identity["parameters"]),
        )
        rows.append(tuple(word(text) for text in cells))
    return Table(
        "parameters",
        f"{results.name}: grids, choices, parameters",
        ("method", "chosen by", "grid points", "chosen in each fold", "parameters and seeds"),
        tuple(rows),
        "The parameters are those of the first fold; what the grid varies is overridden by it.",
    )


def _settings(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in parameters.items()) or "defaults"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
