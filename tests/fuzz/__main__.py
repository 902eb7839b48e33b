"""``make fuzz``: random hostile inputs for every target, each target in its own process."""

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
    """Run the targets of the command line; the exit code is 1 if anything was found."""
    options = _arguments()
    names = options.target or list(TARGETS)
    sys.stdout.write(f"seed {options.seed}\n")
    n_finds = 0
    for name in names:
        count, seconds = _count(name, options), _seconds(name, options, len(names))
        began = time.monotonic()
        result = _in_child(name, options.seed, options.first, count, seconds)
        seconds_taken = time.monotonic() - began
        sys.stdout.write(
            f"{name}: {result['tries']} inputs, {result['accepted']} accepted, {len(result['finds'])} finds, "
            f"{seconds_taken:.0f} s\n"
        )
        for find in _distinct(result["finds"]):
            again = f"--seed {options.seed} --target {name} --first {find['number']} --count 1"
            sys.stdout.write(f"  {find['fault']}\n    {find['shown']}\n    python -m tests.fuzz {again}\n")
        sys.stdout.flush()
        n_finds += len(result["finds"])
    return int(n_finds > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--minutes", type=float, help="time limit; half of it for LETOR text")
    parser.add_argument("--letor", type=int, default=1_000_000, help="LETOR texts")
    parser.add_argument("--others", type=int, default=250_000, help="inputs of all other targets")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, help="inputs of each target")
    return parser.parse_args()


def _distinct(finds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first find of each kind; the kind is the start of the fault without numbers and folders."""
    kinds = {re.sub(r"\d+|ranksieve-fuzz-\w+", "", find["fault"])[:120]: find for find in reversed(finds)}
    return list(kinds.values())


def _count(name: str, options: argparse.Namespace) -> int:
    if options.count is not None:
        return int(options.count)
    if name == LETOR:
        return int(options.letor)
    shares = sum(target.share for other, target in TARGETS.items() if other != LETOR)
    return max(1, round(options.others * TARGETS[name].share / shares))


def _seconds(name: str, options: argparse.Namespace, n_targets: int) -> float:
    if options.minutes is None:
        return FOREVER
    total = 60 * options.minutes
    if n_targets == 1:
        return total
    return total / 2 if name == LETOR else total / 2 / (n_targets - 1)


def _in_child(name: str, seed: int, first: int, count: int, seconds: float) -> dict[str, Any]:
    """Finds of a subprocess; a crash of the subprocess is also a find."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="ranksieve-fuzz-", dir=base))
    arguments = [name, str(seed), str(first), str(count), str(seconds), str(folder)]
    settings = os.environ | {
        "RANKSIEVE_FUZZ_FOLDER": str(folder),
        "OMP_NUM_THREADS": "1",
        "RANKSIEVE_THREADS": "1",
    }
    if TARGETS[name].checks_bounds:
        settings |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "compiled")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.child", *arguments],
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
