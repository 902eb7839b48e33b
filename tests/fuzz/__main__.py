"""``make fuzz``: hostile inputs at random for every target, each target in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fuzz.targets import TARGETS

LETOR = "letor"
FOREVER = 10**9


def main() -> int:
    """Run what the command line asks for; the exit code is 1 if anything was found."""
    asked = _arguments()
    names = asked.target or list(TARGETS)
    sys.stdout.write(f"seed {asked.seed}\n")
    found = 0
    for name in names:
        count, seconds = _count(name, asked), _seconds(name, asked, len(names))
        began = time.monotonic()
        result = _in_child(name, asked.seed, asked.first, count, seconds)
        taken = time.monotonic() - began
        sys.stdout.write(
            f"{name}: {result['tries']} inputs, {result['accepted']} accepted, {len(result['finds'])} finds, "
            f"{taken:.0f} s\n"
        )
        for find in _distinct(result["finds"]):
            again = (
                f"python -m tests.fuzz --seed {asked.seed} --target {name} --first {find['number']} --count 1"
            )
            sys.stdout.write(f"  {find['fault']}\n    {find['shown']}\n    {again}\n")
        sys.stdout.flush()
        found += len(result["finds"])
    return int(found > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--minutes", type=float, help="stop after so long; half of it for LETOR text")
    parser.add_argument("--letor", type=int, default=1_000_000, help="LETOR texts")
    parser.add_argument("--others", type=int, default=250_000, help="inputs of all other targets")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, help="inputs of each target")
    return parser.parse_args()


def _distinct(finds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first find of each kind, told by how its fault begins, without numbers and folders."""
    kinds = {re.sub(r"\d+|ranksieve-fuzz-\w+", "", find["fault"])[:120]: find for find in reversed(finds)}
    return list(kinds.values())


def _count(name: str, asked: argparse.Namespace) -> int:
    if asked.count is not None:
        return int(asked.count)
    if name == LETOR:
        return int(asked.letor)
    shares = sum(target.share for other, target in TARGETS.items() if other != LETOR)
    return max(1, round(asked.others * TARGETS[name].share / shares))


def _seconds(name: str, asked: argparse.Namespace, n_targets: int) -> float:
    if asked.minutes is None:
        return FOREVER
    whole = 60 * asked.minutes
    if n_targets == 1:
        return whole
    return whole / 2 if name == LETOR else whole / 2 / (n_targets - 1)


def _in_child(name: str, seed: int, first: int, count: int, seconds: float) -> dict[str, Any]:
    """What a process of its own finds; one that dies is a find, too."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="ranksieve-fuzz-", dir=base))
    words = [name, str(seed), str(first), str(count), str(seconds), str(folder)]
    settings = os.environ | {
        "RANKSIEVE_FUZZ_FOLDER": str(folder),
        "OMP_NUM_THREADS": "1",
        "RANKSIEVE_THREADS": "1",
    }
    if TARGETS[name].checks_bounds:
        settings |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "compiled")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.child", *words],
            env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return dict(json.loads(done.stdout.strip().splitlines()[-1]))
        number = int((folder / "at").read_text()) if (folder / "at").exists() else first
        fault = f"the process ended with {done.returncode}: {' '.join(done.stderr.split())[-600:]}"
        return {
            "tries": number - first + 1,
            "accepted": 0,
            "finds": [{"number": number, "shown": "", "fault": fault}],
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
