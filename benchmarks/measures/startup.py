"""Time of the import, of the help, of a fit to a small file, and of the first fit, which compiles."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.competitors import RANKSIEVE
from benchmarks.harness import seconds
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
        yield row("a second fit of a small file", "s", seconds(lambda: call(*fit), run.repeats))
        first = []
        for k in range(run.repeats if run.full else 1):
            cache = Path(folder, f"cache{k}")
            first += seconds(partial(call, *fit, NUMBA_CACHE_DIR=str(cache)), 1)
        yield row("a first fit, without a kernel cache", "s", first)


def call(*command: object, **variables: str) -> None:
    subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, env={**os.environ, **variables}
    )


MEASURE = Measure("startup", "Starting", startup, ("–",), limit=(120.0, 1200.0))
