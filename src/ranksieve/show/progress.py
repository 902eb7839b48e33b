"""Progress of a fit: a bar in a terminal, a line of text in a notebook or a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
TEXT_STEPS = 10  # lines of text of a whole fit, without a terminal


@contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """Progress bar on stderr, updated by ``(done, total)``; None unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def visible_progress(title: str) -> Iterator[Progress]:
    """The bar, or ten lines of text on stderr if it is not a terminal, as in notebooks."""
    with progress_bar(title) as bar:
        yield bar or _text_progress(title)


def _text_progress(title: str) -> Progress:
    shown = -1

    def report(done: int, total: int) -> None:
        nonlocal shown
        step = TEXT_STEPS * done // max(total, 1)
        if step > shown:
            shown = step
            print(f"{title}: {100 * done // max(total, 1)} %", file=sys.stderr, flush=True)  # noqa: T201

    return report
