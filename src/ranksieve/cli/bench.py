"""ranksieve bench: any methods on a folder of LETOR folds, or on a data file dealt into folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.options import NORMALISE, RANKER_MISSING, Json, comma_separated, connected
from ranksieve.cli.output import emit_json, exit_code, how_ended, progress, say, table, words
from ranksieve.errors import ParameterError

if TYPE_CHECKING:
    from ranksieve.experiment import Results

SHOWN_TABLES = ("accuracy", "significance", "times")


@command(
    "ranksieve bench LETOR -o results",
    "ranksieve bench LETOR --methods fenchelrank,ranksvm --grid fast -o results",
)
def bench(
    *,
    root: Annotated[
        str,
        typer.Argument(metavar="ROOT", help="A folder of LETOR collections, one of them, or a data file."),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder of results; it may hold others.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Methods, or all; default sparse ones and baselines: {methods}."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="A,B,…", help="Collections of ROOT; default all.")
    ] = None,
    grid: Annotated[
        str, typer.Option(metavar="NAME", help="paper: all points the papers try; fast: a few of them.")
    ] = "paper",
    select: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="What the choice on vali maximises; default as in the papers."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Metric conventions: letor, mslr, standard or trec; "
            "default letor for LETOR's folds with labels up to 2, else standard.",
        ),
    ] = None,
    normalise: Annotated[str, NORMALISE] = "auto",
    missing: Annotated[str, RANKER_MISSING] = "auto",
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Runs of a method that draws, each with another seed; default 3, MinBatSRank 5, with the "
            "fast grid 1.",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="What the others are compared with; default ranksvm.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes; default one for each core.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Let the workers of a Dask cluster fit: tcp://HOST:PORT; DIR is a folder that they share.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare methods over folds.

    Fits every grid point on train, chooses on vali, measures test, over all folds; a single data file is
    dealt into five folds. Each finished fit is saved: give the same command again to continue a run that was
    stopped.
    """
    from ranksieve._parallel import available_threads
    from ranksieve.experiment.benching import DEFAULT_METHODS
    from ranksieve.methods import METHODS

    names: str | Sequence[str] = DEFAULT_METHODS
    if methods is not None:
        names = methods if methods == "all" else comma_separated(methods)
    if baseline is not None and baseline not in (METHODS if names == "all" else names):
        raise ParameterError("baseline", baseline, "is not among the methods; add it to `methods`")
    try:
        with connected(cluster) as client, progress("fitting") as bar:
            results = rs.bench(
                root,
                names,
                out=output,
                data_sets=None if data is None else comma_separated(data),
                grid=grid,
                select=select,
                profile=profile,
                normalise=normalise,
                missing=missing,
                n_seeds=seeds,
                n_jobs=jobs or available_threads(),
                cluster=client,
                progress=bar,
            )
    except KeyboardInterrupt as error:
        say(f"{how_ended(error)}; finished fits are kept in {output}, the same command goes on from there")
        raise typer.Exit(exit_code(error)) from None
    show_tables(results, baseline, as_json)
    if not as_json:
        words(f"All results are in {output}; a page about them: ranksieve report {output} -o report.html")


def say_unfinished(results: Results) -> list[str]:
    """Say on stderr which methods are left out; gives the sentences."""
    from ranksieve.experiment.tables import unfinished_sentences

    sentences = unfinished_sentences(results)
    for sentence in sentences:
        say(f"warning: {sentence}")
    return sentences


def show_tables(results: Results, baseline: str | None, as_json: bool) -> None:
    """Tables on the terminal, or all of them as JSON, and what is unfinished."""
    from ranksieve.experiment.tables import all_tables, json_table

    tables, unfinished = all_tables(results, baseline), say_unfinished(results)
    if as_json:
        emit_json({"tables": [json_table(one) for one in tables], "unfinished": unfinished})
        return
    for one in tables:
        if one.rows and one.name in SHOWN_TABLES:
            cells = [[f"{c.text}{c.marks}" for c in row] for row in one.rows]
            bold = [[c.bold for c in row] for row in one.rows]
            table(one.columns, cells, one.title, bold)
            words(one.note)
