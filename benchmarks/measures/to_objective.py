"""Seconds until the same objective is within 1e-3 and 1e-6 of its minimum.

Each competitor gets the loosest tolerance of its own ladder that reaches the target. Reading the file (and
building pairs, where that is needed) is timed apart and added in the rows "from the file"; a program that
reads files itself has only those. The objective is evaluated by ours, which tests hold against brute force.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.competitors.base import Competitor
from benchmarks.harness import Skipped, timings
from benchmarks.measures.base import Measure, Row, Run, row
from benchmarks.problems import BenchmarkProblem, problems
from ranksieve.synthetic import make_ranking

TARGETS = (1e-3, 1e-6)
LARGE = 100_000  # documents: beyond, only the full run writes the text file
STRONG = 1_000.0  # C·p: beyond, only the full run, because solvers on pairs need minutes


def to_objective(run: Run) -> Iterator[Row]:
    data, competitor = run.data_set.data, run.competitor
    warm_up(competitor)
    reading = None
    if competitor.reads_files_itself:
        prepared = run.data_set.path if run.data_set.letor_file else competitor.prepare(data)
    else:
        if run.full or data.n_docs <= LARGE:
            reading = read_times(run)
        prepared = competitor.prepare(data)
    for problem in problems(data):
        if problem.kind in competitor.objectives and (run.full or problem.strength <= STRONG):
            yield from race(run, problem, prepared, reading)


def race(run: Run, problem: BenchmarkProblem, prepared: Any, reading: list[float] | None) -> Iterator[Row]:
    """Rows for both targets; the ladder goes on where the looser target left it."""
    ladder, known = iter(run.competitor.tolerances), {"distance": math.inf}
    for target in TARGETS:
        what = f"{problem.name}, to {target:g}"
        while known["distance"] > target:
            tol = next(ladder, None)
            if tol is None:
                yield {"what": what, "skipped": f"not reached: {known['distance']:.1g} at best"}
                return
            start = time.perf_counter()
            w = run.competitor.solve(prepared, problem, tol)
            known = {
                "seconds": time.perf_counter() - start,
                "tolerance": tol,
                "distance": problem.distance(w),
            }
        tol = known["tolerance"]
        work = partial(run.competitor.solve, prepared, problem, tol)
        times = timings(work, run.repeats, run.budget, [known["seconds"]])
        more = {"tolerance": tol, "distance": known["distance"]}
        if not run.competitor.reads_files_itself:
            yield row(what, "s", times, **more)
        else:
            yield row(f"{what}, from the file", "s", times, **more)
        if reading is not None:
            both = [a + b for a, b in zip(reading, times, strict=False)]
            yield row(f"{what}, from the file", "s", both, **more)


def read_times(run: Run) -> list[float]:
    """Reading the file and bringing the data into the competitor's form."""
    path = run.data_set.path

    def work() -> None:
        run.competitor.prepare(run.competitor.read(path))

    try:
        return timings(work, run.repeats, run.budget)
    except (ValueError, MemoryError) as error:
        raise Skipped(f"cannot read the file: {error}") from None


def warm_up(competitor: Competitor) -> None:
    """Let everything compile that compiles at its first use."""
    tiny = make_ranking(8, 10, 3, docs_per_query=(5, 8), random_state=1)
    for problem in problems(tiny):
        if problem.kind in competitor.objectives and not competitor.reads_files_itself:
            competitor.solve(competitor.prepare(tiny), problem, 1e-2)


MEASURE = Measure(
    "to_objective",
    "Seconds to the same objective",
    to_objective,
    ("ohsumed", "mq2008", "long-lists", "250k", "1m"),
    limit=(120.0, 7200.0),
)
