"""Timing, memory, versions, and files of results."""

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
    """Something cannot be measured; the message is the reason."""


def letor_root() -> Path | None:
    """Folder of the LETOR data; prints a message and returns None if they are missing."""
    root = letor_folder()
    if (root / "OHSUMED" / "Fold1" / "train.txt").exists():
        return root
    print(f"skipped: no LETOR data in {root} (set RANKSIEVE_LETOR)")
    return None


def letor_folder() -> Path:
    """Folder for the LETOR data, which may not exist."""
    return Path(os.environ.get("RANKSIEVE_LETOR", HERE.parent.parent / "shared" / "data"))


def seconds(work: Callable[[], Any], repeats: int) -> list[float]:
    """Wall-clock seconds of each repetition."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def timings(
    work: Callable[[], Any], repeats: int, budget: float, earlier: Sequence[float] = ()
) -> list[float]:
    """Seconds of ``repeats`` repetitions, fewer if they exceed ``budget`` seconds; includes ``earlier``."""
    times = list(earlier)
    while not times or (len(times) < repeats and sum(times) + min(times) <= budget):
        times += seconds(work, 1)
    return times


def interleaved_timings(
    works: dict[str, Callable[[], Any]], repeats: int, budget: float
) -> dict[str, list[float]]:
    """Seconds of several calls, measured in turn so that load on the machine affects all of them equally."""
    times: dict[str, list[float]] = {name: [] for name in works}
    start = time.perf_counter()
    for n_done in range(repeats):
        if n_done and (time.perf_counter() - start) * (n_done + 1) / n_done > budget:
            break
        for name, work in works.items():
            times[name] += seconds(work, 1)
    return times


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Median, lowest and highest value, and the number of values."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "n": len(values)}


def peak_megabytes() -> float:
    """Peak resident memory of this process (ru_maxrss would start at the parent's value)."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def current_megabytes() -> float:
    """Resident memory of this process, from which :func:`peak_megabytes` starts again."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


def in_subprocess(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` in a new process; return the JSON object of its last line."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return result


@cache
def our_version() -> str:
    """Version of ranksieve with a hash of its sources: results are measured again if the sources change."""
    digest = hashlib.sha256()
    folder = Path(ranksieve.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return f"{ranksieve.__version__}+{digest.hexdigest()[:8]}"


def machine() -> dict[str, Any]:
    """Description of this machine."""
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


def save_result(name: str, result: dict[str, Any], quiet: bool = False) -> None:
    """Write a result and the description of the machine to benchmarks/results; print it unless ``quiet``."""
    with atomic_write(RESULTS / f"{name}.json") as file:
        file.write(json.dumps({**result, "about": machine()}, indent=2) + "\n")
    if quiet:
        return
    width = max(len(key) for key in result)
    print(f"\n{name}")
    for key, value in result.items():
        print(f"  {key:<{width}}  {value:.6g}" if isinstance(value, float) else f"  {key:<{width}}  {value}")
