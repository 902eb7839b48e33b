"""Page of a results folder: summary, tables, figure of MAP against density."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.files import atomic_write
from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.experiment.tables import (
    RESULT_TABLES,
    Cell,
    ResultTable,
    baselines_by_data_set,
    default_baseline,
    method_title,
    text_cell,
    unfinished_messages,
)
from ranksieve.rankers.frontier import pareto_front
from ranksieve.report.page import (
    HOW_SURE,
    OTHER,
    WHICH_FEATURES,
    WITHIN_NOISE,
    Answer,
    Column,
    Difference,
    FeatureTable,
    Figure,
    Gains,
    Style,
    Styles,
    axis,
    difference,
    feature_table,
    gain_answers,
    layout,
    make_styles,
    method_line,
    render_page,
    require_extra,
)
from ranksieve.show.formats import (
    certificate,
    join_names,
    metric_title,
    p_value,
    percent_text,
    share_text,
    signed,
)

METRIC = "ndcg@10"
DENSE = 0.99  # mean share of the varying features in use
MAX_LABELS = 6  # with more methods, only those of the front are named
LEFT_SHARE = 0.2  # of the width; there the label is placed to the right of its point
MAP_TITLE, MAP_CAPTION = (
    "Accuracy against density",
    "Test MAP and density, the share of the varying features in use, means over folds: further left is "
    "sparser, higher is better. The dotted line is the Pareto front: no other method is both sparser and "
    "more accurate than those on it.",
)


def map_against_density(results: DataSetResults, styles: Styles) -> Figure | None:
    """Test MAP against density, with the Pareto front."""
    rows = {name: result.to_row() for name, result in results.results.items()}
    linear: list[dict[str, Any]] = [
        {"method": name, **row} for name, row in rows.items() if not np.isnan(row["density"])
    ]
    if not linear:
        return None
    front = pareto_front(linear, "density", "map")
    steps = {"x": [method["density"] for method in front], "y": [method["map"] for method in front]}
    dotted = {"color": OTHER, "dash": "dot", "width": 1.5, "shape": "hv"}
    look: dict[str, Any] = {"mode": "markers", "hover": "{name}\ndensity {x:.3f}\nMAP {y:.4f}"}
    marks = [
        method_line(styles[one["method"]], one["method"], [one["density"]], [one["map"]], size=12, **look)
        for one in linear
    ]
    widest = max(method["density"] for method in linear)
    labels = [
        _label(styles[method["method"]].title, method["density"], method["map"], widest, k)
        for k, method in enumerate(linear if len(linear) <= MAX_LABELS else front)
    ]
    axes = {
        "xaxis": axis("density: share of the varying features in use", rangemode="tozero"),
        "yaxis": axis("test MAP"),
    }
    front_line = {"type": "scatter", "mode": "lines", **steps, "line": dotted}
    return {"data": [front_line, *marks], "layout": layout(460, **axes, annotations=labels)}


def _label(title: str, x: float, y: float, widest: float, index: int) -> dict[str, Any]:
    """Label above a method; heights alternate.

    Narrow pages omit annotations named "wide".
    """
    side = {"xanchor": "left", "ax": 8} if x < LEFT_SHARE * widest else {"xanchor": "right", "ax": -8}
    return {"name": "wide", "x": x, "y": y, "text": title, "ay": -20 - 18 * (index % 2), **side}


def linear_coefs(results: DataSetResults) -> dict[str, FloatArray]:
    """Weights (folds × features) of the linear methods."""
    stacked = {name: np.array([f.coef for f in result.folds]) for name, result in results.results.items()}
    return {name: coefs for name, coefs in stacked.items() if not np.isnan(coefs).any()}


def is_dense(results: DataSetResults, name: str) -> bool:
    """Return True if a method uses (nearly) all features that vary, or is not linear."""
    share = results.results[name].to_row()["density"]
    return bool(np.isnan(share) or share >= DENSE)


def choose_baseline(results: DataSetResults, name: str | None) -> str:
    """The named method, else the dense method with the best test metric, else the default of the tables."""
    dense = [name for name in results.methods if is_dense(results, name)]
    if name is not None or not dense:
        return default_baseline(results, name)
    return max(dense, key=lambda name: results.results[name].mean(METRIC))


def choose_sparse(results: DataSetResults, baseline: str) -> str:
    """The method of the summary: the first sparse one that is not the baseline."""
    others = [name for name in results.methods if name != baseline] or [baseline]
    return next((name for name in others if not is_dense(results, name)), others[0])


def make_gains(results: DataSetResults, baseline: str) -> Gains:
    """Every method against the baseline on the test queries of all folds."""
    pooled = results.pooled
    return Gains(
        METRIC,
        f"on the {results.n_queries} test queries",
        method_title(baseline),
        pooled[baseline].query_ids.tolist(),
        pooled[baseline].per_query[METRIC],
        {name: (method_title(name), e.per_query[METRIC]) for name, e in pooled.items() if name != baseline},
    )


def lead(results: DataSetResults, name: str, baseline: str, change: Difference | None) -> str:
    """The summary in one sentence; ``change``: difference from the baseline, None without another method."""
    uses = f"{method_title(name)} uses {_size_of_all(results, name)} features"
    if change is None:
        return f"{uses}; there is no other method to compare it with."
    kind = "the best dense model" if is_dense(results, baseline) else "the baseline"
    link = "of" if change.verdict == WITHIN_NOISE else "than"
    return (
        f"{uses}; its {metric_title(METRIC)} is {change.verdict} {link} "
        f"{kind} ({method_title(baseline)}, {_size(results, baseline) or 'all'} features): difference "
        f"{signed(change.mean)} (95 % CI {signed(change.low)} to {signed(change.high)}), "
        f"{p_value(change.p_t)} (paired two-sided t-test)."
    )


def answers(results: DataSetResults, name: str, gains: Gains, change: Difference | None) -> list[Answer]:
    """The summary box: features, their stability, loss against the baseline, significance."""
    first = [_feature_answer(results, name), _stability_answer(results, name)]
    return first if change is None else [*first, *gain_answers(gains, name, change)]


def worst_gap(results: DataSetResults, name: str) -> float | None:
    """Largest relative gap of the chosen fits of all folds; None if one has no gap."""
    gaps = [(fold.chosen or {})["certificate"].get("relative_gap") for fold in results.methods[name]]
    return None if None in gaps else max(gaps)


def jaccard(sets: list[set[str]]) -> float:
    """Mean of |a ∩ b| / |a ∪ b| over all pairs; NaN for fewer than two sets."""
    shares = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)]
    return float(np.mean(shares)) if shares else float("nan")


def _size(results: DataSetResults, name: str) -> str:
    """Mean number of features over folds; empty for a ranker that is not linear."""
    mean = results.results[name].to_row()["n_selected"]
    return "" if np.isnan(mean) else f"{mean:.1f}".removesuffix(".0")


def _size_of_all(results: DataSetResults, name: str) -> str:
    size, most = _size(results, name), len(results.features)
    return f"{size} of {most}" if size else f"all {most}"


def _used(results: DataSetResults, name: str) -> list[set[str]]:
    """The features of each fold's model; none for a ranker that is not linear."""
    return [set((fold.chosen or {})["weights"] or ()) for fold in results.methods[name]]


def _feature_answer(results: DataSetResults, name: str) -> Answer:
    short = _size_of_all(results, name)
    if not _size(results, name):
        return Answer(
            WHICH_FEATURES, short, "Not linear: it may use any feature, and features have no weights."
        )
    used = _used(results, name)
    counts = {feature: sum(feature in of for of in used) for feature in results.features}
    always = [feature for feature, count in counts.items() if count == len(used)]
    mostly = [feature for feature, count in counts.items() if len(used) / 2 < count < len(used)]
    sizes = sorted(len(of) for of in used)
    sentences = [
        f"{sizes[0]} to {sizes[-1]} per fold.",
        f"In every fold: {join_names(always)}." if always else "No feature is in every fold.",
        f"In most folds: {join_names(mostly)}." if mostly else "",
    ]
    return Answer(WHICH_FEATURES, short, " ".join(filter(None, sentences)))


def _stability_answer(results: DataSetResults, name: str) -> Answer:
    proof = certificate(worst_gap(results, name))
    if not _size(results, name):
        return Answer(HOW_SURE, "no proof", f"In every fold, the objective is {proof}.")
    shared = jaccard(_used(results, name))
    if np.isnan(shared):
        return Answer(HOW_SURE, "one fold", f"Its objective is {proof}.")
    share = percent_text(shared)
    details = (
        f"Two folds share {share} of their features on average (Jaccard index; their training data overlap). "
        f"In every fold, the objective is {proof}."
    )
    return Answer(HOW_SURE, f"{share} shared", details)


FEATURE_COLUMNS = (
    Column("weight", "weight", share_text, "Mean weight over folds, each model scaled to Σ|w| = 1."),
    Column("folds", "folds", percent_text, "Share of this method's folds that use the feature."),
    Column("models", "all methods", percent_text, "Share of the models of all methods that use the feature."),
)


@dataclass(frozen=True)
class Picture:
    """A figure with its caption; ``legend`` names the lines by method."""

    name: str
    title: str
    caption: str
    figure: Figure
    legend: Sequence[tuple[str, Style]]


@dataclass(frozen=True, eq=False)
class Section:
    """Additional tables of a data set; ``link`` is the entry in the table of contents."""

    name: str
    link: str
    title: str
    tables: Sequence[ResultTable]


@dataclass(frozen=True, eq=False)
class DataSetContent:
    """Content of one data set; ``method`` is the method of the summary."""

    name: str
    method: str
    baseline: str
    lead: str
    answers: Sequence[Answer]
    tables: Sequence[ResultTable]
    gains: Gains
    features: FeatureTable
    pictures: Sequence[Picture]
    certificates: ResultTable
    provenance: Sequence[ResultTable]
    explorers: Sequence[Mapping[str, Any]] = ()
    """Path of each fold, from :func:`ranksieve.report.fit_page.path_explorer`."""
    sections: Sequence[Section] = ()

    @property
    def first_picture(self) -> Picture:
        """The picture above the tables: accuracy against density, or without linear methods the first one."""
        return next((one for one in self.pictures if one.title == MAP_TITLE), self.pictures[0])

    @property
    def further_pictures(self) -> list[Picture]:
        return [one for one in self.pictures if one is not self.first_picture]

    @property
    def choices(self) -> dict[str, str]:
        """Methods whose weights the feature table can show."""
        return {name: method_title(name) for name in self.features.methods}


@dataclass(frozen=True, eq=False)
class ResultsContent:
    """Content of the page."""

    title: str
    version: str
    data_sets: Sequence[DataSetContent]
    unfinished: Sequence[str]
    tables: Sequence[ResultTable] = ()
    """Tables over all data sets."""
    overviews: Sequence[Picture] = ()


def write_results_page(results: Results, path: str | os.PathLike[str], baseline: str | None = None) -> None:
    """Write the page of a results folder atomically; ``baseline`` as in build_results_content."""
    write_content(build_results_content(results, baseline), path)


def write_content(content: ResultsContent, path: str | os.PathLike[str]) -> None:
    """Write a page atomically."""
    require_extra()
    page = render_results(content)
    with atomic_write(path) as file:
        file.write(page)


def render_results(content: ResultsContent) -> str:
    """Render the page."""
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
    """Content of the page; ``baseline`` is a method, by default the best dense one of each data set.

    Use ``dataclasses.replace`` to add explorers, sections and pictures of a data set, or overall tables.
    """
    styles = styles_of(results)
    baselines = baselines_by_data_set(results, baseline)
    return ResultsContent(
        f"Sparse rankers on {' and '.join(results.data_sets)}",
        next(iter(results.data_sets.values())).header["version"],
        [_data_set(data, baselines[name], styles) for name, data in results.data_sets.items()],
        unfinished_messages(results),
    )


def styles_of(results: Results) -> Styles:
    """Style of each method in all figures."""
    names = [name for data in results.data_sets.values() for name in data.methods]
    return make_styles({name: method_title(name) for name in names})


def _data_set(results: DataSetResults, baseline_name: str | None, styles: Styles) -> DataSetContent:
    baseline = choose_baseline(results, baseline_name)
    method = choose_sparse(results, baseline)
    gains = make_gains(results, baseline)
    change = None if method == baseline else difference(gains.ours[method][1], gains.theirs)
    return DataSetContent(
        results.name,
        method,
        method_title(baseline),
        lead(results, method, baseline, change),
        answers(results, method, gains, change),
        [table for build in RESULT_TABLES if (table := build(results, baseline)).rows],
        gains,
        features_of(results, method),
        _pictures(results, {name: styles[name] for name in results.methods}),
        certificate_table(results),
        [provenance_table(results), parameter_table(results)],
    )


def _pictures(results: DataSetResults, styles: Styles) -> list[Picture]:
    figure = map_against_density(results, styles)
    if figure is None:
        return []
    return [Picture("map_against_density", MAP_TITLE, MAP_CAPTION, figure, list(styles.items()))]


def features_of(
    results: DataSetResults, method: str, further: Sequence[tuple[Column, FloatArray]] = ()
) -> FeatureTable:
    """Columns of the method, or of the first linear one, then columns that do not depend on the method.

    ``further``: additional columns with a value for each feature.
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
    index = {name: j for j, name in enumerate(results.features)}
    shown = [index[name] for name, _ in table.rows]
    methods = {
        name: {key: column[shown].tolist() for key, column in columns.items()}
        for name, columns in by_method.items()
    }
    return replace(table, methods=methods)


def certificate_table(results: DataSetResults) -> ResultTable:
    """Largest relative gap of the chosen fits of each method."""
    rows = []
    for name in results.methods:
        gap = worst_gap(results, name)
        text = "–" if gap is None else f"{gap:.1e}".replace("-", "−")
        rows.append((text_cell(method_title(name)), Cell(gap, text), text_cell(certificate(gap))))
    return ResultTable(
        "certificates",
        f"{results.name}: certificates",
        ("method", "largest relative gap", "objective"),
        tuple(rows),
        "Largest duality gap of the chosen fits of all folds, as a share of the objective. It is about the "
        "training objective of each method, not its accuracy. Methods that stop early or are not convex have "
        "a large gap or none.",
    )


def provenance_table(results: DataSetResults) -> ResultTable:
    """Versions of software, and fingerprints of data."""
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
    rows = tuple((text_cell(name), text_cell(str(text))) for name, text in facts.items())
    return ResultTable("provenance", f"{results.name}: software and data", ("what", "value"), rows)


def parameter_table(results: DataSetResults) -> ResultTable:
    """Grids, selected points and parameters of each method."""
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
            method_title(name),
            identity["select"],
            f"{len(identity['grid'])}: {grid or 'one'}",
            "; ".join(_settings((fold.chosen or {})["parameters"]) for fold in folds),
            _settings(identity["parameters"]),
        )
        rows.append(tuple(text_cell(text) for text in cells))
    return ResultTable(
        "parameters",
        f"{results.name}: grids, selected points, parameters",
        ("method", "selected by", "grid points", "selected in each fold", "parameters and seeds"),
        tuple(rows),
        "Parameters of the first fold; those in the grid are overridden by it.",
    )


def _settings(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in parameters.items()) or "defaults"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
