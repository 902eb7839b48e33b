"""``python -m tests.injection --models 5000 --seed 0``: stops with exit code 1 and the case at a fault."""

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

EVERY = 500  # models per progress line


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.injection", description=__doc__)
    parser.add_argument("--models", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    passed, began = Counter(), time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number in range(args.models):
            passed += try_model(number, args.seed, Path(folder))
            if (number + 1) % EVERY == 0:
                print(f"{number + 1} models, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
    for target in EXPORTS:
        line = f"{target:22} {passed[target]:6} read back, {args.models - passed[target]:6} refused"
        print(line)  # noqa: T201
    print(f"seed {args.seed}: {args.models} models, {sum(passed.values())} exports read back, no fault")  # noqa: T201


def try_model(number, seed, folder):
    """Export model ``number`` to every target; counts the targets that accept it, with the model's scores."""
    rng = np.random.default_rng([seed, number])
    model, data, features = random_case(rng)
    accepted = Counter()
    for target, entry in EXPORTS.items():
        place = folder / ("out" if entry.folder else "file")
        names = random_names(rng, target, features)
        try:
            accepted[target] += round_trip(model, target, place, data, names)
        except Exception:
            print(f"model {number} of seed {seed}, {target}, {features}, {names}", file=sys.stderr)  # noqa: T201
            raise
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    return accepted


if __name__ == "__main__":
    main()
