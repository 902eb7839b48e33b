"""The campaign: ``python -m tests.injection --models 5000 --seed 0``; ends with 1 and the case at a fault."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from ranksieve.export import EXPORTS
from tests.injection.models import random_case, random_names
from tests.injection.round_trip import round_trip

EVERY = 500  # models between two lines of progress


def main():
    options = argparse.ArgumentParser(prog="python -m tests.injection", description=__doc__)
    options.add_argument("--models", type=int, default=5000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    taken, began = Counter(), time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number in range(given.models):
            taken += tried(number, given.seed, Path(folder))
            if (number + 1) % EVERY == 0:
                print(f"{number + 1} models, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
    for target in EXPORTS:
        lines = f"{target:22} {taken[target]:6} read back, {given.models - taken[target]:6} refused"
        print(lines)  # noqa: T201
    print(f"seed {given.seed}: {given.models} models, {sum(taken.values())} exports read back, no fault")  # noqa: T201


def tried(number, seed, folder):
    """The targets that took the model of that number; each had the model's scores."""
    rng = np.random.default_rng([seed, number])
    model, data, own = random_case(rng)
    taken = Counter()
    for target, entry in EXPORTS.items():
        place = folder / ("out" if entry.folder else "file")
        names = random_names(rng, target, own)
        try:
            taken[target] += round_trip(model, target, place, data, names)
        except Exception:
            print(f"model {number} of seed {seed}, {target}, {own}, {names}", file=sys.stderr)  # noqa: T201
            raise
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    return taken


if __name__ == "__main__":
    main()
