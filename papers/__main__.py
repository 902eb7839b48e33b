"""Run the papers' experiments: on LETOR, to write docs/results.md, or on other data.

python -m papers                                    # make results: hours
python -m papers bench LETOR -o results --studies all
python -m papers report results -o report.html      # or .md, .tex, .csv, .json
python -m papers data LETOR                         # whether these files are the data of docs/results.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from papers.bench import bench, load_results, tables_with_studies
from papers.letor_files import check_letor_files
from papers.page import write_page
from papers.results_page import make_results, report_progress
from papers.studies import STUDIES
from ranksieve._parallel import available_threads
from ranksieve.errors import DataError, ParameterError
from ranksieve.experiment.benching import DEFAULT_METHODS
from ranksieve.experiment.tables import markdown, unfinished_messages, write_tables

SHOWN_TABLES = ("accuracy", "significance", "times")
STUDY_OPTIONS: dict[str, bool | str] = {"own": True, "none": False, "all": "all"}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (DataError, ParameterError, OSError) as error:
        sys.exit(f"papers: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=(__doc__ or "").partition("\n")[0])
    parser.set_defaults(run=lambda options: make_results())
    commands = parser.add_subparsers(title="commands")
    run = commands.add_parser("bench", help="run methods and studies on folds")
    run.set_defaults(run=_bench)
    run.add_argument("root", metavar="ROOT", help="folder of LETOR collections, one collection, or data file")
    run.add_argument("-o", "--output", required=True, metavar="DIR", help="results folder")
    run.add_argument(
        "--methods", metavar="A,B,…", help="methods or variants, or all; default: as ranksieve bench"
    )
    run.add_argument(
        "--studies", default="own", metavar="A,B,…",
        help="own (default: studies for any data, and those of the papers of these methods), all (also times "
        f"on synthetic stand-ins), none, or names: {', '.join(STUDIES)}",
    )  # fmt: skip
    run.add_argument("--data", metavar="A,B,…", help="collections in ROOT to use; default: all")
    run.add_argument("--grid", default="paper", choices=("paper", "fast"))
    for name in ("select", "profile"):
        run.add_argument(f"--{name}", metavar="NAME", help="as in ranksieve bench")
    for name in ("normalise", "missing"):
        run.add_argument(f"--{name}", default="auto", metavar="NAME", help="as in ranksieve bench")
    run.add_argument("--seeds", type=int, metavar="N", help="runs of a randomised method")
    run.add_argument("--jobs", type=int, metavar="N", help="processes; default: one per core")
    report = commands.add_parser("report", help="write the page or the tables of a results folder")
    report.set_defaults(run=_report)
    report.add_argument("folder", metavar="DIR", help="results folder")
    report.add_argument(
        "-o", "--output", required=True, metavar="FILE", help=".html, .md, .tex, .csv or .json"
    )
    data = commands.add_parser("data", help="compare data files with those of docs/results.md")
    data.set_defaults(run=lambda options: print(*check_letor_files(Path(options.root)), sep="\n"))
    data.add_argument("root", metavar="ROOT", help="folder of LETOR collections, or one collection")
    for command in (run, report):
        command.add_argument("--baseline", metavar="METHOD", help="method to compare the others with")
    return parser


def _bench(options: argparse.Namespace) -> None:
    methods: str | Sequence[str] = _names(options.methods) or DEFAULT_METHODS
    results = bench(
        options.root,
        "all" if options.methods == "all" else methods,
        out=options.output,
        studies=STUDY_OPTIONS.get(options.studies, _names(options.studies)),
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
    print(
        f"Results are in {options.output}. To write the page: "
        f"python -m papers report {options.output} -o report.html"
    )


def _report(options: argparse.Namespace) -> None:
    results = load_results(options.folder)
    if Path(options.output).suffix.lower() in (".html", ".htm"):
        write_page(results, options.output, options.baseline)
    else:
        write_tables(tables_with_studies(results, options.baseline), options.output)
    for message in unfinished_messages(results):
        print(f"warning: {message}", file=sys.stderr)
    print(f"Wrote {options.output}.")


def _names(text: str | None) -> list[str]:
    return [name for name in (text or "").split(",") if name]


if __name__ == "__main__":
    main()
