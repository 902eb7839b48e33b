"""ranksieve tables: results of bench as tables or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.bench import Baseline, show_tables, warn_of_unfinished
from ranksieve.errors import DataError


@command(
    "ranksieve tables results",
    "ranksieve tables results --report report.html",
    "ranksieve tables results --baseline listnet -o tables.md",
)
def tables(
    *,
    folder: Annotated[str, opt.argument("RESULTS", "A folder written by bench.")],
    baseline: Baseline = None,
    output: Annotated[
        opt.Text, opt.output_option("FILE", "Write the tables: .md, .tex, .csv or .json.")
    ] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Show results of bench as tables, or write a page.

    The page is one self-contained file with the selected features and their stability, losses per query,
    significance tests, tables and figures. Its default baseline is the best dense method.
    """
    from ranksieve.experiment.tables import TABLE_FORMATS, all_tables, write_tables
    from ranksieve.report.results_page import write_results_page

    if output is not None and Path(output).suffix.lower() not in TABLE_FORMATS:
        raise DataError(output, None, f"the file name must end in one of {', '.join(TABLE_FORMATS)}")
    opt.check_files([], output, report=report)
    results = rs.load_results(folder)
    if output is None and report is None:
        show_tables(results, baseline, as_json)
        return
    if report is not None:
        write_results_page(results, report, baseline)
    if output is not None:
        write_tables(all_tables(results, baseline), output)
    content = {"results": folder, "data_sets": list(results.data_sets), "output": output, "report": report}
    content["unfinished"] = warn_of_unfinished(results)
    opt.print_result(content, as_json, lambda: None, output, report)
