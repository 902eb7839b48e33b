"""Tests a module's mutants: tests are collected once, and each mutant is tried in a fork of that process.

A mutant is put into the functions that are loaded already, so nothing is imported or compiled again. Quick
tests run first, and before them those that killed mutants of the same function. Limits count processor time,
so a busy machine decides nothing.
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
EXAMPLES = 30  # of each property
KILLED, TIMED_OUT, SURVIVED = "killed", "timed out", "survived"
NOT_TRIED, REFUSED = "not tried", 3  # the exit code of a child that could not put the mutant in
OPTIONS = ["-s", "--assert=plain", "-oaddopts=", "-pno:cacheprovider", "-pno:terminal", "-pno:xdist"]
if os.environ.get("NUMBA_DISABLE_JIT"):  # compiled arithmetic does not warn
    OPTIONS.append("-Wignore::RuntimeWarning")


def with_runner(module: str, tests: list[str], use: Callable[[Runner], None]) -> None:
    """Collect the tests of a module, and use their runner."""
    runner = Runner(SOURCE / module, use)
    code = pytest.main([*OPTIONS, *(str(ROOT / test) for test in tests)], plugins=[runner])
    if runner.seconds is None or code != 0:
        raise SystemExit(f"the tests of {module} could not be run (exit code {code})")


class Runner:
    """A plugin that takes the place of pytest's loop over the tests."""

    def __init__(self, path: Path, use: Callable[[Runner], None]) -> None:
        self.path, self.use, self.seconds, self.failed = path, use, None, False
        self.killers: dict[str, list[pytest.Item]] = {}

    def pytest_collection(self) -> None:
        """One failing example is enough: none is made smaller."""
        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", derandomize=True, database=None, deadline=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Few examples: what they miss is listed as a survivor, so this can only be too strict."""
        for function in {item.function for item in items}:
            if (own := getattr(function, "_hypothesis_internal_use_settings", None)) is not None:
                few = settings(own, max_examples=min(own.max_examples, EXAMPLES))
                function._hypothesis_internal_use_settings = few

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        costs = {item: self._seconds(item, following) for item, following in _in_turn(session.items)}
        if self.failed:
            raise pytest.UsageError("a test fails without any change")
        self.items, self.costs = sorted(costs, key=lambda item: costs[item]), costs
        self.seconds = sum(costs.values())
        known = gc.get_objects()
        self.functions = [f for f in known if isinstance(f, FunctionType) and self._is_of_module(f.__code__)]
        for f in known:
            if isinstance(f, functools._lru_cache_wrapper):
                f.cache_clear()
        self.use(self)
        return True

    def fate(self, function: str, tree: ast.Module) -> str:
        """What becomes of a mutant of a function."""
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
        """In the child: exit code 0 if all tests pass. Tells which one it has come to."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            self._change(tree)
        except ValueError:  # without super() a method has other variables
            os._exit(REFUSED)
        for number, (item, following) in enumerate(_in_turn(order)):
            os.write(write, f"{number} ".encode())
            limit = 2.0 + 10.0 * self.costs[item]
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.setitimer(signal.ITIMER_REAL, 60.0 * limit)  # of one that waits for ever
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
    """Each test with the one that follows."""
    return zip(items, [*items[1:], None], strict=True)


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)
