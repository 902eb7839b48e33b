"""Run one measure for one competitor on one data set, in a separate process: ``python -m benchmarks.child``.

Prints each row as JSON when it is measured, so an interrupted run keeps its finished rows.
"""

from __future__ import annotations

import json
import sys

from benchmarks.competitors import COMPETITORS
from benchmarks.harness import Skipped
from benchmarks.measures import MEASURES
from benchmarks.measures.base import Run

PREFIX = "row: "


def main(measure: str, data: str, competitor: str, mode: str) -> None:
    run = Run(data, COMPETITORS[competitor], full=mode == "full")
    try:
        for row in MEASURES[measure].run(run):
            print(PREFIX + json.dumps(row), flush=True)
    except Skipped as reason:
        print(PREFIX + json.dumps({"what": "all", "skipped": str(reason)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
