"""The papers' experiments: on LETOR into docs/results.md, or on other folds into a folder and a page.

python -m papers                                    # make results: hours
python -m papers bench LETOR -o results --studies all
python -m papers report results -o report.html      # or .md, .tex, .csv, .json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from papers.bench import bench, load_results, tables_with_studies
from papers.page import write_page
from papers.results_page import make_results, report_progress
from papers.studies import STUDIES
from ranksieve._parallel import available_threads
from ranksieve.errors import DataError, ParameterError
from ranksieve.experiment.benching import DEFAULT_METHODS
from ranksieve.experiment.tables import markdown, unfinished_messages, write_tables

SHOWN_TABLES = ("accuracy", "significance", "times")
STUDY_WORDS: dict[str, bool | str] = {"own": True, "none": False, "all": "all"}


def main(words: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    options = _parser().parse_args(words)
    try:
        options.run(options)
    except (DataError, ParameterError, OSError) as error:
        sys.exit(f"papers: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=(__doc__ or "").partition("\n")[0])
    parser.set_defaults(run=lambda options: make_results())
    commands = parser.add_subparsers(title="commands")
    one = commands.add_parser("bench", help="methods and studies on folds")
    one.set_defaults(run=_bench)
    one.add_argument("root", metavar="ROOT", help="LETOR collections, one of them, or a data file")
    one.add_argument("-o", "--output", required=True, metavar="DIR", help="the folder of results")
    one.add_argument("--methods", metavar="A,B,…", help="methods or variants, or all; default the papers'")
    one.add_argument(
        "--studies", default="own", metavar="A,B,…",
        help="own (of any data, and of the papers of these methods), all (also timings on synthetic "
        f"stand-ins), none, or names: {', '.join(STUDIES)}",
    )  # fmt: skip
    one.add_argument("--data", metavar="A,B,…", help="collections of ROOT; default all")
    one.add_argument("--grid", default="paper", choices=("paper", "fast"))
    for name in ("select", "profile"):
        one.add_argument(f"--{name}", metavar="NAME", help="as ranksieve bench")
    for name in ("normalise", "missing"):
        one.add_argument(f"--{name}", default="auto", metavar="NAME", help="as ranksieve bench")
    one.add_argument("--seeds", type=int, metavar="N", help="runs of a method that draws")
    one.add_argument("--jobs", type=int, metavar="N", help="processes; default one for each core")
    two = commands.add_parser("report", help="a folder of results as a page or as tables")
    two.set_defaults(run=_report)
    two.add_argument("folder", metavar="DIR", help="the folder of results")
    two.add_argument("-o", "--output", required=True, metavar="FILE", help=".html, .md, .tex, .csv or .json")
    for command in (one, two):
        command.add_argument("--baseline", metavar="METHOD", help="what the others are compared with")
    return parser


def _bench(options: argparse.Namespace) -> None:
    methods: str | Sequence[str] = _names(options.methods) or DEFAULT_METHODS
    results = bench(
        options.root,
        "all" if options.methods == "all" else methods,
        out=options.output,
        studies=STUDY_WORDS.get(options.studies, _names(options.studies)),
        data_sets=_names(options.data) or None,
        grid=options.grid,
        select=options.select,
        profile=options.profile,
        normalise=options.normalise,
        missing=options.missing,
        n_seeds=options.seeds,
        n_jobs=options.jobs or available_threads(),
        progress=report_progress,
    )
    tables = tables_with_studies(results, options.baseline)
    print(markdown([table for table in tables if table.rows and table.name in SHOWN_TABLES]))
    print(f"All results are in {options.output}; a page: python -m papers report {options.output} -o FILE")


def _report(options: argparse.Namespace) -> None:
    results = load_results(options.folder)
    if Path(options.output).suffix.lower() in (".html", ".htm"):
        write_page(results, options.output, options.baseline)
    else:
        write_tables(tables_with_studies(results, options.baseline), options.output)
    for sentence in unfinished_messages(results):
        print(f"warning: {sentence}", file=sys.stderr)
    print(f"Wrote {options.output}.")


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name]


if __name__ == "__main__":
    main()
