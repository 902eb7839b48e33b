"""ranksieve verify: every claim in a model file, recomputed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import emit_json, progress, table, words
from ranksieve.errors import DataError, on_command_line, while_doing

if TYPE_CHECKING:
    from ranksieve.verification import Verification

WRONG = 1
HOLDS = {True: "yes", False: "no", None: "not checked"}
OPTIONS = {"valid": "--valid", "query_weight": "--query-weights", "previous": "--from"}


@command(
    "ranksieve verify model.json train.txt --valid vali.txt",
    "ranksieve verify model.json train.txt --quick --json",
)
def verify(
    *,
    model: opt.ModelFile,
    source: opt.FitData,
    begin: Annotated[
        opt.Text, opt.value("Model", "FILE", "The model that its fit started from.", None, ["--from"])
    ] = None,
    quick: Annotated[bool, opt.flag("Computing", "--quick", "Skip the checks that fit again.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Recompute every claim in a model file from its data.

    DATA and --valid are the data of its fit. The claims: the fingerprints of the data, the objective and the
    gap at the model's weights, the held-out metric (by fitting again), the cost, and the budget. The exit
    code is 0 if every claim holds or was skipped by --quick, and 1 if one does not hold or could not be
    checked.
    """
    from ranksieve.model.foreign import open_model

    opt.check_files([*source.files, begin])
    linear = open_model(model).own
    if not isinstance(linear, rs.LinearModel):
        whose = "of another program" if linear is None else "that is not linear"
        raise DataError(model, None, f"a model {whose} has no claims to verify")
    previous = None if begin is None else opt.previous_model(begin)
    query_weights = source.query_weights
    data, held_out = source.read(str(linear.parameters.get("missing", "auto")))
    title = f"verifying {model}"
    with progress(title) as bar, while_doing(title):
        verdicts = rs.verify(
            linear, data, held_out, previous=previous, refit=not quick, progress=bar, **query_weights
        )
    result = in_options(verdicts)
    if as_json:
        emit_json(result.to_dict())
    else:
        show(result)
    if not result.holds:
        raise typer.Exit(WRONG)


def in_options(result: Verification) -> Verification:
    """The verdicts with the names of options in place of parameters."""
    verdicts = (replace(one, text=on_command_line(one.text, OPTIONS)) for one in result.verdicts)
    return replace(result, verdicts=tuple(verdicts))


def show(result: Verification) -> None:
    """The claims as a table, then the optimisation problem, and how many claims hold."""
    table(["claim", "holds", "recomputed"], [(v.claim, HOLDS[v.holds], v.words) for v in result.verdicts])
    for sentence in filter(None, (result.problem, result.note, result.summary)):
        words(sentence)
