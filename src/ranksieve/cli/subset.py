"""ranksieve subset: the best sets of 1, 2, … features, each with a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, progress, table
from ranksieve.errors import ParameterError, short_list, while_doing

if TYPE_CHECKING:
    pass

METRIC_PARAMETERS = ("metric", "profile")


@dataclass(frozen=True, kw_only=True)
class SubsetOptions(opt.RankerOptions):
    """Options of rankers, with several numbers of features."""

    max_features: Annotated[str, opt.value("Budget", "K", "Numbers of features: 5, 1..10 or 3,5,10.")] = (
        "1..10"  # type: ignore[assignment]
    )


@command(
    "ranksieve subset train.txt --max-features 1..10 --report subset.html",
    "ranksieve subset train.txt --max-features 5 --time-limit 300 -o best5.json",
)
def subset(
    *,
    source: opt.FitData,
    limits: SubsetOptions,
    time_limit: Annotated[
        float, opt.value("Computing", "S", "Time limit per size, in seconds.", min=0)
    ] = 60.0,
    gap: Annotated[
        float, opt.value("Computing", "G", "Stop at this relative gap between set and bound.", min=0)
    ] = 0.0,
    output: Annotated[
        str | None,
        opt.output_option("FILE", "Write the model with the best held-out metric."),
    ] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Find the best set of features of each size, with a proof.

    For each number of features: the best set found, by its training objective, and a lower bound for all
    other sets. If the two are equal, the set is proven to be the best; if time runs out, their gap bounds how
    much lower the objective of another set can be. Held-out queries then show which size ranks best.
    """
    from ranksieve.rankers.best_subset import evaluate_sizes
    from ranksieve.report.calls import measured_on, subset_data
    from ranksieve.report.subset_page import subset_page

    opt.check_files([*source.files, *limits.limit_files], output, report=report)
    sizes, parameters = as_sizes(limits.max_features), limits.parameters
    del parameters["max_features"]
    if len(parameters.get("must_have", ())) > sizes[0]:
        reason = f"must be at least {len(parameters['must_have'])}, the number of features in `must_have`"
        raise ParameterError("max_features", limits.max_features, reason)
    choice = {name: parameters.pop(name) for name in METRIC_PARAMETERS if name in parameters}
    ranker, query_weights = rs.BestSubset(time_limit=time_limit, gap=gap, **parameters), source.query_weights
    data, held_out = source.read(ranker.missing)
    title = f"searching {source.train}"
    with progress(title) as bar, while_doing(title):
        rankers = ranker.fit_sizes(sizes, data, progress=bar, **query_weights)
        validation, n_folds = evaluate_sizes(rankers, data, held_out, **choice, **query_weights)
    content = subset_data(rankers, validation, measured_on(source.valid, n_folds))
    best = rankers[max(range(len(sizes)), key=lambda i: content["sizes"][i]["mean"])]
    if output is not None:
        best.to_model().save(output)
    if report is not None:
        opt.write_text(subset_page(content), report)
    opt.print_result(content, as_json, lambda: show(content), output, report)


def as_sizes(text: str) -> list[int]:
    """Parse 5, 1..10 or 3,5,10."""
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


def show(content: Mapping[str, Any]) -> None:
    """One row per size, then the proofs of the largest proven and the largest unproven size."""
    from ranksieve.show.formats import metric_title
    from ranksieve.show.sentences import PROVEN_GAP, screening_sentences, subset_sentence, tie_sentences

    priced, limits = content["priced"], content["limits"]
    rows = [
        (
            size["max_features"],
            *([f"{size['cost']:g}"] if priced else []),
            f"{size['objective']:.6f}",
            f"{size['bound']:.6f}",
            "proven" if size["relative_gap"] <= PROVEN_GAP else f"{100 * size['relative_gap']:.3f} %",
            f"{size['mean']:.4f}",
            short_list(size["features"], 10),
        )
        for size in content["sizes"]
    ]
    cost = ["cost"] if priced else []
    table(
        [
            "features",
            *cost,
            "objective",
            "bound",
            "gap",
            f"held-out {metric_title(content['metric'])}",
            "feature names",
        ],
        rows,
    )
    proven = [size for size in content["sizes"] if size["relative_gap"] <= PROVEN_GAP]
    open_sizes = [size for size in content["sizes"] if size["relative_gap"] > PROVEN_GAP]
    for size in [*proven[-1:], *open_sizes[-1:]]:
        for sentence in (
            subset_sentence(size, limits), *screening_sentences(size, limits), *tie_sentences(size)
        ):  # fmt: skip
            print_text(sentence)
    print_text(content["chosen"])
