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
    options = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    options.add_argument("--kills", type=int, default=60, help="how many, of all commands together")
    options.add_argument("--seed", type=int, default=None, help="default: another one each time")
    options.add_argument("--only", default="", help="jobs whose name begins so")
    given = options.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    say(f"seed {seed}")
    jobs = [job for job in JOBS if job.name.startswith(given.only)]
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
        with suppress(KeyboardInterrupt):  # what was found until then is told
            for number in range(-(-given.kills // KILLS_PER_TRIAL)):
                job, folder = jobs[number % len(jobs)], root / f"trial{number}"
                found = try_job(job, folder, references[job.name], KILLS_PER_TRIAL, draw)
                for fault in found.faults:
                    say(f"trial {number}, {job.name}: {fault}")
                tallies[job.name].counts += found.counts
                tallies[job.name].faults += found.faults
                shutil.rmtree(folder)
    return report(tallies)


def report(tallies: dict[str, Tally]) -> int:
    """The table, and 1 if there was a fault."""
    heading = ("command", *COLUMNS, "faults")
    rows = [(name, *(t.counts[c] for c in COLUMNS), len(t.faults)) for name, t in tallies.items()]
    totals = ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    for row in (heading, *rows, totals):
        say("  ".join(f"{cell:<20}" if k == 0 else f"{cell:>13}" for k, cell in enumerate(row)))
    return int(totals[-1] > 0)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
