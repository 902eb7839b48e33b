"""A fixed sample of mutants of the whole package, and the tests that kill them.

    python -m tests.mutants.sample reach FOLDER     # once: record the tests that reach each line
    python -m tests.mutants.sample run FOLDER [--n 400] [--seed 0] [--share 0/2] > FILE.csv

Each mutant is tested with the tests that reach its line, first those of `make test`, then those that only
`make test-full` runs; in each tier fast tests first, and one case of each test before further cases, for at
most ``SECONDS`` of processor time. A row has the mutant, its fate ("quick" or "full" for the tier that killed
it) and the test that killed it. Kernels are excluded: coverage does not see compiled lines, and tests.mutants
tries all of their mutants.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gc
import importlib
import json
import os
import pickle
import pkgutil
import random
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from coverage import CoverageData, CoverageException

import ranksieve
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.runner import KILLED, OPTIONS, ROOT, SURVIVED, TIMED_OUT, Runner

SOURCE = Path(ranksieve.__file__).parent
LEFT_OUT = ("kernels/", "gpu/", "baselines/kernels.py")
SECONDS = 40.0
NOT_FULL = "not letor and not gpu"
FIELDS = ("module", "function", "line", "change", "tests", "fate", "killer")


# --- The tests that reach each line --------------------------------------------------------------------


def record(folder: Path) -> None:
    """Run all tests with coverage; store module → line → (tests in process, tests in subprocesses)."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        "-m",
        *["coverage", "run", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m"],
        NOT_FULL,
    ]
    command += ["-p", "tests.mutants.reach", "-pno:cacheprovider"]
    env = {**os.environ, "COVERAGE_FILE": str(folder / "coverage"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *command], env=env, cwd=ROOT, check=True, stdout=sys.stderr)
    gather(folder)


def gather(folder: Path) -> None:
    reach: dict[str, dict[int, tuple[set[str], set[str]]]] = {}
    for file in sorted(folder.glob("cov*")):
        data = CoverageData(str(file))
        try:
            data.read()
        except CoverageException:  # from a killed process
            continue
        contexts = data.measured_contexts() - {""}
        for path in data.measured_files():
            module = path.rpartition("src/ranksieve/")[2]
            lines = reach.setdefault(module, defaultdict(lambda: (set(), set())))
            for line, tests in data.contexts_by_lineno(path).items():
                lines[line][len(contexts) == 1].update(set(tests) & contexts)
    plain = {module: dict(lines) for module, lines in reach.items()}
    (folder / "reach.pickle").write_bytes(pickle.dumps(plain))


# --- The sample ------------------------------------------------------------------------------------------


def draw(n: int, seed: int) -> list[tuple[str, Mutant]]:
    """``n`` random mutants, sorted by module; the same ones for the same source."""
    names = (path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")))
    modules = [name for name in names if not name.startswith(LEFT_OUT)]
    every = [(name, mutant) for name in modules for mutant, _ in mutants_of((SOURCE / name).read_text())]
    return sorted(random.Random(seed).sample(every, n), key=lambda one: (one[0], one[1].number))


def first_line(source: str, number: int) -> int:
    """The first line of the statement that contains a line; coverage records statements by it."""
    start = number
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno
            if node.lineno <= number <= max(end or 0, node.lineno):
                start = node.lineno
    return start


class Tests(Runner):
    """Tests mutants of any module with the tests that reach their lines."""

    def __init__(self, folder: Path, mutants: list[tuple[str, Mutant]], rows: Any) -> None:
        self.folder, self.mutants, self.rows, self.failed, self.killers = folder, mutants, rows, False, {}
        self.seconds: Any = None
        self.cost: dict[str, float] = {}  # of the slowest case of each test
        for file in folder.glob("seconds-*.json"):
            for one, cost in json.loads(file.read_text()).items():
                name = one.partition("[")[0]
                self.cost[name] = max(cost, self.cost.get(name, 0.0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.seconds = 0.0
        for module in pkgutil.walk_packages(ranksieve.__path__, "ranksieve."):
            if not module.name.startswith(("ranksieve.gpu", "ranksieve.__main__")):
                try:
                    importlib.import_module(module.name)
                except ImportError:
                    continue
        self.by_id = {item.nodeid: item for item in session.items}
        reach = pickle.loads((self.folder / "reach.pickle").read_bytes())
        for module, mutant in self.mutants:
            self._row(module, mutant, reach.get(module, {}))
        return True

    def _row(self, module: str, mutant: Mutant, lines: dict[int, tuple[set[str], set[str]]]) -> None:
        source = (SOURCE / module).read_text()
        here, elsewhere = lines.get(first_line(source, mutant.number), (set(), set()))
        self.path = SOURCE / module
        tree = next(tree for one, tree in mutants_of(source) if one.key == mutant.key)
        fate, killer = self._in_tiers(here, lambda ids: self._forked(mutant, tree, ids))
        if fate == SURVIVED and elsewhere - here:
            fate, killer = self._in_tiers(elsewhere - here, lambda ids: self._on_disk(module, tree, ids))
        reaching = here | elsewhere
        reached = fate if reaching else "not reached"
        self.rows.writerow([module, *mutant.key, len(reaching), reached, killer])
        sys.stdout.flush()

    def _in_tiers(self, ids: set[str], attempt: Any) -> tuple[str, str]:
        functions = {one.partition("[")[0] for one in ids}  # ids of cases may have changed since
        present = [one for one in self.by_id if one.partition("[")[0] in functions]
        marked = [one for one in present if self.by_id[one].get_closest_marker("full")]
        for tier, tests in (("quick", set(present) - set(marked)), ("full", set(marked))):
            killer = attempt(self._ordered(tests))
            if killer:
                return tier, killer
        return SURVIVED, ""

    def _ordered(self, ids: set[str]) -> list[str]:
        """Fast tests first, one case of each test before further cases, within the time limit."""
        counts: Counter[str] = Counter()
        turns = []
        for one in sorted(ids, key=self._cost):
            name = one.partition("[")[0]
            turns.append((counts[name], self._cost(one), one))
            counts[name] += 1
        seconds_left, chosen = SECONDS, []
        for _, cost, one in sorted(turns):
            seconds_left -= cost
            if seconds_left < 0 and chosen:
                break
            chosen.append(one)
        return sorted(chosen, key=self._cost)

    def _cost(self, one: str) -> float:
        return self.cost.get(one.partition("[")[0], 1.0)

    def _forked(self, mutant: Mutant, tree: ast.Module, ids: list[str]) -> str:
        if not ids:
            return ""
        self.items = [self.by_id[one] for one in ids]
        self.costs = {item: self._cost(item.nodeid) for item in self.items}
        objects = gc.get_objects()
        self.functions = [
            f for f in objects if isinstance(f, FunctionType) and self._is_of_module(f.__code__)
        ]
        self.killers.clear()
        fate = self.fate(mutant.function, tree)
        if fate in (KILLED, TIMED_OUT):
            return self.killers[mutant.function][0].nodeid if self.killers[mutant.function] else "?"
        return ""

    def _on_disk(self, module: str, tree: ast.Module, ids: list[str]) -> str:
        """For tests that start processes: changes the source file temporarily."""
        if not ids:
            return ""
        path, source = SOURCE / module, (SOURCE / module).read_text()
        path.write_text(ast.unparse(tree))
        try:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "-pno:cacheprovider", *ids[:12]]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
        except subprocess.TimeoutExpired:
            return ids[0]
        finally:
            path.write_text(source)
        failed = [
            line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
        return (failed or [ids[0]])[0] if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.sample")
    parser.add_argument("what", choices=["reach", "gather", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", default="0/1", help="a part of the sample, such as 0/2 or 1/2")
    options = parser.parse_args()
    if options.what != "run":
        {"reach": record, "gather": gather}[options.what](options.folder)
        return
    part, of = map(int, options.share.split("/"))
    rows = csv.writer(sys.stdout)
    rows.writerow(FIELDS)
    plugin = Tests(options.folder, draw(options.n, options.seed)[part::of], rows)
    raise SystemExit(pytest.main([*OPTIONS, "-m", NOT_FULL, str(ROOT / "tests")], plugins=[plugin]))


if __name__ == "__main__":
    main()
