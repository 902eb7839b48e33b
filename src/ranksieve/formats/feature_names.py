"""Names for the features of LETOR text, which has numbers for them: files of names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ranksieve._types import PathLike
from ranksieve._util.atomic import atomic_write, destination
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import numbered_names
from ranksieve.errors import DataError, shown
from ranksieve.formats.letor_faults import LARGEST_INDEX
from ranksieve.formats.text_files import STANDARD_INPUT, content_lines, read_text, source_name

SUFFIX = ".names"
NUMBERED = re.compile(r"(\d{1,8})\s*[:,;\t]\s*(.+)")


class FeatureNames(NamedTuple):
    """Names of the features 1, 2, …, and where they come from.

    Without ``exact`` they were given with their numbers, so that data may have fewer features.
    """

    names: tuple[str, ...]
    source: str
    exact: bool

    @property
    def least(self) -> int:
        """How many features the data get at least."""
        return 0 if self.exact else len(self.names)

    def of(self, n_features: int, source: str) -> tuple[str, ...]:
        """The names of so many features; another number of names is refused."""
        if n_features > len(self.names) or (self.exact and n_features < len(self.names)):
            reason = f"has {n_features} features, but {self.source} has {len(self.names)} names"
            raise DataError(source, None, reason)
        return self.names


def names_for(given: PathLike | Sequence[str] | None, paths: Sequence[PathLike]) -> FeatureNames | None:
    """The names that are given, as a file or a sequence, else those of a file beside the text, if any."""
    if isinstance(given, str | os.PathLike):
        return read_names(given)
    if given is not None:
        return FeatureNames(tuple(str(name) for name in given), "names=", True)
    found = [read_names(place) for place in map(names_beside, paths) if place.is_file()]
    for other in found[1:]:
        if other.names != found[0].names:
            reason = f"has other names than {found[0].source}; files of one data set need the same features"
            raise DataError(other.source, None, reason)
    return found[0] if found else None


def names_beside(path: PathLike) -> Path:
    """Where the names of a text's features are looked for: ``train.txt.names``, also for train.txt.gz."""
    return Path(os.fspath(path).removesuffix(".gz") + SUFFIX)


def read_names(path: PathLike) -> FeatureNames:
    """Read the names of features: one per line, or ``1:name`` on each line, or CSV with index and name."""
    source = source_name(path)
    lines = list(content_lines(read_text(path), source))
    if not lines:
        raise DataError(source, None, "holds no names; expected one per line")
    matches = [NUMBERED.fullmatch(line) for _, line in lines]
    numbered = all(matches[1:]) and (matches[0] is not None or len(matches) > 1)
    names: dict[int, str] = {}
    taken: set[str] = set()
    for count, ((place, line), match) in enumerate(zip(lines, matches, strict=True), start=1):
        if numbered and match is None:  # the header
            continue
        number, name = (int(match[1]), match[2].strip()) if numbered and match else (count, line)
        if not 1 <= number <= LARGEST_INDEX:
            raise DataError(*place, f"{shown(name)} has number {number}; expected 1 to {LARGEST_INDEX}")
        if number in names:
            raise DataError(*place, f"feature {number} has a second name; give it one")
        if name in taken:
            raise DataError(*place, f"two features are called {name!r}; rename one of them")
        names[number] = name
        taken.add(name)
    every = tuple(names.get(j + 1, default) for j, default in enumerate(numbered_names(max(names))))
    return FeatureNames(every, source, exact=not numbered)


@contextmanager
def names_written(dataset: Dataset, path: PathLike) -> Iterator[None]:
    """While a text is written: leave the names of its features beside it, or remove those of an older one."""
    if os.fspath(path) == STANDARD_INPUT or not destination(path).replaced:
        yield
        return
    names, beside = dataset.feature_names, names_beside(path)
    if names == numbered_names(len(names)):
        yield
        beside.unlink(missing_ok=True)
        return
    if beside.is_symlink():
        raise DataError(beside, None, "is a link, but the feature names are written there; remove the link")
    for name in names:
        if name.strip() != name or not name or len(name.splitlines()) > 1:
            raise DataError(
                None, None, f"the feature name {name!r} does not fit on a line of {beside}; rename it"
            )
    with atomic_write(beside) as file:
        file.writelines(f"{number}:{name}\n" for number, name in enumerate(names, start=1))
        yield
