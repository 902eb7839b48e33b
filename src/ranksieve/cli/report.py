"""ranksieve report: a folder of results as a page or as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.bench import say_unfinished, show_tables
from ranksieve.cli.options import Json, beside, check_outputs
from ranksieve.cli.output import emit_json, words
from ranksieve.errors import DataError

PAGES = (".html", ".htm")


@command(
    "ranksieve report results -o report.html",
    "ranksieve report results --baseline listnet -o tables.md",
)
def report(
    *,
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
    from ranksieve.experiment.tables import TABLE_FORMATS, all_tables, write_tables
    from ranksieve.report import require_extra
    from ranksieve.report.results_page import write_results_page

    if output is None:
        show_tables(rs.load_results(folder), baseline, as_json)
        return
    suffix, known = Path(output).suffix.lower(), (*PAGES, *TABLE_FORMATS)
    if suffix not in known:
        raise DataError(output, None, f"must end in one of {', '.join(known)}")
    check_outputs([output])
    if suffix in PAGES:
        require_extra()
    results = rs.load_results(folder)
    if suffix in PAGES:
        write_results_page(results, output, baseline)
    else:
        write_tables(all_tables(results, baseline), output)
    unfinished = say_unfinished(results)
    with beside(output):
        if as_json:
            about = {"results": folder, "data_sets": list(results.data_sets), "output": output}
            emit_json({**about, "unfinished": unfinished})
        else:
            words(f"Wrote {output}.")
