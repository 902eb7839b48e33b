"""ranksieve scorecard: a model as whole points per round unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    MODEL_HELP,
    Conventions,
    Json,
    ScoringOptions,
    Train,
    Weights,
    beside,
    check_inputs,
    check_measures,
    check_outputs,
    finite_scores,
    measures_for,
)
from ranksieve.cli.output import emit_json, progress, table, words
from ranksieve.errors import ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation

CARD = "scorecard"


@command(
    "ranksieve scorecard model.json train.txt -o card.json",
    "ranksieve scorecard model.json train.txt --valid vali.txt -o card.json",
)
def scorecard(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    train: Train,
    weights: Weights,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The model file to write.")],
    levels: Annotated[
        int, typer.Option(metavar="N", min=1, max=99, help="Points are whole numbers from -N to N.")
    ] = 9,
    units: Annotated[
        str | None,
        typer.Option(metavar="A=10,B=0.5", help="Units of these features; default: round numbers."),
    ] = None,
    valid: Annotated[
        str | None, typer.Option(metavar="FILE", help="Held-out queries, to measure card and model on.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="For --valid, such as ndcg@10 or map; may be repeated; default: the model's, else ndcg@10.",
        ),
    ] = None,
    profile: Conventions = None,
    scoring: ScoringOptions,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a model into points that a person can add up.

    The score of a document becomes a sum of whole points per round unit of each feature of the model. The
    training data say which points come nearest to the best real-valued weights, and how near that is proven
    to be. The card is a model file like any other, for "rank", "evaluate", "explain" and "export".
    """
    from ranksieve.data.dataset import fingerprint
    from ranksieve.report import content_of_model, require_extra, write_report
    from ranksieve.report.choice_words import optimality

    for name, value in (("metric", metric), ("profile", profile)):
        if value and valid is None:
            raise ParameterError(name, value, "needs `valid`; add it or leave both out")
    check_measures(metric, profile)
    check_inputs(train, valid, *weights.files)
    check_outputs([output, report], [model, train, valid, *weights.files])
    if report:
        require_extra()
    given = None if units is None else read_units(units)
    weighed = weights.for_fit
    data, models = scoring.read(train, [model], weights.document_weight)
    linear: Any = models[model]
    with progress(f"making a card of {model}"), while_doing(f"making a card of {model}"):
        card = rs.make_scorecard(linear, data, levels, units=given, **weighed)
    measured: dict[str, Evaluation] = {}
    if valid is not None:
        queries = scoring.read(valid, [model], weights.document_weight)[0]
        by = measures_for(models, queries, metric, profile)
        for name, scorer in ((CARD, card), (model, linear)):
            measured[name] = rs.evaluate(finite_scores(scorer, queries), queries, by.metrics, by.profile)
        means = measured[CARD].mean.items()
        held_out = {f"held-out {name} ({by.profile.name})": mean for name, mean in means}
        card = replace(card, metrics=held_out, data={**card.data, "valid": fingerprint(queries)})
    card.save(output)
    if report:
        evaluations = {f"{name} on {valid}": evaluation for name, evaluation in measured.items()}
        write_report(content_of_model(card, title="Scorecard", evaluations=evaluations), report)
    text = rs.card_text(card, data)
    with beside(output, report):
        if as_json:
            emit_json(
                {
                    "model": card.to_dict(),
                    "card": text,
                    "held_out": {name: dict(evaluation.mean) for name, evaluation in measured.items()},
                    "output": output,
                    "report": report,
                }
            )
            return
        words(text)
        words(optimality(card.certificate, card.parameters))
        if left := [name for name in linear.names if name not in card.names]:
            words(f"Not on the card, because it does best without points of theirs: {', '.join(left)}.")
        if measured:
            _show(measured)
            words(f"On {valid}: {by.words}.")
        words(f"Wrote {output}{f' and {report}' if report else ''}.")


def _show(measured: Mapping[str, Evaluation]) -> None:
    """One row per metric: card, model, and what the card loses."""
    card, model = measured.values()
    rows = [
        (name, f"{mean:.4f}", f"{model.mean[name]:.4f}", f"{mean - model.mean[name]:+.4f}")
        for name, mean in card.mean.items()
    ]
    table(["held-out", *measured, "difference"], rows)


def read_units(text: str) -> dict[str, float]:
    """``name=number,name=number``."""
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
