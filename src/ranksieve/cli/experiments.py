"""Commands that reproduce the papers' experiments: bench, report."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import Json


@command(
    "ranksieve bench LETOR -o results",
    "ranksieve bench LETOR --methods fenchelrank,ranksvm --grid fast -o results",
)
def bench(
    root: Annotated[
        str,
        typer.Argument(metavar="ROOT", help="A folder of LETOR collections, one of them, or a data file."),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder of results; it may hold others.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Methods, or all; default the papers' and baselines."),
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
            "default letor for labels up to 2, else standard.",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="What the others are compared with; default ranksvm.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes; default one for each core.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the papers' experiments on LETOR folds.

    Fits every grid point on train, chooses on vali, measures test, over all folds; a single data file is
    dealt into five folds. Each finished fit is written down: a run that was stopped goes on where it was when
    the same command is given again.
    """
    from ranksieve.commands.benching import run_bench

    run_bench(
        root,
        methods=methods,
        data_sets=data,
        grid=grid,
        select=select,
        profile=profile,
        baseline=baseline,
        jobs=jobs,
        output=output,
        as_json=as_json,
    )


@command(
    "ranksieve report results -o report.html",
    "ranksieve report results --baseline listnet -o tables.md",
)
def report(
    folder: Annotated[str, typer.Argument(metavar="RESULTS", help="A folder that ranksieve bench wrote.")],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A page (.html) or tables (.md, .tex, .csv, .json); without it, tables on the terminal.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="What the others are compared with; default ranksvm in tables, the best dense on the page.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Turn results into a page to show, or into tables.

    The page is one file that needs no network: which features, how sure, what is lost per query, whether it
    is significant, with all tables and pictures.
    """
    from ranksieve.commands.reporting import report_results

    report_results(folder, output=output, baseline=baseline, as_json=as_json)
