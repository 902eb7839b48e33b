"""ranksieve subset: the best sets of 1, 2, … features, with the proof of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import progress, table, words
from ranksieve.errors import ParameterError, shortened, while_doing

if TYPE_CHECKING:
    from ranksieve.choice.held_out import Validation

SHOWN_NAMES = 10
CHOICE = ("metric", "profile")
LIMITS = ("must_have", "must_not", "signs")


@dataclass(frozen=True, kw_only=True)
class SubsetOptions(opt.RankerOptions):
    """As of other rankers, with several numbers of features."""

    max_features: Annotated[str, opt.value("Budget", "K", "Sizes: 5, 1..10 or 3,5,10.")] = "1..10"  # type: ignore[assignment]


@command(
    "ranksieve subset train.txt --max-features 1..10 --report subset.html",
    "ranksieve subset train.txt --max-features 5 --time-limit 300 -o best5.json",
)
def subset(
    *,
    source: opt.FitData,
    limits: SubsetOptions,
    time_limit: Annotated[float, opt.value("Computing", "S", "Seconds per size.", min=0)] = 60.0,
    gap: Annotated[float, opt.value("Computing", "G", "Stop at this relative gap.", min=0)] = 0.0,
    output: Annotated[
        str | None,
        opt.written("FILE", "Write the model of the size that ranks best."),
    ] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Find the best set of features of each size, with a proof.

    For each number of features: the set whose weights have the lowest training objective, and a lower bound
    for all other sets. If the two meet, the set is proven to be the best; if time runs out, their gap bounds
    how much better another set could be. Held-out queries then show which size ranks best.
    """
    from ranksieve.rankers.best_subset import held_out_sizes
    from ranksieve.report.subset_page import subset_page

    opt.check_files([*source.files, *limits.limit_files], output, report=report)
    sizes, parameters = as_sizes(limits.max_features), limits.parameters
    del parameters["max_features"]
    if len(parameters.get("must_have", ())) > sizes[0]:
        reason = f"must be at least {len(parameters['must_have'])}, the number of features in `must_have`"
        raise ParameterError("max_features", limits.max_features, reason)
    choice = {name: parameters.pop(name) for name in CHOICE if name in parameters}
    ranker, query_weights = rs.BestSubset(time_limit=time_limit, gap=gap, **parameters), source.query_weights
    data, held_out = source.read(ranker.missing)
    title = f"searching {source.train}"
    with progress(title) as bar, while_doing(title):
        rankers = ranker.fit_sizes(sizes, data, progress=bar, **query_weights)
        validation, n_folds = held_out_sizes(rankers, data, held_out, **choice, **query_weights)
    content = subset_data(rankers, validation, how_measured(source.valid, n_folds))
    best = rankers[max(range(len(sizes)), key=lambda i: content["sizes"][i]["mean"])]
    if output is not None:
        best.to_model().save(output)
    if report is not None:
        opt.write_text(subset_page(content), report)
    opt.present(content, as_json, lambda: show(content), output, report)


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
        raise ParameterError("max_features", text, "must be numbers of features, such as 5, 1..10 or 3,5,10")
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


def show(content: Mapping[str, Any]) -> None:
    """One row per size, then the proofs of the last proven and the last unproven size."""
    from ranksieve.report.subset_page import ROUNDING, screening_sentences, subset_sentence, tie_sentences

    priced, limits = content["priced"], content["limits"]
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
        for size in content["sizes"]
    ]
    cost = ["cost"] if priced else []
    table(["features", *cost, "objective", "bound", "gap", f"held-out {content['metric']}", "which"], rows)
    proven = [size for size in content["sizes"] if size["relative_gap"] <= ROUNDING]
    open_sizes = [size for size in content["sizes"] if size["relative_gap"] > ROUNDING]
    for size in [*proven[-1:], *open_sizes[-1:]]:
        for sentence in (
            subset_sentence(size, limits), *screening_sentences(size, limits), *tie_sentences(size)
        ):  # fmt: skip
            words(sentence)
    words(content["chosen"])
