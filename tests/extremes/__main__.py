"""Fit every method to extreme data, thousands of times: ``python -m tests.extremes --fits 5000 --seed 7``.

Each fit runs in a subprocess with a time limit. Faults are printed with the case that reproduces them; the
exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from ranksieve.methods import METHODS
from tests.extremes.cases import draw
from tests.extremes.judges import Judges


def main() -> int:
    options = _options()
    print_line(f"seed {options.seed}, {options.fits} fits, first number {options.first}")
    counts, faults, started = Counter(), Counter(), time.monotonic()
    with Judges(options.seed) as judges:
        for number in range(options.first, options.first + options.fits):
            outcome = judges.judge(number, options.methods)
            counts[outcome.what] += 1
            if outcome.what == "fault" or options.all:
                case = draw(options.seed, number, options.methods)
                print_line(f"{number}: {case}\n    {outcome.what}: {outcome.words}")
                faults[case.method] += outcome.what == "fault"
    summary = ", ".join(f"{counts[what]} {what}" for what in ("fitted", "refused", "fault"))
    print_line(f"{summary} in {time.monotonic() - started:.0f} s; faults by method: {dict(+faults)}")
    return 1 if counts["fault"] else 0


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.extremes", description=__doc__)
    parser.add_argument("--fits", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=[*METHODS])
    parser.add_argument("--all", action="store_true", help="print every case, not only faults")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
