"""ranksieve bench: any methods on a folder of LETOR folds, or on a data file split into folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import emit_json, exit_code, how_ended, progress, say, table, words
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.experiment import Results

SHOWN_TABLES = ("accuracy", "significance", "times")


Baseline = Annotated[
    opt.Text, opt.value("Model", "METHOD", "The method that others are compared with.", "ranksvm")
]
MIXED_LABELS = "letor for LETOR folds with labels up to 2, else standard"
METHODS_HELP = 'Methods, or all; "ranksieve methods" lists them.'
SEEDS = "3; 5 for minbatsrank; 1 with the fast grid"


@command(
    "ranksieve bench LETOR -o results",
    "ranksieve bench LETOR --methods fenchelrank,ranksvm --grid fast -o results",
)
def bench(
    *,
    root: Annotated[str, opt.argument("DATA", "A folder of LETOR collections, one of them, or a data file.")],
    data_sets: Annotated[opt.Text, opt.value("Data", "A,B,…", "Collections in DATA.", "all")] = None,
    normalise: Annotated[str, opt.NORMALISE] = "auto",
    missing: Annotated[str, opt.MISSING] = "auto",
    methods: Annotated[
        opt.Text, opt.value("Model", "A,B,…", METHODS_HELP, "sparse ones and some baselines")
    ] = None,
    grid: Annotated[
        str, opt.value("Model", "NAME", "paper: the parameters of the papers; fast: a few of them.")
    ] = "paper",
    metric: Annotated[opt.Text, opt.value("Model", "NAME", "Metric to select by.", "the papers'")] = None,
    profile: Annotated[opt.Text, opt.value("Model", "NAME", opt.PROFILE_HELP, MIXED_LABELS)] = None,
    n_seeds: Annotated[int | None, opt.value("Model", "N", "Runs of random methods.", SEEDS, min=1)] = None,
    baseline: Baseline = None,
    n_jobs: Annotated[int | None, opt.value("Computing", "N", "Processes.", "one per core", min=1)] = None,
    output: Annotated[str, opt.written("DIR", "The folder of results; may hold earlier ones.")],
    as_json: opt.Json = False,
) -> None:
    """Compare methods over folds.

    Fits every point of the grids on the training queries, selects on the validation queries and measures on
    the test queries, over all folds; a single data file is split into five folds. Each finished fit is saved:
    to continue an interrupted run, repeat the command.
    """
    from ranksieve._parallel import available_threads
    from ranksieve.experiment.benching import DEFAULT_METHODS
    from ranksieve.methods import METHODS

    names: str | Sequence[str] = DEFAULT_METHODS
    if methods is not None:
        names = methods if methods == "all" else opt.comma_separated(methods)
    if baseline is not None and baseline not in (METHODS if names == "all" else names):
        raise ParameterError("baseline", baseline, "is not among the methods; add it to `methods`")
    try:
        with progress("fitting") as bar:
            results = rs.bench(
                root, names, out=output, grid=grid, select=metric, profile=profile, normalise=normalise,
                data_sets=None if data_sets is None else opt.comma_separated(data_sets), missing=missing,
                n_seeds=n_seeds, n_jobs=n_jobs or available_threads(), progress=bar,
            )  # fmt: skip
    except KeyboardInterrupt as error:
        say(f"{how_ended(error)}; finished fits are kept in {output}, the same command goes on from there")
        raise typer.Exit(exit_code(error)) from None
    show_tables(results, baseline, as_json)
    if not as_json:
        words(f"All results are in {output}; for a page: ranksieve tables {output} --report report.html")


def warn_of_unfinished(results: Results) -> list[str]:
    """Warn about methods without all folds, which are left out; gives the sentences."""
    from ranksieve.experiment.tables import unfinished_sentences

    sentences = unfinished_sentences(results)
    for sentence in sentences:
        say(f"warning: {sentence}")
    return sentences


def show_tables(results: Results, baseline: str | None, as_json: bool) -> None:
    """Tables on the terminal, or all of them as JSON; warns about unfinished methods."""
    from ranksieve.experiment.tables import all_tables, json_table

    tables, unfinished = all_tables(results, baseline), warn_of_unfinished(results)
    if as_json:
        emit_json({"tables": [json_table(one) for one in tables], "unfinished": unfinished})
        return
    for one in tables:
        if one.rows and one.name in SHOWN_TABLES:
            cells = [[f"{c.text}{c.marks}" for c in row] for row in one.rows]
            bold = [[c.bold for c in row] for row in one.rows]
            table(one.columns, cells, one.title, bold)
            words(one.note)
