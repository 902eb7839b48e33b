"""A subprocess that checks extreme fits, with a time limit per fit."""

from __future__ import annotations

import multiprocessing

from tests.extremes.cases import draw
from tests.extremes.judging import Outcome, judge

MOST_SECONDS = 60.0  # per fit; the first one compiles


class Judges:
    """A subprocess that checks cases, restarted if it does not answer in time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._seed), daemon=True)
        self._process.start()
        theirs.close()

    def judge(self, number: int, methods: list[str]) -> Outcome:
        self._ours.send((number, methods))
        try:
            if self._ours.poll(MOST_SECONDS):
                return self._ours.recv()
            words = f"no answer in {MOST_SECONDS:.0f} s"
        except (EOFError, ConnectionError):
            words = "the process died"
        self._stop()
        self._start()
        return Outcome("fault", words)

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._ours.close()

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()


def _serve(pipe, seed) -> None:
    while True:
        number, methods = pipe.recv()
        pipe.send(judge(draw(seed, number, methods)))
