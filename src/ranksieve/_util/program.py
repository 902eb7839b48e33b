"""Whether this process is the command line, which loads only what a command needs."""

from __future__ import annotations

_running: list[bool] = []


def is_program() -> bool:
    """Whether :func:`run_as_program` was called."""
    return bool(_running)


def run_as_program() -> None:
    """Tell what is loaded later that nobody but the command line uses it."""
    _running.append(True)
