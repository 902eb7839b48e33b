"""One competitor, one data set, one measure, in a process of its own: ``python -m benchmarks.child``.

Prints one JSON object per row as soon as it is known, so that a run that is stopped keeps what it has.
"""

from __future__ import annotations

import json
import sys

from benchmarks.competitors import COMPETITORS
from benchmarks.harness import Skipped
from benchmarks.measures import MEASURES
from benchmarks.measures.base import Run

MARK = "row: "


def main(measure: str, data: str, competitor: str, how: str) -> None:
    run = Run(data, COMPETITORS[competitor], full=how == "full")
    try:
        for row in MEASURES[measure].run(run):
            print(MARK + json.dumps(row), flush=True)
    except Skipped as why:
        print(MARK + json.dumps({"what": "all", "skipped": str(why)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
