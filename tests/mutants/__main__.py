"""``python -m tests.mutants``: list the mutants that survive the tests.

    python -m tests.mutants [GROUP or part of a file's name …] [--share 0.1] [--seed 0] [--list]

Exit code 1 if a mutant survives that is not listed in ``equivalent.toml``.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.runner import SURVIVED, Runner, with_runner

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src" / "ranksieve"
EQUIVALENT = "equivalent"


def equivalents(module: str) -> set[tuple[str, str, str]]:
    """Mutants of a module that cannot be detected by any test."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text()).get(module, [])
    return {(entry["function"], entry["line"], entry["change"]) for entry in entries}


def targets(selected: list[str]) -> list[tuple[str, str, list[str]]]:
    """(group, module, its tests) of all groups, or of the selected ones."""
    groups = tomllib.loads((HERE / "groups.toml").read_text())
    every = [(group, module, tests) for group, table in groups.items() for module, tests in table.items()]
    return [t for t in every if not selected or any(name == t[0] or name in t[1] for name in selected)]


def try_module(module: str, tests: list[str], share: float, seed: int) -> Counter[str]:
    """Test a sample of a module's mutants and print the survivors."""
    source, equivalent = (SOURCE / module).read_text(), equivalents(module)
    draw, fates = random.Random(f"{seed} {module}"), Counter[str]()

    def try_all(runner: Runner) -> None:
        for mutant, tree in mutants_of(source):
            fates["all"] += 1
            if draw.random() >= share:
                continue
            fate = EQUIVALENT if mutant.key in equivalent else runner.fate(mutant.function, tree)
            fates[fate] += 1
            if fate == SURVIVED:
                print_line(
                    f"{module}:{mutant.number} in {mutant.function}: {mutant.line}\n    {mutant.change}"
                )
        print_line(f"{module}: {dict(fates)}, {runner.seconds:.1f} s of tests")

    with_runner(module, tests, try_all)
    return fates


def list_mutants(module: str) -> list[Mutant]:
    """All mutants of a module."""
    return [mutant for mutant, _ in mutants_of((SOURCE / module).read_text())]


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("wanted", nargs="*")
    parser.add_argument("--share", type=float, default=1.0, help="share of the mutants, a random sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="one module, in this process")
    options = parser.parse_args()
    selected = targets(options.wanted)
    if options.here:
        (_, module, tests) = selected[0]
        fates = try_module(module, tests, options.share, options.seed)
        return 1 if fates[SURVIVED] else 0
    worst = 0
    for group, module, _ in selected:
        # Kernels run as plain Python, so mutants are not compiled.
        plain = {"NUMBA_DISABLE_JIT": "1"} if "kernels" in module else {}
        print_line(f"— {group}: {module}")
        command = [sys.executable, "-m", "tests.mutants", module, "--here"]
        command += ["--share", str(options.share), "--seed", str(options.seed)]
        worst |= subprocess.run(command, env={**os.environ, **plain}, check=False).returncode
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
