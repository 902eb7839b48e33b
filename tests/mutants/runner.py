"""Tests the mutants of a module: tests are collected once, and each mutant is tested in a fork.

A mutant replaces the code of the loaded functions, so nothing is imported or compiled again. Tests that
killed mutants of the same function run first, then the others from fast to slow. Time limits count processor
time, so that results do not depend on the load of the machine.
"""

from __future__ import annotations

import ast
import functools
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ranksieve"
EXAMPLES = 30  # per property test
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
NOT_TRIED, REFUSED = "not tried", 3  # exit code of a child that could not insert the mutant
OPTIONS = ["-s", "--assert=plain", "-oaddopts=", "-pno:cacheprovider", "-pno:terminal", "-pno:xdist"]
if os.environ.get("NUMBA_DISABLE_JIT"):  # only the interpreted kernels warn
    OPTIONS.append("-Wignore::RuntimeWarning")


def with_runner(module: str, tests: list[str], use: Callable[[Runner], None]) -> None:
    """Collect the tests of a module and call ``use`` with their runner."""
    runner = Runner(SOURCE / module, use)
    code = pytest.main([*OPTIONS, *(str(ROOT / test) for test in tests)], plugins=[runner])
    if runner.seconds is None or code != 0:
        raise SystemExit(f"the tests of {module} could not be run (exit code {code})")


class Runner:
    """Pytest plugin that replaces the loop over the tests."""

    def __init__(self, path: Path, use: Callable[[Runner], None]) -> None:
        self.path, self.use, self.seconds, self.failed = path, use, None, False
        self.killers: dict[str, list[pytest.Item]] = {}

    def pytest_collection(self) -> None:
        """Run hypothesis without shrinking."""
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", derandomize=True, database=None, deadline=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Reduce the number of examples: this can only add survivors."""
        for function in {item.function for item in items}:
            if (current := getattr(function, "_hypothesis_internal_use_settings", None)) is not None:
                reduced = settings(current, max_examples=min(current.max_examples, EXAMPLES))
                function._hypothesis_internal_use_settings = reduced

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        costs = {item: self._seconds(item, following) for item, following in _in_turn(session.items)}
        if self.failed:
            raise pytest.UsageError("a test fails on the unchanged source")
        self.items, self.costs = sorted(costs, key=lambda item: costs[item]), costs
        self.seconds = sum(costs.values())
        objects = gc.get_objects()
        self.functions = [
            f for f in objects if isinstance(f, FunctionType) and self._is_of_module(f.__code__)
        ]
        for f in objects:
            if isinstance(f, functools._lru_cache_wrapper):
                f.cache_clear()
        self.use(self)
        return True

    def fate(self, function: str, tree: ast.Module) -> str:
        """Test a mutant of a function: killed, timed out, survived or not tried."""
        first = self.killers.setdefault(function, [])
        order = [*first, *(item for item in self.items if item not in first)]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self._try(tree, order, write)
            finally:
                os._exit(2)
        os.close(write)
        with os.fdopen(read) as pipe:
            reached = pipe.read().split()
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return SURVIVED
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == REFUSED:
            return NOT_TRIED
        if reached:
            item = order[int(reached[-1])]
            first[:] = [item, *(other for other in first if other is not item)][:5]
        timers = (signal.SIGPROF, signal.SIGALRM)
        return TIMED_OUT if os.WIFSIGNALED(status) and os.WTERMSIG(status) in timers else KILLED

    def _try(self, tree: ast.Module, order: list[pytest.Item], write: int) -> None:
        """In the child: exit with 0 if all tests pass; writes the number of each test before it runs."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            self._change(tree)
        except ValueError:  # a mutant without super() has other free variables
            os._exit(REFUSED)
        for number, (item, following) in enumerate(_in_turn(order)):
            os.write(write, f"{number} ".encode())
            limit = 2.0 + 10.0 * self.costs[item]
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.setitimer(
                signal.ITIMER_REAL, 60.0 * limit
            )  # for a test that hangs without using the processor
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                os._exit(1)
        os._exit(0)

    def _change(self, tree: ast.Module) -> None:
        codes = {_place(code): code for code in _codes(compile(tree, str(self.path), "exec"))}
        for function in self.functions:
            if _place(function.__code__) in codes:
                function.__code__ = codes[_place(function.__code__)]

    def _is_of_module(self, code: CodeType) -> bool:
        return Path(code.co_filename) == self.path

    def _seconds(self, item: pytest.Item, following: pytest.Item | None) -> float:
        begin = time.process_time()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return time.process_time() - begin


def _in_turn(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Each test with the next one."""
    return zip(items, [*items[1:], None], strict=True)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all nested ones."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)
