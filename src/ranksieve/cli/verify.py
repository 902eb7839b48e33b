"""ranksieve verify: whether a model file tells the truth about itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    DATA_HELP,
    FitData,
    Json,
    ReadingOptions,
    Weights,
    check_inputs,
    model_before,
)
from ranksieve.cli.output import emit_json, progress, table, words
from ranksieve.errors import DataError, on_command_line, while_doing

if TYPE_CHECKING:
    from ranksieve.verification import Verification

WRONG = 1
HOLDS = {True: "yes", False: "no", None: "not checked"}
OPTIONS = {"valid": "--valid", "query_weight": "--query-weights", "warm_start": "--from"}


@command(
    "ranksieve verify model.json train.txt --valid vali.txt",
    "ranksieve verify model.json train.txt --quick --json",
)
def verify(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file of ranksieve.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"What it was fitted on: {DATA_HELP}")],
    valid: Annotated[
        str | None, typer.Option(metavar="FILE", help="The validation data of its fit, if it had any.")
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="The model file that its fit began with, if any."),
    ] = None,
    weights: Weights,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what takes fitting again.")] = False,
    reading: ReadingOptions,
    as_json: Json = False,
) -> None:
    """Recompute from the data what a model file claims.

    Says of each claim whether it holds: the fingerprints of the data, the objective and the gap at the
    model's weights, the held-out metric by fitting again, the cost, and the budget. The exit code is 0 if
    every claim holds, or was left out by --quick; it is 1 if one does not, or could not be checked.
    """
    from ranksieve.model.foreign import open_model

    check_inputs(data, valid, begin, *weights.files)
    linear = open_model(model).own
    if not isinstance(linear, rs.LinearModel):
        whose = "of another program" if linear is None else "that is not linear"
        raise DataError(model, None, f"a model {whose} has no claims to verify")
    old, weighed = None if begin is None else model_before(begin), weights.for_fit
    source = FitData(train=data, valid=valid, **vars(reading))
    missing = str(linear.parameters.get("missing", "auto"))
    given, held_out = source.read(missing, document_weight=weights.document_weight)
    title = f"verifying {model}"
    with progress(title) as bar, while_doing(title):
        verdicts = rs.verify(
            linear, given, held_out, warm_start=old, refit=not quick, progress=bar, **weighed
        )
    found = in_options(verdicts)
    if as_json:
        emit_json(found.to_dict())
    else:
        show(found)
    if not found.holds:
        raise typer.Exit(WRONG)


def in_options(found: Verification) -> Verification:
    """The verdicts in words of the command line: what to give is an option."""
    verdicts = (replace(one, text=on_command_line(one.text, OPTIONS)) for one in found.verdicts)
    return replace(found, verdicts=tuple(verdicts))


def show(found: Verification) -> None:
    """The claims as a table, then the problem that they are about, and how many hold."""
    table(["claim", "holds", "recomputed"], [(v.claim, HOLDS[v.holds], v.words) for v in found.verdicts])
    for sentence in filter(None, (found.problem, found.note, found.summary)):
        words(sentence)
