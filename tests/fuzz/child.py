"""One target's inputs in a process of its own, within limits of time and memory."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.fuzz.targets import target as entry

SECONDS_PER_INPUT = 20  # of the processor, so that a busy machine finds no hang
SECONDS_WITHOUT_NEWS = 3600
MEMORY = 3 << 30  # beyond what the process has when it begins
MOST_FINDS = 20
LONGEST_SHOWN = 500
AT_ONCE = 500


class Hang(BaseException):
    """An input takes too long."""


class Find(NamedTuple):
    """An input that is neither accepted nor refused as it should be."""

    number: int
    shown: str
    fault: str


def drawn(target: str, seed: int, number: int) -> Any:
    """Input ``number`` of a target."""
    return entry(target).make(Random(f"{seed}:{target}:{number}"))


def tried(target: str, given: Any) -> tuple[bool, str]:
    """Whether an input is accepted, and what is wrong with how it is taken, if anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # the project's own words
            return entry(target).check(given), ""
    except (Exception, Hang) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return False, f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def run(target: str, seed: int, numbers: Iterable[int], seconds: float, at: int) -> dict[str, Any]:
    """Try the inputs until the time is over; ``at`` is an open file that holds the number of the input."""
    began, tries, accepted, finds = time.monotonic(), 0, 0, []
    for number in numbers:
        if tries % AT_ONCE == 0:
            faulthandler.dump_traceback_later(SECONDS_WITHOUT_NEWS, exit=True)
        if time.monotonic() - began > seconds or len(finds) >= MOST_FINDS:
            break
        os.pwrite(at, f"{number:20d}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT)
        given = drawn(target, seed, number)
        fine, fault = tried(target, given)
        signal.setitimer(signal.ITIMER_PROF, 0)
        tries, accepted = tries + 1, accepted + fine
        if fault:
            finds.append(Find(number, repr(given)[:LONGEST_SHOWN], fault[:LONGEST_SHOWN])._asdict())
    faulthandler.cancel_dump_traceback_later()
    return {"tries": tries, "accepted": accepted, "finds": finds}


def _too_long(*_: Any) -> None:
    raise Hang(f"longer than {SECONDS_PER_INPUT} s")


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(target: str, seed: str, first: str, count: str, seconds: str, folder: str) -> None:
    """Try inputs ``first``, …; the outcome is the last line of standard output."""
    signal.signal(signal.SIGPROF, _too_long)
    tried(target, drawn(target, int(seed), 0))  # what is loaded and compiled is not what inputs take
    if Path("/proc/self/statm").exists():
        _limit_memory()
    at = os.open(Path(folder) / "at", os.O_RDWR | os.O_CREAT)
    found = run(target, int(seed), range(int(first), int(first) + int(count)), float(seconds), at)
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
