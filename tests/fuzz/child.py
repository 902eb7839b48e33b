"""Tries the inputs of one target in a separate process, with limits of time and memory."""

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

SECONDS_PER_INPUT = 20  # processor time, so that a busy machine does not report hangs
SECONDS_WITHOUT_NEWS = 3600
MEMORY = 3 << 30  # in addition to the memory at the start
MOST_FINDS = 20
LONGEST_SHOWN = 500
AT_ONCE = 500


class Hang(BaseException):
    """An input takes longer than the limit."""


class Find(NamedTuple):
    """An input that is neither accepted nor properly refused."""

    number: int
    shown: str
    fault: str


def draw_input(target: str, seed: int, number: int) -> Any:
    """Input ``number`` of a target."""
    return entry(target).make(Random(f"{seed}:{target}:{number}"))


def try_input(target: str, value: Any) -> tuple[bool, str]:
    """(whether the input is accepted, the fault or "")."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # warnings of this package
            return entry(target).check(value), ""
    except (Exception, Hang) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return False, f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def run(target: str, seed: int, numbers: Iterable[int], seconds: float, at: int) -> dict[str, Any]:
    """Try the inputs until the time is over; ``at`` is an open file for the number of the current input."""
    began, tries, accepted, finds = time.monotonic(), 0, 0, []
    for number in numbers:
        if tries % AT_ONCE == 0:
            faulthandler.dump_traceback_later(SECONDS_WITHOUT_NEWS, exit=True)
        if time.monotonic() - began > seconds or len(finds) >= MOST_FINDS:
            break
        os.pwrite(at, f"{number:20d}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT)
        value = draw_input(target, seed, number)
        fine, fault = try_input(target, value)
        signal.setitimer(signal.ITIMER_PROF, 0)
        tries, accepted = tries + 1, accepted + fine
        if fault:
            finds.append(Find(number, repr(value)[:LONGEST_SHOWN], fault[:LONGEST_SHOWN])._asdict())
    faulthandler.cancel_dump_traceback_later()
    return {"tries": tries, "accepted": accepted, "finds": finds}


def _too_long(*_: Any) -> None:
    raise Hang(f"longer than {SECONDS_PER_INPUT} s")


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(target: str, seed: str, first: str, count: str, seconds: str, folder: str) -> None:
    """Try ``count`` inputs from number ``first``; the result is the last line of standard output."""
    signal.signal(signal.SIGPROF, _too_long)
    try_input(target, draw_input(target, int(seed), 0))  # import and compile before the limits apply
    if Path("/proc/self/statm").exists():
        _limit_memory()
    at = os.open(Path(folder) / "at", os.O_RDWR | os.O_CREAT)
    result = run(target, int(seed), range(int(first), int(first) + int(count)), float(seconds), at)
    sys.stdout.write("\n" + json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
