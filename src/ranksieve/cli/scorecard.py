"""ranksieve scorecard: a model as integer points per round unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, progress, table
from ranksieve.errors import ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation

CARD = "scorecard"


@dataclass(frozen=True, kw_only=True)
class CardData(opt.ScoringOptions, opt.FitData):
    """Training and validation data, read for a model."""


@command(
    "ranksieve scorecard model.json train.txt -o card.json",
    "ranksieve scorecard model.json train.txt --valid vali.txt -o card.json",
)
def scorecard(
    *,
    model: opt.ModelFile,
    source: CardData,
    levels: Annotated[int, opt.value("Model", "N", "Points are integers from -N to N.", min=1, max=99)] = 9,
    units: Annotated[
        opt.Text, opt.value("Model", "A=10,B=0.5", "Unit of each feature.", "round numbers")
    ] = None,
    metric: opt.Metrics = None,
    profile: opt.Conventions = None,
    ties: opt.TieRule = None,
    output: opt.ModelOutput,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Turn a model into integer points, to add up by hand.

    The score of a document becomes a sum of integer points per unit of each feature. A search finds points
    whose training objective is close to that of the best real-valued weights, with a proven bound. With
    --valid, card and model are evaluated on held-out queries. The card is a model file for "rank",
    "evaluate", "explain" and "export".
    """
    from ranksieve.data.dataset import fingerprint
    from ranksieve.report.card_page import card_page
    from ranksieve.show.sentences import optimality

    for name, value in (("metric", metric), ("profile", profile), ("ties", ties)):
        if value and source.valid is None:
            raise ParameterError(name, value, "needs `valid`; add it or leave both out")
    opt.check_measures(metric, profile, ties)
    opt.check_files([model, *source.files], output, report=report)
    sizes, query_weights = None if units is None else read_units(units), source.query_weights
    data, models = source.with_models(source.train, [model])
    linear: Any = models[model]
    with progress(f"making a scorecard of {model}"), while_doing(f"making a scorecard of {model}"):
        card = rs.make_scorecard(linear, data, levels, units=sizes, **query_weights)
    measured: dict[str, Evaluation] = {}
    if source.valid is not None:
        queries = source.with_models(source.valid, [model])[0]
        by = opt.measures_for(models, queries, metric, profile, ties)
        for name, scorer in ((CARD, card), (model, linear)):
            measured[name] = rs.evaluate(opt.finite_scores(scorer, queries), queries, by.metrics, by.profile)
        card_means = measured[CARD].mean.items()
        held_out = {f"held-out {name} ({by.profile.title})": mean for name, mean in card_means}
        card = replace(card, metrics=held_out, data={**card.data, "valid": fingerprint(queries)})
    card.save(output)
    unused = [name for name in linear.names if name not in card.names]
    if report is not None:
        where = (
            "" if source.valid is None else f"Held-out queries: {Path(source.valid).name}; {by.description}."
        )
        evaluations = {Path(name).name: one for name, one in measured.items()}
        opt.write_text(card_page(card, evaluations, where, data=data, unused=unused), report)
    means = {name: dict(evaluation.mean) for name, evaluation in measured.items()}
    content: dict[str, Any] = {"model": card.to_dict(), "card": rs.card_text(card, data), "held_out": means}
    content |= {"output": output, "report": report}

    def show() -> None:
        print_text(content["card"])
        print_text(optimality(card.certificate, card.parameters))
        if unused:
            print_text(f"Features with 0 points, which are not on the card: {', '.join(unused)}.")
        if measured:
            _show(measured)
            print_text(f"Held-out queries: {source.valid}; {by.description}.")

    opt.print_result(content, as_json, show, output, report)


def _show(measured: Mapping[str, Evaluation]) -> None:
    """One row per metric: card, model, and their difference."""
    from ranksieve.show.formats import metric_title

    card, model = measured.values()
    rows = [
        (metric_title(name), f"{mean:.4f}", f"{model.mean[name]:.4f}", f"{mean - model.mean[name]:+.4f}")
        for name, mean in card.mean.items()
    ]
    table(["held-out", *measured, "difference"], rows)


def read_units(text: str) -> dict[str, float]:
    """Parse ``name=number,name=number``."""
    units: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (word.strip() for word in part.rpartition("="))
        try:
            units[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise ParameterError("units", part, "must be feature=number, such as price=100")
    return units
