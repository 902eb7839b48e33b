"""Run the benchmarks: ``python -m benchmarks [--only measure,…] [--data name,…] [--full] [--again]``.

Measures what benchmarks/results does not contain for the installed versions, then writes the page. ``--full``
adds the largest data, the slowest competitors, and the STUDIES.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.child import PREFIX
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.base import Competitor
from benchmarks.harness import HERE, machine, summarise
from benchmarks.measures import MEASURES
from benchmarks.measures.base import Measure
from benchmarks.page import write_page, write_readme
from benchmarks.results_data import Row, is_current, is_part, read_rows, save_rows

STUDIES = (
    "catboost_ranking",
    "choice",
    "cost_budgets",
    "costs",
    "curves",
    "fenchelrank_vs_ranksvm",
    "films",
    "hybrid",
    "listmle_scaling",
    "minbatsrank_epoch",
    "scale",
    "scorecards",
    "solvers_agree",
    "subset",
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()), flush=True)
    start = time.perf_counter()
    for name in options.only or MEASURES:
        measure_all(MEASURES[name], options.data, "full" if options.full else "quick", options.again)
    print(f"total: {time.perf_counter() - start:.0f} s")
    if options.full and not options.only:
        for name in STUDIES:
            print(f"== {name}", flush=True)
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    write_page()
    write_readme()


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", type=_list_of(MEASURES), default=[], help=f"measures to run: {', '.join(MEASURES)}"
    )
    parser.add_argument(
        "--data",
        type=lambda text: text.split(","),
        default=[],
        help="data sets to use, including the largest ones",
    )
    parser.add_argument("--full", action="store_true", help="run everything; takes hours")
    parser.add_argument("--again", action="store_true", help="also measure results that are up to date")
    return parser.parse_args(arguments)


def _list_of(choices: Sequence[str] | dict[str, Measure]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := sorted(set(names) - set(choices)):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
        return names

    return parse


def measure_all(measure: Measure, data: Sequence[str], mode: str, again: bool) -> None:
    """Run one measure for all competitors and data sets; each part is saved when it is finished."""
    print(f"== {measure.name}: {measure.title}", flush=True)
    for competitor in COMPETITORS.values():
        if measure.name not in competitor.measures:
            continue
        if reason := competitor.unavailable_reason():
            print(f"  skipped: {competitor.name}: {reason}", flush=True)
            continue
        for name in measure.data_sets(mode == "full" or bool(data)):
            if data and name not in data:
                continue
            rows = read_rows(measure.name)
            if not again and is_current(rows, name, competitor.name, competitor.version(), mode):
                continue
            new = run_part(measure, name, competitor, mode)
            save_rows(measure.name, [row for row in rows if not is_part(row, name, competitor.name)] + new)
            print_rows(new)


def run_part(measure: Measure, data: str, competitor: Competitor, mode: str) -> list[Row]:
    """Measure one competitor on one data set; pool the rows if the measure uses several processes."""
    limit = measure.limit[mode == "full"]
    versions = {one.name: one.version() for one in (COMPETITORS["ranksieve"], competitor)}
    common = {"versions": versions, "how": mode, "processor": machine()["processor"]}
    runs = [run_in_child(measure.name, data, competitor.name, mode, limit) for _ in range(measure.processes)]
    rows = runs[0] if len(runs) == 1 else pool_runs(runs)
    return [{"data": data, "competitor": competitor.name, **row, **common} for row in rows]


def run_in_child(measure: str, data: str, competitor: str, mode: str, limit: float) -> list[Row]:
    """Run one part in a child process, for at most ``limit`` seconds."""
    command = [sys.executable, "-m", "benchmarks.child", measure, data, competitor, mode]
    child = subprocess.Popen(
        command,
        cwd=HERE.parent,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},  # spinning threads slow down peers on busy cores
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, errors = child.communicate(timeout=limit)
        failed = {"what": "the rest", "skipped": f"failed: {_last_line(errors)}"}
        skipped = [] if child.returncode == 0 else [failed]
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
        skipped = [{"what": "the rest", "skipped": f"not within {limit:g} s"}]
    rows = [json.loads(line[len(PREFIX) :]) for line in out.splitlines() if line.startswith(PREFIX)]
    return rows + skipped


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or ["no error message"]
    return lines[-1][:200]


def pool_runs(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Merge the rows of several processes into summaries of their medians."""
    rows = []
    for row in runs[0]:
        values = [
            one["median"] for run in runs for one in run if one["what"] == row["what"] and "median" in one
        ]
        rows.append({**row, **summarise(values)} if values else dict(row))
    return rows


def print_rows(rows: Sequence[Row]) -> None:
    for row in rows:
        left = f"  {row['data']:12} {row['competitor']:18} {row['what']:45}"
        if "skipped" in row:
            print(f"{left} skipped: {row['skipped']}", flush=True)
        else:
            spread = f"({row['low']:.4g} to {row['high']:.4g}, n = {row['n']})"
            print(f"{left} {row['median']:.4g} {row['unit']} {spread}", flush=True)


if __name__ == "__main__":
    main()
