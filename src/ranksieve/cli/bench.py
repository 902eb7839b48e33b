"""ranksieve bench: compare methods on LETOR folds, or on a data file split into folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import (
    emit_json,
    exit_code,
    interruption_text,
    print_all,
    print_stderr,
    print_text,
    progress,
)
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.experiment import Results

Baseline = Annotated[
    opt.Text, opt.value("Model", "METHOD", "The method to compare the others with.", "ranksvm")
]
MIXED_LABELS = "letor for LETOR folds with labels up to 2, else standard"
METHODS_HELP = 'Methods to compare ("ranksieve methods" lists them; or package.module:Class), or all.'
SEEDS = "3; 5 for minbatsrank; 1 with the fast grid"


@command(
    "ranksieve bench LETOR -o results",
    "ranksieve bench LETOR --methods fenchelrank,ranksvm --grid fast -o results",
)
def bench(
    *,
    root: Annotated[
        str, opt.argument("DATA", "A LETOR collection, a folder of collections, or a data file.")
    ],
    data_sets: Annotated[opt.Text, opt.value("Data", "A,B,…", "Collections in DATA to use.", "all")] = None,
    normalise: Annotated[str, opt.NORMALISE_OPTION] = "auto",
    missing: Annotated[str, opt.MISSING_OPTION] = "auto",
    methods: Annotated[
        opt.Text, opt.value("Model", "A,B,…", METHODS_HELP, "the sparse methods and some baselines")
    ] = None,
    grid: Annotated[
        str, opt.value("Model", "NAME", "paper: the grids of the papers; fast: a few points of them.")
    ] = "paper",
    metric: Annotated[
        opt.Text, opt.value("Model", "NAME", "Metric to select by.", "as in the papers")
    ] = None,
    profile: Annotated[opt.Text, opt.value("Model", "NAME", opt.PROFILE_HELP, MIXED_LABELS)] = None,
    n_seeds: Annotated[
        int | None, opt.value("Model", "N", "Number of seeds for each randomised method.", SEEDS, min=1)
    ] = None,
    baseline: Baseline = None,
    n_jobs: Annotated[
        int | None, opt.value("Computing", "N", "Number of processes.", "one per core", min=1)
    ] = None,
    output: Annotated[str, opt.output_option("DIR", "Folder for the results; may contain earlier ones.")],
    as_json: opt.Json = False,
) -> None:
    """Compare methods over folds.

    In each fold, fits every point of the grids to the training queries, selects on the validation queries and
    evaluates on the test queries. A single data file is split into five folds. Each finished fit is saved; to
    resume an interrupted run, repeat the command.
    """
    from ranksieve._parallel import available_threads
    from ranksieve.experiment.benching import DEFAULT_METHODS, method_name
    from ranksieve.methods import METHODS

    names: str | Sequence[str] = DEFAULT_METHODS
    if methods is not None:
        names = methods if methods == "all" else opt.comma_separated(methods)
    if baseline is not None and baseline not in (METHODS if names == "all" else map(method_name, names)):
        raise ParameterError("baseline", baseline, "is not one of the methods; add it to `methods`")
    try:
        with progress("fitting") as bar:
            results = rs.bench(
                root, names, out=output, grid=grid, select=metric, profile=profile, normalise=normalise,
                data_sets=None if data_sets is None else opt.comma_separated(data_sets), missing=missing,
                n_seeds=n_seeds, n_jobs=n_jobs or available_threads(), progress=bar,
            )  # fmt: skip
    except KeyboardInterrupt as error:
        print_stderr(
            f"{interruption_text(error)}; finished fits are kept in {output}; repeat the command to resume"
        )
        raise typer.Exit(exit_code(error)) from None
    show_tables(results, baseline, as_json)
    if not as_json:
        print_text(
            f"Results are in {output}. To write a page: ranksieve tables {output} --report report.html"
        )


def warn_of_unfinished(results: Results) -> list[str]:
    """Warn about methods with unfinished folds, which are left out; return the warnings."""
    from ranksieve.experiment.tables import unfinished_messages

    sentences = unfinished_messages(results)
    for sentence in sentences:
        print_stderr(f"warning: {sentence}")
    return sentences


def show_tables(results: Results, baseline: str | None, as_json: bool) -> None:
    """Print the main tables, or all of them as JSON; warn about unfinished methods."""
    from ranksieve.experiment.tables import all_tables, json_table, main_parts

    tables, unfinished = all_tables(results, baseline), warn_of_unfinished(results)
    if as_json:
        emit_json({"tables": [json_table(one) for one in tables], "unfinished": unfinished})
        return
    print_all(main_parts(tables))
