"""What a fit shows: the held-out metric, the features with their weights, the budget and the proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ranksieve.errors import DataError
from ranksieve.show.formats import (
    CURVE_COLUMNS,
    by_range,
    curve_cells,
    join_names,
    level_text,
    metric_title,
    percent_text,
    plural,
)
from ranksieve.show.result import Part, Table
from ranksieve.show.sentences import (
    SELECTION_FREQUENCY,
    change_table,
    choice_of,
    choice_sentences,
    optimality,
    paid_for,
)

SCALED_WEIGHT = "scaled weight"
CHANGED_QUERIES_SHOWN = 3  # losses, and as many gains
VALIDATION_DATA, PREVIOUS_MODEL = "the validation data", "the previous model"


def selection_text(ranker: Any, valid: str | None) -> str:
    """The data that the model was selected on, to follow "Selected"; empty for a method without selection."""
    parameters = ranker.get_params(deep=False)
    folds = getattr(ranker, "n_folds_", 0)
    by_folds = f"by {folds}-fold cross-validation over the training queries" if folds > 1 else ""
    if valid is None and "cv" in parameters:
        return by_folds or "on the training data"
    return " and ".join(filter(None, [f"on {valid}" if valid else "", by_folds]))


def ranker_parts(ranker: Any, model: Any, uncounted: str = "", scaled: bool = False) -> Iterator[Part]:
    """A fitted ranker, with the changes since the previous model if there was one."""
    valid = VALIDATION_DATA if "valid" in model.data else None
    yield from fit_parts(ranker, model, selection_text(ranker, valid), uncounted, scaled)
    if (changes := getattr(ranker, "changes_", None)) is not None:
        yield from change_parts(changes, PREVIOUS_MODEL, {})


def fit_parts(
    ranker: Any, model: Any, choice: str = "", uncounted: str = "", scaled: bool = False
) -> Iterator[Part]:
    """Held-out metric, features and proof of a model and the ranker that it is from, None if unknown.

    ``choice`` follows "Selected"; ``uncounted`` is a sentence about lists that are too short. ``scaled``:
    show the weights of the scaled features.
    """
    if not hasattr(model, "terms"):
        used = f"{len(model.names)} of {model.n_features} features"
        yield f"{model.method} has {model.ensemble.size_text} and uses {used}."
        return
    used = f"{len(model.terms)} of {model.n_features} features"
    none = f"none of the {model.n_features} features, so all scores are equal"
    yield f"{model.method or 'A linear model'} uses {used if model.terms else none}."
    how = f", {'selected' if model.chosen_by else 'measured'} {choice}" if choice else ""
    measured = [
        f"{name.capitalize()}: {value:.4f}{how}." for name, value in model.metrics.items() if name != "cost"
    ]
    yield from choice_sentences(ranker, choice) or measured
    if uncounted:
        yield uncounted
    if "cost" in model.metrics:
        limit = model.parameters.get("max_cost")
        of = "" if limit is None else f" of at most {float(limit):g}"
        yield f"Cost: {model.metrics['cost']:g}{of}."
    if model.terms:
        yield feature_table(ranker, model, scaled)
        yield from _group_costs(ranker)
        if choice_of(ranker) is not None:
            yield f"Selected: {SELECTION_FREQUENCY}"
    if proof := optimality(model.certificate, model.parameters):
        yield proof


def fit_line(model: Any) -> str:
    """A model in a few words."""
    used = f"{len(model.names)} of {plural(model.n_features, 'feature')}"
    if not hasattr(model, "terms"):
        return f"{model.method}, {model.ensemble.size_text}, {used}"
    names = join_names([term.name for term in sorted(model.terms, key=lambda one: -abs(one.weight))], 6)
    metric = [f"{name} {value:.4f}" for name, value in model.metrics.items() if name != "cost"]
    return ", ".join(filter(None, [model.method, used, *metric])) + (f"; {names}" if names else "")


def weights_in_data(model: Any) -> dict[str, float] | None:
    """Weights per unit of the data, by feature; None if features are scaled within each query."""
    if model.per_query and model.normalisation is not None:
        return None
    try:
        return {term.name: term.weight for term in model.folded().terms}
    except DataError:  # a weight would overflow
        return None


def feature_table(ranker: Any, model: Any, scaled: bool = False) -> Table:
    """Features by decreasing |weight|, or range of their curves, with costs and frequencies.

    The order is that of the scaled weights, which can be compared; the weights are per unit of the data,
    unless ``scaled`` or features are scaled within each query.
    """
    columns: dict[str, list[str]]
    if model.has_curves:
        curves = by_range(model.curves)
        names, cells = list(curves), zip(*map(curve_cells, curves.values()), strict=True)
        columns = {"feature": names} | dict(zip(CURVE_COLUMNS, map(list, cells), strict=True))
        if any(curve.missing for curve in curves.values()):
            columns["missing"] = [level_text(curve.missing) for curve in curves.values()]
    else:
        ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
        names, raw = [term.name for term in ordered], None if scaled else weights_in_data(model)
        heading = "weight" if raw is not None else SCALED_WEIGHT
        shown = raw or {term.name: term.weight for term in ordered}
        columns = {"feature": names, heading: [f"{shown[name]:+.5g}" for name in names]}
    if (costs := getattr(ranker, "costs_", None)) is not None:
        columns["cost"] = [f"{cost:g}" for cost in costs.columns(names, subset=True).of_each]
    if (frequency := selection_frequency(ranker)) is not None:
        columns["selected"] = [percent_text(frequency[name]) for name in names]
    return Table(list(columns), list(zip(*columns.values(), strict=True)))


def selection_frequency(ranker: Any) -> dict[str, float] | None:
    """How often each feature is selected; None without a selection."""
    choice = choice_of(ranker)
    if choice is None:
        return None
    return dict(zip(choice.feature_names, choice.confidence.frequency.tolist(), strict=True))


def _group_costs(ranker: Any) -> Iterator[Part]:
    """Costs by group, if several features share a cost."""
    paid = paid_for(ranker)
    if any(name not in features or len(features) > 1 for name, _, features in paid):
        rows = [(name, f"{cost:g}", ", ".join(features)) for name, cost, features in paid]
        yield Table(["paid once", "cost", "features"], rows)


def change_parts(changes: Any, file: str, texts: Any) -> Iterator[Part]:
    """Changes since the model of a file; ``texts`` are texts of queries."""
    rows = change_table(changes, file, texts, CHANGED_QUERIES_SHOWN)
    begins = PREVIOUS_MODEL[0].upper() if file == PREVIOUS_MODEL else ""
    yield from (f"{begins or one[0]}{one[1:]}" if one.startswith(file) else one for one in rows.sentences)
    weight = "range" if changes.curves else "weight" if changes.raw else SCALED_WEIGHT
    heads = ["feature", f"previous {weight}", f"new {weight}", ""]
    yield Table(heads, rows.features, f"Changes since {file}")
    if rows.queries:
        title = f"Largest losses and gains ({metric_title(changes.metric)})"
        yield Table(["query", "previous", "new", "change"], rows.queries, title)


def feature_columns(ranker: Any, model: Any) -> dict[str, Sequence[Any]]:
    """Features, weights and how often they are selected, as numbers, for a frame."""
    if not hasattr(model, "terms"):
        return {"feature": list(model.names)}
    terms = sorted(model.terms, key=lambda term: -abs(term.curve.range if term.curve else term.weight))
    columns: dict[str, Sequence[Any]] = {"feature": [term.name for term in terms]}
    if model.has_curves:
        columns["range"] = [term.curve.range if term.curve else None for term in terms]
    else:
        raw = weights_in_data(model)
        if raw is not None:
            columns["weight"] = [raw[term.name] for term in terms]
        if raw is None or model.normalisation is not None:
            columns["scaled_weight"] = [term.weight for term in terms]
    if model.card is not None and not model.has_curves:
        columns |= {
            "points": [model.card.points[term.name] for term in terms],
            "per": [model.card.units[term.name] for term in terms],
        }
    if (costs := getattr(ranker, "costs_", None)) is not None:
        columns["cost"] = costs.columns(columns["feature"], subset=True).of_each.tolist()
    if (frequency := selection_frequency(ranker)) is not None:
        columns["selected"] = [frequency[term.name] for term in terms]
    return columns
