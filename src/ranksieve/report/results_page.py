"""The page of a results folder: what it says, as plain data, and its rendering."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.files import atomic_write
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import (
    TABLES,
    Cell,
    Table,
    baseline_where_known,
    title,
    unfinished_sentences,
    word,
)
from ranksieve.report.gains import Gains, difference
from ranksieve.report.page import (
    Answer,
    Column,
    FeatureTable,
    Figure,
    Style,
    Styles,
    certificate,
    feature_table,
    make_styles,
    percent_text,
    render_page,
    require_extra,
    share_text,
)
from ranksieve.report.results_pictures import OVERVIEWS, PICTURES, Picture, linear_coefs
from ranksieve.report.results_summary import (
    answers,
    choose_baseline,
    choose_sparse,
    lead,
    make_gains,
    worst_gap,
)

FEATURE_COLUMNS = (
    Column("weight", "weight", share_text, "Mean weight over folds, each model scaled to Σ|w| = 1."),
    Column("folds", "folds", percent_text, "Share of this method's folds that use the feature."),
    Column("models", "all methods", percent_text, "Share of the models of all methods that use it."),
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
class Section:
    """Further tables of a data set; ``link`` is its entry in the contents."""

    name: str
    link: str
    title: str
    tables: Sequence[Table]


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
    pictures: Sequence[RenderedPicture]
    certificates: Table
    provenance: Sequence[Table]
    explorers: Sequence[Mapping[str, Any]] = ()
    """Of the path of each fold, as :func:`ranksieve.report.fit_page.path_explorer` gives them."""
    sections: Sequence[Section] = ()

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
    unfinished: Sequence[str] = ()
    tables: Sequence[Table] = ()
    """Of all data sets."""


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
    write_content(build_results_content(results, baseline), path)


def write_content(content: ResultsContent, path: str | os.PathLike[str]) -> None:
    """Write a page, whole or not at all."""
    require_extra()
    page = render_results(content)
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
    """The content of the page; ``baseline`` names a method, default the best dense one of each data set.

    ``dataclasses.replace`` adds to it: explorers, sections and pictures of a data set, tables of all.
    """
    styles = styles_of(results)
    given = baseline_where_known(results, baseline)
    return ResultsContent(
        f"Sparse rankers on {' and '.join(results.data_sets)}",
        next(iter(results.data_sets.values())).header["version"],
        [_data_set(data, given[name], styles) for name, data in results.data_sets.items()],
        render_pictures(OVERVIEWS, results, styles),
        unfinished_sentences(results),
    )


def styles_of(results: Results) -> Styles:
    """How each method looks in all pictures."""
    return make_styles({name: title(name) for data in results.data_sets.values() for name in data.methods})


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
        features_of(results, method),
        render_pictures(PICTURES, results, {name: styles[name] for name in results.methods}),
        certificate_table(results),
        [provenance_table(results), parameter_table(results)],
    )


def render_pictures(
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


def features_of(
    results: DataSetResults, method: str, further: Sequence[tuple[Column, FloatArray]] = ()
) -> FeatureTable:
    """Columns of the method, or of the first linear one, then those that all methods share.

    ``further`` columns have a value for each feature.
    """
    by_method: dict[str, dict[str, FloatArray]] = {}
    coefs_of = linear_coefs(results)
    for name, coefs in coefs_of.items():
        norms = np.abs(coefs).sum(axis=1, keepdims=True)
        scaled = np.divide(coefs, norms, out=np.zeros_like(coefs), where=norms > 0)
        by_method[name] = {"weight": scaled.mean(axis=0), "folds": np.mean(coefs != 0, axis=0)}
    values = dict(by_method.get(method) or next(iter(by_method.values()), {}))
    if coefs_of:
        values["models"] = np.mean(np.concatenate(list(coefs_of.values())) != 0, axis=0)
    values |= {column.key: numbers for column, numbers in further}
    columns_shown = (*FEATURE_COLUMNS, *(column for column, _ in further))
    table = feature_table(columns_shown, results.features, values)
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
