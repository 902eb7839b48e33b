"""ranksieve subset: the best sets of 1, 2, … features, with what is proven of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import shortened
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    FitData,
    Json,
    RankerOptions,
    Weights,
    beside,
    check_inputs,
    check_outputs,
    write_text,
)
from ranksieve.cli.output import emit_json, json_text, progress, table, words
from ranksieve.errors import DataError, ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.choice.held_out import Validation

SHOWN_NAMES = 10
CHOICE = ("metric", "profile")
LIMITS = ("must_have", "must_not", "signs")


@command(
    "ranksieve subset train.txt --k 1..10 -o subset.html",
    "ranksieve subset train.txt --k 5 --time-limit 300 --model best5.json",
)
def subset(
    *,
    source: FitData,
    weights: Weights,
    k: Annotated[
        str, typer.Option("--k", metavar="K", help="How many features: 5, 1..10 or 3,5,10.")
    ] = "1..10",
    time_limit: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds for the proof of each size.")
    ] = 60.0,
    gap: Annotated[
        float, typer.Option(metavar="G", min=0, help="A gap, as a share of the objective, that is enough.")
    ] = 0.0,
    wanted: RankerOptions,
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the model whose size ranks held-out queries best."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write all sizes as .json or a page as .html."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the best features of each number, and prove it.

    For each number of features: the set whose weights have the lowest training objective, and a bound that no
    other set is below. When the two meet, the set is proven to be the best; when time is up, the gap between
    them says how much better another one could be at most. Held-out queries then tell which size ranks best.
    """
    from ranksieve.rankers.best_subset import held_out_sizes
    from ranksieve.report.page import require_extra
    from ranksieve.report.subset_page import subset_page

    writers = {".json": json_text, ".html": subset_page}
    suffix = "" if output is None else Path(output).suffix.lower()
    if output is not None and suffix not in writers:
        raise DataError(output, None, f"must end in {' or '.join(writers)}")
    if suffix == ".html":
        require_extra()
    sizes = as_sizes(k)
    inputs = [*source.files, *wanted.files, *weights.files]
    check_inputs(*inputs)
    parameters = wanted.parameters()
    if len(parameters.get("must_have", ())) > sizes[0]:
        named = len(parameters["must_have"])
        raise ParameterError("k", k, f"must be at least {named}, the number of features in `must_have`")
    chosen_by = {name: parameters.pop(name) for name in CHOICE if name in parameters}
    ranker = rs.BestSubset(time_limit=time_limit, gap=gap, **parameters)
    check_outputs([output, model], inputs)
    weighed = weights.for_fit
    data, held_out = source.read(ranker.missing, document_weight=weights.document_weight)
    title = f"searching {source.train}"
    with progress(title) as bar, while_doing(title):
        rankers = ranker.fit_sizes(sizes, data, progress=bar, **weighed)
        validation, n_folds = held_out_sizes(rankers, data, held_out, **chosen_by, **weighed)
    found = subset_data(rankers, validation, how_measured(source.valid, n_folds))
    best = max(range(len(sizes)), key=lambda i: found["sizes"][i]["mean"])
    if model is not None:
        rankers[best].to_model().save(model)
    if output is not None:
        write_text(writers[suffix](found), output)
    with beside(output, model):
        if as_json:
            emit_json(found)
            return
        show(found)
        if model is not None:
            words(f"Wrote {model}, the model with {len(rankers[best].support_)} features.")
        if output is not None:
            words(f"Wrote {output}.")


def as_sizes(text: str) -> list[int]:
    """5, 1..10 or 3,5,10 as numbers."""
    numbers: set[int] = set()
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            numbers |= set(range(int(first), int(last) + 1)) if dots else {int(first)}
    except ValueError:
        numbers = set()
    if not numbers or min(numbers) < 1:
        raise ParameterError("k", text, "must be numbers of features, such as 5, 1..10 or 3,5,10")
    return sorted(numbers)


def how_measured(valid: str | None, n_folds: int) -> str:
    """What the held-out metric was measured on, in sentences."""
    from ranksieve.report.subset_page import FOLD_SETS

    crossed = f"by {n_folds}-fold cross-validation over the training queries" if n_folds else ""
    on = " and ".join(filter(None, [f"on {valid}" if valid else "", crossed]))
    sets = f" {FOLD_SETS}" if n_folds else ""
    return f"The metric was measured {on or 'on the training data, as one query cannot be held out'}.{sets}"


def subset_data(rankers: Sequence[Any], validation: Validation, chosen: str) -> dict[str, Any]:
    """All sizes as plain data."""
    first = rankers[0]
    model = first.to_model()
    return {
        "n_features": first.n_features_in_,
        "ridge": first.ridge_,
        "metric": validation.metric,
        "profile": validation.profile.name,
        "chosen": chosen,
        "priced": first.costs_ is not None,
        "limits": {name: model.parameters[name] for name in LIMITS},
        "fingerprint": model.fingerprint,
        "sizes": [
            _size(ranker, float(mean), float(error))
            for ranker, mean, error in zip(rankers, validation.mean, validation.standard_error, strict=True)
        ],
    }


def _size(ranker: Any, mean: float, error: float) -> dict[str, Any]:
    model = ranker.to_model()
    proven = {name: value for name, value in model.certificate.items() if name not in ("kind", "proof")}
    ordered = sorted(model.terms, key=lambda term: -abs(term.weight))
    return {
        **proven,
        "root_bound": ranker.root_bound_,
        "n_nodes": ranker.n_iter_,
        "seconds": ranker.found_.seconds,
        "mean": mean,
        "standard_error": error,
        "cost": model.metrics.get("cost"),
        "features": [term.name for term in ordered],
        "weights": {term.name: term.weight for term in ordered},
        "never": ranker.never_,
        "always": ranker.always_,
        "ties": ranker.ties_,
    }


def show(found: Mapping[str, Any]) -> None:
    """One row per size, then what is proven of the last one that is not proven best."""
    from ranksieve.report.subset_page import ROUNDING, screening_sentences, subset_sentence, tie_sentences

    priced, limits = found["priced"], found["limits"]
    rows = [
        (
            size["max_features"],
            *([f"{size['cost']:g}"] if priced else []),
            f"{size['objective']:.6f}",
            f"{size['bound']:.6f}",
            "proven" if size["relative_gap"] <= ROUNDING else f"{100 * size['relative_gap']:.3f} %",
            f"{size['mean']:.4f}",
            shortened(size["features"], SHOWN_NAMES),
        )
        for size in found["sizes"]
    ]
    cost = ["cost"] if priced else []
    table(["features", *cost, "objective", "bound", "gap", f"held-out {found['metric']}", "which"], rows)
    proven = [size for size in found["sizes"] if size["relative_gap"] <= ROUNDING]
    open_sizes = [size for size in found["sizes"] if size["relative_gap"] > ROUNDING]
    for size in [*proven[-1:], *open_sizes[-1:]]:
        for sentence in (
            subset_sentence(size, limits), *screening_sentences(size, limits), *tie_sentences(size)
        ):  # fmt: skip
            words(sentence)
    words(found["chosen"])
