"""Seconds until the objective is within 1e-3 and 1e-6 (relative) of its minimum.

Each competitor uses the loosest of its tolerances that reaches the target. The rows "from the file" add the
time to read the file and, if needed, to build the pairs; programs that read files have only these rows. The
objective is evaluated by ranksieve for all competitors; tests compare it with brute force.
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
MAX_QUICK_DOCS = 100_000  # larger text files are written only in the full run
MAX_QUICK_STRENGTH = 1_000.0  # C·p; solvers on pairs need minutes for more, so only in the full run


def to_objective(run: Run) -> Iterator[Row]:
    data, competitor = run.data_set.data, run.competitor
    warm_up(competitor)
    reading = None
    if competitor.reads_files_itself:
        prepared = run.data_set.path if run.data_set.letor_file else competitor.prepare(data)
    else:
        if run.full or data.n_docs <= MAX_QUICK_DOCS:
            reading = read_times(run)
        prepared = competitor.prepare(data)
    for problem in problems(data):
        if problem.kind in competitor.objectives and (run.full or problem.strength <= MAX_QUICK_STRENGTH):
            yield from rows_to_targets(run, problem, prepared, reading)


def rows_to_targets(
    run: Run, problem: BenchmarkProblem, prepared: Any, reading: list[float] | None
) -> Iterator[Row]:
    """Rows for both targets; the second target starts with the tolerance that reached the first."""
    tolerances, last = iter(run.competitor.tolerances), {"distance": math.inf}
    for target in TARGETS:
        what = f"{problem.name}, to {target:g}"
        while last["distance"] > target:
            tol = next(tolerances, None)
            if tol is None:
                yield {"what": what, "skipped": f"not reached: {last['distance']:.1g} at best"}
                return
            start = time.perf_counter()
            w = run.competitor.solve(prepared, problem, tol)
            last = {
                "seconds": time.perf_counter() - start,
                "tolerance": tol,
                "distance": problem.distance(w),
            }
        tol = last["tolerance"]
        work = partial(run.competitor.solve, prepared, problem, tol)
        times = timings(work, run.repeats, run.budget, [last["seconds"]])
        more = {"tolerance": tol, "distance": last["distance"]}
        if not run.competitor.reads_files_itself:
            yield row(what, "s", times, **more)
        else:
            yield row(f"{what}, from the file", "s", times, **more)
        if reading is not None:
            sums = [a + b for a, b in zip(reading, times, strict=False)]
            yield row(f"{what}, from the file", "s", sums, **more)


def read_times(run: Run) -> list[float]:
    """Seconds to read the file and convert the data for the competitor."""
    path = run.data_set.path

    def work() -> None:
        run.competitor.prepare(run.competitor.read(path))

    try:
        return timings(work, run.repeats, run.budget)
    except (ValueError, MemoryError) as error:
        raise Skipped(f"cannot read the file: {error}") from None


def warm_up(competitor: Competitor) -> None:
    """Solve small problems, so that everything is compiled."""
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
