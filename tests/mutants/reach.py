"""Pytest plugin that records the lines reached by each test, and the duration of each test.

    coverage run -m pytest -p tests.mutants.reach …

Coverage contexts are test ids, also in subprocesses of a test. Durations are written to ``seconds-*.json`` in
the folder of the coverage data.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

SECONDS: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    coverage = Coverage.current()
    begin = time.perf_counter()
    if coverage is not None:
        coverage.switch_context(item.nodeid)
        settings = json.loads(b64decode(os.environ["COVERAGE_PROCESS_CONFIG"]))
        text = json.dumps({**settings, "context": item.nodeid})
        os.environ["COVERAGE_PROCESS_CONFIG"] = b64encode(text.encode()).decode()
    result = yield
    SECONDS[item.nodeid] = time.perf_counter() - begin
    return result


def pytest_sessionfinish(session: Any) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    Path(os.environ["COVERAGE_FILE"]).with_name(f"seconds-{worker}.json").write_text(json.dumps(SECONDS))
