"""External programs: each reads a LETOR file, and an environment variable names it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.competitors.base import Competitor
from benchmarks.harness import OUT
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor


class Program(Competitor):
    """A program that is called with files; ``prepare`` writes them, outside all timings."""

    reads_files_itself = True

    def __init__(self) -> None:
        self._written: dict[int, tuple[Dataset, Path]] = {}

    @property
    def program(self) -> str:
        return os.environ[self.variable]

    @property
    def folder(self) -> Path:
        """Where data and models are written."""
        folder = OUT / "programs" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def file_of(self, data: Dataset) -> Path:
        """The data as LETOR text, written once."""
        if id(data) not in self._written:
            path = self.folder / f"{len(self._written)}.txt"
            write_letor(data, path)
            self._written[id(data)] = (data, path)
        return self._written[id(data)][1]

    def prepare(self, data: Dataset) -> Any:
        return self.file_of(data)


def run(*command: Any) -> None:
    """Run a program quietly; what it says is shown only if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{Path(str(command[0])).name} failed: {(done.stderr or done.stdout).strip()[-300:]}"
        )


def weights_from_pairs(pairs: list[str], n_features: int) -> FloatArray:
    """Weights of ``["1:0.5", …]``, numbered from 1."""
    w = np.zeros(n_features)
    for pair in pairs:
        number, value = pair.split(":")
        w[int(number) - 1] = float(value)
    return w
