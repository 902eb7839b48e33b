"""Kill commands at random moments: ``python -m tests.faults --kills 200``; exit code 1 after a fault."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

from tests.faults.jobs import JOBS, make_inputs
from tests.faults.trials import Tally, measure, try_job

KILLS_PER_TRIAL = 3
COLUMNS = ("SIGKILL", "SIGTERM", "SIGINT", "too early", "ended before", "left hidden files")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="number of kills, over all commands")
    parser.add_argument("--seed", type=int, default=None, help="default: random")
    parser.add_argument("--only", default="", help="only jobs whose name begins with this")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of shells ignore it by default
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print_line(f"seed {seed}")
    jobs = [job for job in JOBS if job.name.startswith(options.only)]
    draw, tallies = random.Random(seed), {job.name: Tally() for job in jobs}
    with tempfile.TemporaryDirectory(prefix="ranksieve-faults-") as place:
        root = Path(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make_inputs(root / "inputs")
        references = {}
        for job in jobs:
            references[job.name] = measure(job, root / "undisturbed")
            shutil.rmtree(root / "undisturbed")
        with suppress(KeyboardInterrupt):  # report the faults so far
            for number in range(-(-options.kills // KILLS_PER_TRIAL)):
                job, folder = jobs[number % len(jobs)], root / f"trial{number}"
                tally = try_job(job, folder, references[job.name], KILLS_PER_TRIAL, draw)
                for fault in tally.faults:
                    print_line(f"trial {number}, {job.name}: {fault}")
                tallies[job.name].counts += tally.counts
                tallies[job.name].faults += tally.faults
                shutil.rmtree(folder)
    return report(tallies)


def report(tallies: dict[str, Tally]) -> int:
    """Print the table; returns 1 if there was a fault."""
    heading = ("command", *COLUMNS, "faults")
    rows = [(name, *(t.counts[c] for c in COLUMNS), len(t.faults)) for name, t in tallies.items()]
    totals = ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    for row in (heading, *rows, totals):
        print_line("  ".join(f"{cell:<20}" if k == 0 else f"{cell:>13}" for k, cell in enumerate(row)))
    return int(totals[-1] > 0)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
