"""Timing, memory, versions and results of benchmarks."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ranksieve
from ranksieve._util.files import atomic_write

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
OUT = HERE / "out"
REPEATS = 5


class Skipped(Exception):
    """Why something cannot be measured, in a word or two."""


def letor_root() -> Path | None:
    """Where the LETOR data are, or None (and a word about it)."""
    root = letor_folder()
    if (root / "OHSUMED" / "Fold1" / "train.txt").exists():
        return root
    print(f"skipped: no LETOR data at {root} (set RANKSIEVE_LETOR)")
    return None


def letor_folder() -> Path:
    """Where the LETOR data should be."""
    return Path(os.environ.get("RANKSIEVE_LETOR", HERE.parent.parent / "shared" / "data"))


def seconds(work: Callable[[], Any], repeats: int) -> list[float]:
    """Wall-clock time of each repetition."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def repeated(
    work: Callable[[], Any], repeats: int, budget: float, known: Sequence[float] = ()
) -> list[float]:
    """As many repetitions as asked for, ``known`` ones included, or as fit into ``budget`` seconds."""
    times = list(known)
    while not times or (len(times) < repeats and sum(times) + min(times) <= budget):
        times += seconds(work, 1)
    return times


def in_turn(works: dict[str, Callable[[], Any]], repeats: int, budget: float) -> dict[str, list[float]]:
    """Times of several works, taken in turn, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    start = time.perf_counter()
    for turn in range(repeats):
        if turn and (time.perf_counter() - start) * (turn + 1) / turn > budget:
            break
        for name, work in works.items():
            times[name] += seconds(work, 1)
    return times


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median, lowest, highest and how many."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "n": len(values)}


def peak_megabytes() -> float:
    """Largest resident size of this process so far (ru_maxrss would begin at the parent's size)."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def in_subprocess(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` and read the JSON object it prints last: memory is then its own."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


@cache
def our_version() -> str:
    """The version with a digest of the sources: a result is kept only as long as they are the same."""
    digest = hashlib.sha256()
    folder = Path(ranksieve.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return f"{ranksieve.__version__}+{digest.hexdigest()[:8]}"


def machine() -> dict[str, Any]:
    """What the results were measured on."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "system": platform.system(),
    }


def _processor() -> str:
    try:
        names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return names[0] if names else platform.processor()


def keep(name: str, result: dict[str, Any], quiet: bool = False) -> None:
    """Write a result to benchmarks/results, with what it ran on, and print it unless ``quiet``."""
    with atomic_write(RESULTS / f"{name}.json") as file:
        file.write(json.dumps({**result, "about": machine()}, indent=2) + "\n")
    if quiet:
        return
    width = max(len(key) for key in result)
    print(f"\n{name}")
    for key, value in result.items():
        print(f"  {key:<{width}}  {value:.6g}" if isinstance(value, float) else f"  {key:<{width}}  {value}")
