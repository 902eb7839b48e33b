"""External programs that read LETOR files; environment variables contain their paths."""

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
    """A program that reads files; ``prepare`` writes them, which is not timed."""

    reads_files_itself = True

    def __init__(self) -> None:
        self._files: dict[int, tuple[Dataset, Path]] = {}

    @property
    def program(self) -> str:
        return os.environ[self.variable]

    @property
    def folder(self) -> Path:
        """Folder for data and models."""
        folder = OUT / "programs" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def file_of(self, data: Dataset) -> Path:
        """File with the data as LETOR text; written at the first call."""
        if id(data) not in self._files:
            path = self.folder / f"{len(self._files)}.txt"
            write_letor(data, path)
            self._files[id(data)] = (data, path)
        return self._files[id(data)][1]

    def prepare(self, data: Dataset) -> Any:
        return self.file_of(data)


def run(*command: Any) -> None:
    """Run a program; show its output only if it fails."""
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(
            f"{Path(str(command[0])).name} failed: {(process.stderr or process.stdout).strip()[-300:]}"
        )


def weights_from_pairs(pairs: list[str], n_features: int) -> FloatArray:
    """Weights from ``["1:0.5", …]``, numbered from 1."""
    w = np.zeros(n_features)
    for pair in pairs:
        number, value = pair.split(":")
        w[int(number) - 1] = float(value)
    return w
