"""Timing, memory and results of benchmarks."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ranksieve._util.atomic import atomic_write

HERE = Path(__file__).resolve().parent


def letor_root() -> Path | None:
    """Where the LETOR data are, or None (and a word about it)."""
    root = Path(os.environ.get("RANKSIEVE_LETOR", HERE.parent.parent / "shared" / "data"))
    if (root / "OHSUMED" / "Fold1" / "train.txt").exists():
        return root
    print(f"skipped: no LETOR data at {root} (set RANKSIEVE_LETOR)")
    return None


def seconds(work: Callable[[], Any], repeats: int) -> list[float]:
    """Wall-clock time of each repetition."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def peak_megabytes() -> float:
    """Largest resident size of this process so far (ru_maxrss would begin at the parent's size)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


def in_subprocess(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m module arguments`` and read the JSON object it prints last: memory is then its own."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def keep(name: str, result: dict[str, Any], quiet: bool = False) -> None:
    """Write a result to benchmarks/results, with what it ran on, and print it unless ``quiet``."""
    about = {"cores": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    with atomic_write(HERE / "results" / f"{name}.json") as file:
        file.write(json.dumps({**result, "about": about}, indent=2) + "\n")
    if quiet:
        return
    width = max(len(key) for key in result)
    print(f"\n{name}")
    for key, value in result.items():
        print(f"  {key:<{width}}  {value:.6g}" if isinstance(value, float) else f"  {key:<{width}}  {value}")
