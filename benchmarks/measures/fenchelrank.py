"""FenchelRank: milliseconds per iteration, mean over 1,000 iterations, and seconds for the paper's grid.

The grid is fitted on one fold in ``make bench``, on all five in ``make bench-full``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.harness import timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.io.folds import Fold

ITERATIONS = 1_000
NEVER = 1e-300  # smaller than any gap, so that no fit stops early


def fenchelrank(run: Run) -> Iterator[Row]:
    warnings.simplefilter("ignore")  # the tolerance is not reached
    if run.data != "mq2008":
        yield per_iteration(run)
    if run.data_set.folds is not None:
        yield whole_grid(run, run.data_set.folds())


def per_iteration(run: Run) -> Row:
    from ranksieve.rankers import FenchelRank

    data = run.data_set.data
    ranker = FenchelRank(max_iter=ITERATIONS, tol=NEVER)
    FenchelRank(max_iter=5, tol=NEVER).fit(data)  # compile
    times = timings(lambda: ranker.fit(data), run.repeats, run.budget)
    return row("one iteration", "ms", [1e3 * t / ranker.n_iter_ for t in times], iterations=ranker.n_iter_)


def whole_grid(run: Run, all_folds: list[Fold]) -> Row:
    from ranksieve.methods import METHODS

    method, folds = METHODS["fenchelrank"], all_folds[: None if run.full else 1]

    def work() -> None:
        for fold in folds:
            for point in method.grid:
                method.make(**point).fit(fold.train)

    times = timings(work, run.repeats, run.budget)
    what = "the paper's grid, five folds" if run.full else "the paper's grid, Fold1"
    return row(what, "s", times, fits=len(method.grid) * len(folds))


MEASURE = Measure(
    "fenchelrank", "FenchelRank", fenchelrank, ("ohsumed", "mq2008", "long-lists"), limit=(90.0, 3600.0)
)
