"""report: a folder of results as a page or as tables."""

from __future__ import annotations

from pathlib import Path

from ranksieve.commands.benching import show_tables
from ranksieve.commands.files import beside, check_outputs
from ranksieve.commands.show import emit_json, words
from ranksieve.experiment.results import load_results
from ranksieve.experiment.table_files import TABLE_FORMATS, write_tables
from ranksieve.experiment.tables import all_tables
from ranksieve.report import require_extra
from ranksieve.report.results_page import write_results_page

PAGES = (".html", ".htm")


def report_results(folder: str, *, output: str | None, baseline: str | None, as_json: bool) -> None:
    """Write the page, or the tables in the format that the file's suffix names; without a file, show them."""
    if output is None:
        show_tables(all_tables(load_results(folder), baseline), as_json)
        return
    is_page = _check_suffix(output) in PAGES
    check_outputs([output])
    if is_page:
        require_extra()
    results = load_results(folder)
    if is_page:
        write_results_page(results, output, baseline)
    else:
        write_tables(all_tables(results, baseline), output)
    with beside(output):
        if as_json:
            emit_json({"results": folder, "data_sets": list(results.data_sets), "output": output})
        else:
            words(f"Wrote {output}.")


def _check_suffix(output: str) -> str:
    suffix, known = Path(output).suffix.lower(), (*PAGES, *TABLE_FORMATS)
    if suffix not in known:
        raise ValueError(f"{output}: the end of the name tells what to write; give one of {', '.join(known)}")
    return suffix
