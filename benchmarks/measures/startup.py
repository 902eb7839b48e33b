"""Time of the import, of the help, of a fit to a small file, and of the first fit, which compiles."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.competitors import RANKSIEVE
from benchmarks.harness import interleaved_timings, seconds
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.io.letor import write_letor
from ranksieve.synthetic import make_ranking

COMMAND = (sys.executable, "-c", "from ranksieve.cli import main; main()")


def startup(run: Run) -> Iterator[Row]:
    is_ranksieve = run.competitor.name == RANKSIEVE
    code = "from ranksieve import SparseRanker" if is_ranksieve else f"import {run.competitor.module}"
    yield row("import, ready to fit", "s", seconds(lambda: call(sys.executable, "-c", code), run.repeats))
    if not is_ranksieve:
        return
    code = "import ranksieve"  # imports other modules lazily
    yield row(code, "s", seconds(lambda: call(sys.executable, "-c", code), run.repeats))
    yield row("python alone", "s", seconds(lambda: call(sys.executable, "-c", "pass"), run.repeats))
    yield row("ranksieve --help", "s", seconds(lambda: call(*COMMAND, "--help"), run.repeats))
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder, "train.txt")
        write_letor(make_ranking(40, 20, 4, random_state=0), train)
        fit = (*COMMAND, "fit", train, "-o", Path(folder, "model.json"))
        call(*fit)
        caches = (str(Path(folder, f"cache{k}")) for k in count())
        yield from compare(run, "a second fit of a small file", lambda: call(*fit), "sklearn.base")
        yield from compare(
            run,
            "a first fit, without a kernel cache",
            lambda: call(*fit, NUMBA_CACHE_DIR=next(caches)),
            "lightgbm",
        )


def compare(run: Run, what: str, work: Callable[[], None], module: str) -> Iterator[Row]:
    """Time of ``work``, with its ratio to the import of a module in the same minute."""
    imported = partial(call, sys.executable, "-c", f"import {module}")
    times = interleaved_timings({"work": work, "import": imported}, run.repeats, run.budget)
    ratio = float(np.median(times["work"]) / np.median(times["import"]))
    yield row(what, "s", times["work"], **{f"times_import_{module}": ratio})


def call(*command: object, **variables: str) -> None:
    subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, env={**os.environ, **variables}
    )


MEASURE = Measure("startup", "Starting", startup, ("–",), limit=(120.0, 1200.0))
