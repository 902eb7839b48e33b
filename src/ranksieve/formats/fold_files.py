"""The names of LETOR's folds and of the files in them, and what they tell of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ranksieve._types import PathLike

FOLD = re.compile(r"Fold(\d+)")
SPLITS = {
    "train": ("train", "training", "trainingset"),
    "validation": ("vali", "valid", "validation", "validationset"),
    "test": ("test", "testing", "testset"),
}
SUFFIXES = (".txt", ".txt.gz")


def file_names(split: str) -> list[str]:
    """What the file of a split may be called."""
    return [name + suffix for name in SPLITS[split] for suffix in SUFFIXES]


def profile_of_files(paths: Sequence[PathLike]) -> str | None:
    """The metric conventions that files come with: ``letor`` if all are parts of LETOR folds, else None."""
    return "letor" if all(_is_part_of_fold(Path(path).absolute()) for path in paths) else None


def _is_part_of_fold(path: Path) -> bool:
    in_fold = FOLD.fullmatch(path.parent.name) is not None
    return in_fold and any(path.name in file_names(split) for split in SPLITS)
