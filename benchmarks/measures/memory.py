"""Peak resident memory of a process that reads a data set and solves one ℓ1 problem."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import peak_megabytes
from benchmarks.measures.base import Measure, Row, Run, row
from benchmarks.problems import problems


def memory(run: Run) -> Iterator[Row]:
    data = run.data_set.data
    start = peak_megabytes()
    run.competitor.solve(run.competitor.prepare(data), problems(data)[-1], 1e-2)
    yield row("ℓ1 fit, peak resident memory", "MB", [peak_megabytes()], before_the_fit=start)


MEASURE = Measure("memory", "Peak memory", memory, ("ohsumed", "long-lists"), processes=5)
