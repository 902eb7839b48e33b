"""Seconds for the 100-point certified path, and for one ℓ1 fit of LinearSVC on pairs (default tolerance)."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.competitors import RANKSIEVE
from benchmarks.harness import timings
from benchmarks.measures.base import Measure, Row, Run, row
from benchmarks.problems import problems
from ranksieve.path import sparse_path

DEFAULT_TOL = 1e-4
WHAT = "100-point path, against one fit on pairs"


def path(run: Run) -> Iterator[Row]:
    data = run.data_set.data
    if run.competitor.name == RANKSIEVE:
        result = sparse_path(data)  # compile
        times = timings(lambda: sparse_path(data), run.repeats, 3 * run.budget)
        worst = float(result.relative_gaps.max())
        yield row(
            WHAT, "s", times, points=len(result), worst_relative_gap=worst, steps=int(result.n_iter.sum())
        )
        return
    problem = problems(data)[-1]
    prepared = run.competitor.prepare(data)
    times = timings(lambda: run.competitor.solve(prepared, problem, DEFAULT_TOL), run.repeats, 3 * run.budget)
    yield row(WHAT, "s", times, points=1, pairs=problem.n_pairs)


MEASURE = Measure(
    "path",
    "The path of 100 models",
    path,
    ("ohsumed", "mq2008", "long-lists", "250k", "1m"),
    limit=(90.0, 3600.0),
)
