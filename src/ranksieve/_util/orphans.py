"""Worker processes end when the process dies that they work for, however it dies."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

LOOK = 0.5  # seconds between two looks


def end_with(employer: int) -> None:
    """End this process when the one with the given number is no longer its parent.

    A process that is its own employer stays. Windows never names another parent, so nothing happens there.
    """
    if os.getpid() != employer and os.name == "posix":
        _watch(employer)


@cache
def _watch(employer: int) -> None:
    threading.Thread(target=_wait, args=(employer,), name="ranksieve-orphan", daemon=True).start()


def _wait(employer: int) -> None:
    while os.getppid() == employer:
        time.sleep(LOOK)
    os._exit(1)  # in the midst of work: nobody waits for it, and files are written whole or not at all
