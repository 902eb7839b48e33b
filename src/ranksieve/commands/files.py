"""Files that commands read and write."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.atomic import Destination, atomic_write, destination, is_standard_output
from ranksieve.commands.show import progress
from ranksieve.data.dataset import Dataset, numbered_names
from ranksieve.formats.load import read_dataset
from ranksieve.formats.text_files import read_text, source_name

STANDARD = "-"


def read_data(path: str, missing: str = "error") -> Dataset:
    """Read a data set, with a bar on a terminal."""
    with progress(f"reading {path}"):
        return read_dataset(path, missing=missing)


def widen(data: Dataset, n_features: int) -> Dataset:
    """Add columns of 0 up to ``n_features`` if the columns have numbers for names, as in LETOR text."""
    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def read_scores(path: str) -> FloatArray:
    """One finite number a line; ``-`` is standard input."""
    scores = np.empty(len(lines := read_text(path).splitlines()))
    for number, line in enumerate(lines):
        try:
            scores[number] = float(line)
        except ValueError:
            raise ValueError(
                f"{source_name(path)}:{number + 1}: {line[:40]!r} is not a number; expected one score a line"
            ) from None
    return scores


def write_text(text: str, path: str | None) -> None:
    """Write a file whole or not at all; without a path, or to ``-``, standard output."""
    if path is None or path == STANDARD:
        sys.stdout.write(text)
        return
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def beside(*outputs: str | None) -> Iterator[None]:
    """Show on stderr what would go to standard output if an output goes there, which it has to itself."""
    if any(output is not None and is_standard_output(output) for output in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def check_inputs(*paths: str | None) -> None:
    """Standard input can be only one of the inputs."""
    if paths.count(STANDARD) > 1:
        raise ValueError("standard input (-) can be read once only; give a file for the other input")


def check_outputs(
    outputs: Iterable[str | os.PathLike[str] | None],
    inputs: Iterable[str | None] = (),
    *,
    stdout: bool = False,
) -> None:
    """Refuse, before any work, outputs that cannot be written or that would overwrite an input.

    ``stdout`` tells whether the command can write to standard output, called ``-``.
    """
    taken = [Path(given).resolve() for given in inputs if given not in (None, STANDARD)]
    for output in outputs:
        if output is None or (stdout and output == STANDARD):
            continue
        if output == STANDARD:
            raise ValueError("-: this cannot go to standard output; name a file to write")
        there = destination(output)
        if there.replaced and there.place in taken:
            raise ValueError(f"{output}: is named twice on the command line; choose another output file")
        taken.append(there.place)
        _check_writable(output, there)


def _check_writable(output: str | os.PathLike[str], there: Destination) -> None:
    place = there.place
    if place.is_dir():
        raise ValueError(f"{output}: is a folder; name a file to write")
    if not place.parent.is_dir():
        folder = place.parent if Path(output).is_symlink() else Path(output).parent
        raise ValueError(f"{output}: the folder {folder} does not exist; create it first")
    if not (there.replaced or place.exists()):
        raise ValueError(f"{output}: is not open; name a file to write")
    if there.descriptor is None and place.exists() and not os.access(place, os.W_OK):
        raise ValueError(f"{output}: is write-protected; choose another file or allow writing")
    if not there.replaced:
        return
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise ValueError(f"{output}: cannot write there ({error.strerror}); choose another folder") from None
