"""The race: ``python -m benchmarks [--only measure,…] [--data name,…] [--full] [--again]``.

Measures whatever is not in benchmarks/results yet for the versions at hand, then writes the page. With
``--full``: also the largest data, the slowest competitors, and the studies of single claims (STUDIES).
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

from benchmarks.child import MARK
from benchmarks.competitors import COMPETITORS
from benchmarks.competitors.base import Competitor
from benchmarks.harness import HERE, machine, spread
from benchmarks.measures import MEASURES
from benchmarks.measures.base import Measure
from benchmarks.page import write_page
from benchmarks.results_data import Row, is_known, keep_rows, read_rows, same_part

STUDIES = (
    "choice",
    "cost_budgets",
    "costs",
    "fenchelrank_vs_ranksvm",
    "films",
    "listmle_scaling",
    "minbatsrank_epoch",
    "scale",
    "scorecards",
    "solvers_agree",
    "subset",
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    print(", ".join(f"{name}: {value}" for name, value in machine().items()), flush=True)
    start = time.perf_counter()
    for name in options.only or MEASURES:
        measure_all(MEASURES[name], options.data, "full" if options.full else "quick", options.again)
    print(f"all measures: {time.perf_counter() - start:.0f} s")
    if options.full and not options.only:
        for name in STUDIES:
            print(f"== {name}", flush=True)
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    write_page()


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=_names(MEASURES), default=[], help=", ".join(MEASURES))
    parser.add_argument(
        "--data",
        type=lambda text: text.split(","),
        default=[],
        help="names of data sets, also of the largest",
    )
    parser.add_argument("--full", action="store_true", help="everything; takes hours")
    parser.add_argument("--again", action="store_true", help="measure again what is known")
    return parser.parse_args(arguments)


def _names(known: Sequence[str] | dict[str, Measure]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        given = text.split(",")
        if unknown := sorted(set(given) - set(known)):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return given

    return names


def measure_all(measure: Measure, data: Sequence[str], how: str, again: bool) -> None:
    """All competitors on all data sets of one measure; each part is kept as soon as it is done."""
    print(f"== {measure.name}: {measure.title}", flush=True)
    for competitor in COMPETITORS.values():
        if measure.name not in competitor.measures:
            continue
        if absent := competitor.absent():
            print(f"  skipped: {competitor.name}: {absent}", flush=True)
            continue
        for name in measure.data_sets(how == "full" or bool(data)):
            if data and name not in data:
                continue
            rows = read_rows(measure.name)
            if not again and is_known(rows, name, competitor.name, competitor.version(), how):
                continue
            new = measured(measure, name, competitor, how)
            keep_rows(measure.name, [row for row in rows if not same_part(row, name, competitor.name)] + new)
            show(new)


def measured(measure: Measure, data: str, competitor: Competitor, how: str) -> list[Row]:
    """The rows of one part, from one process or several; those from several are pooled."""
    limit = measure.limit[how == "full"]
    versions = {one.name: one.version() for one in (COMPETITORS["ranksieve"], competitor)}
    told = {"versions": versions, "how": how, "processor": machine()["processor"]}
    runs = [in_child(measure.name, data, competitor.name, how, limit) for _ in range(measure.processes)]
    rows = runs[0] if len(runs) == 1 else pooled(runs)
    return [{"data": data, "competitor": competitor.name, **row, **told} for row in rows]


def in_child(measure: str, data: str, competitor: str, how: str, limit: float) -> list[Row]:
    """Run one part in a process of its own, for at most ``limit`` seconds."""
    command = [sys.executable, "-m", "benchmarks.child", measure, data, competitor, how]
    child = subprocess.Popen(
        command,
        cwd=HERE.parent,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},  # threads that spin would slow peers on busy cores
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, errors = child.communicate(timeout=limit)
        end = [] if child.returncode == 0 else [{"what": "the rest", "skipped": f"failed: {_last(errors)}"}]
    except subprocess.TimeoutExpired:
        child.kill()
        out, _ = child.communicate()
        end = [{"what": "the rest", "skipped": f"not within {limit:g} s"}]
    rows = [json.loads(line[len(MARK) :]) for line in out.splitlines() if line.startswith(MARK)]
    return rows + end


def _last(text: str) -> str:
    lines = text.strip().splitlines() or ["no word"]
    return lines[-1][:200]


def pooled(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Rows of the same thing from several processes as one, over the medians of each."""
    rows = []
    for row in runs[0]:
        values = [
            one["median"] for run in runs for one in run if one["what"] == row["what"] and "median" in one
        ]
        rows.append({**row, **spread(values)} if values else dict(row))
    return rows


def show(rows: Sequence[Row]) -> None:
    for row in rows:
        left = f"  {row['data']:12} {row['competitor']:18} {row['what']:45}"
        if "skipped" in row:
            print(f"{left} skipped: {row['skipped']}", flush=True)
        else:
            spread_words = f"({row['low']:.4g} to {row['high']:.4g}, n = {row['n']})"
            print(f"{left} {row['median']:.4g} {row['unit']} {spread_words}", flush=True)


if __name__ == "__main__":
    main()
