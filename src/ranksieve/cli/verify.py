"""ranksieve verify: every claim in a model file, recomputed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import emit_json, print_all, progress
from ranksieve.errors import DataError, ParameterError, on_command_line, while_doing

if TYPE_CHECKING:
    from ranksieve.verification import Verification

FAILED_EXIT_CODE = 1
OPTIONS = {"valid": "--valid", "query_weight": "--query-weights", "previous": "--from"}


@dataclass(frozen=True, kw_only=True)
class VerifyData(opt.MoreRuns, opt.FitData):
    """The data of the fit; a table, or the runs and judgements of a hybrid search."""

    qrels: opt.Judgements = None

    @property
    def files(self) -> tuple[opt.Text, ...]:
        return (*super().files, *(self.runs or ()), self.qrels)

    def read(self, missing: str, client: Any = None) -> tuple[rs.Dataset, rs.Dataset | None]:
        joined = self.joined(self.train, self.qrels)
        if joined is None:
            return super().read(missing, client)
        for name in ("valid", "document_weight"):
            if getattr(self, name) is not None:
                raise ParameterError(name, getattr(self, name), "applies to tables; leave it out")
        return joined, None


@command(
    "ranksieve verify model.json train.txt --valid vali.txt",
    "ranksieve verify hybrid.json bm25.run dense.run --qrels qrels.txt",
    "ranksieve verify model.json train.txt --quick --json",
)
def verify(
    *,
    model: Annotated[str, opt.argument("MODEL", "A model file of ranksieve.")],
    source: VerifyData,
    previous_file: Annotated[
        opt.Text, opt.value("Model", "FILE", "Previous model that the fit started from.", None, ["--from"])
    ] = None,
    quick: Annotated[bool, opt.flag("Computing", "--quick", "Skip checks that refit the model.")] = False,
    as_json: opt.Json = False,
) -> None:
    """Recompute every claim in a model file from its data.

    DATA and --valid, or the runs and --qrels, must be the data the model was fitted with. Claims: the
    fingerprints of the data, the objective and gap of the weights, the held-out metric (by refitting), the
    cost, and the budget. The exit code is 0 if every claim holds or was skipped by --quick, and 1 if a claim
    does not hold or could not be checked.
    """
    from ranksieve.model.foreign import open_model

    opt.check_files([*source.files, previous_file])
    linear = open_model(model).ranksieve_model
    if not isinstance(linear, rs.LinearModel):
        kind = "a model of another program" if linear is None else "not a linear model"
        raise DataError(model, None, f"is {kind}, so it has no claims to verify")
    previous = None if previous_file is None else opt.previous_model(previous_file)
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
        print_all(result.shown())
    if not result.holds:
        raise typer.Exit(FAILED_EXIT_CODE)


def in_options(result: Verification) -> Verification:
    """Replace parameter names in the verdicts by options."""
    verdicts = (replace(one, text=on_command_line(one.text, OPTIONS)) for one in result.verdicts)
    return replace(result, verdicts=tuple(verdicts))
