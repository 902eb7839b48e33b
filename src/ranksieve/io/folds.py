"""Folds of train, validation and test data: LETOR's own, or dealt at random."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, PathLike
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, ParameterError
from ranksieve.io.letor import read_letor
from ranksieve.io.text_files import FOLD, SPLITS, file_names

ROOT_VARIABLE = "RANKSIEVE_LETOR"
NORMALISED = "QueryLevelNorm"


@dataclass(frozen=True)
class Fold:
    """One fold; unpacks as ``train, valid, test``."""

    train: Dataset
    valid: Dataset
    test: Dataset

    def __iter__(self) -> Iterator[Dataset]:
        return iter((self.train, self.valid, self.test))


def deal_folds(data: Dataset, n_folds: int = 5, random_state: int = 0) -> list[Fold]:
    """Deal the queries at random into parts: of each fold one is test, the next validation, the rest train.

    Every query is a test query once, as in LETOR's folds.
    """
    if not 3 <= n_folds <= data.n_queries:
        reason = f"must be from 3 (train, validation, test) to the number of queries, {data.n_queries}"
        raise ParameterError("n_folds", n_folds, reason)
    part = np.random.default_rng(random_state).permutation(data.n_queries) % n_folds

    def queries(k: int) -> tuple[BoolArray, BoolArray, BoolArray]:
        test, valid = part == k, part == (k + 1) % n_folds
        return ~(test | valid), valid, test

    return [Fold(*(data.select_queries(chosen) for chosen in queries(k))) for k in range(n_folds)]


def find_collections(root: PathLike) -> dict[str, Path]:
    """The collections of a folder by name: the folder itself if it holds folds, else those in it that do."""
    base = Path(root)
    if not base.is_dir():
        raise FileNotFoundError(f"{base}: there is no such folder; expected one with LETOR collections")
    if _has_folds(base):
        return {base.resolve().name: base}
    found = {path.name: path for path in sorted(base.iterdir()) if path.is_dir() and _has_folds(path)}
    if not found:
        raise FileNotFoundError(
            f"{base}: has no folds; expected Fold1, Fold2, … in it, or in the folders of its collections"
        )
    return found


def load_letor_folds(
    name_or_path: PathLike, root: PathLike | None = None, *, widen: bool = True, **read_options: Any
) -> list[Fold]:
    """Read ``Fold1``, ``Fold2``, … of a collection, each with a train, validation and test file.

    The parts come with LETOR's conventions: their ``profile`` is ``"letor"``.

    Parameters
    ----------
    name_or_path : str or path
        A collection under ``root``, as ``"MQ2008"``, or the path of its folder; a level ``QueryLevelNorm``
        below it is found.
    root : path, optional
        Folder of collections; default: the environment variable RANKSIEVE_LETOR.
    widen : bool
        Parts with fewer features than the widest get columns of 0; False refuses them.
    **read_options
        For :func:`read_letor`.
    """
    folds = _fold_folders(_collection(name_or_path, root))
    files = [[_split_file(fold, split) for split in SPLITS] for fold in folds]
    parts = [[read_letor(file, **read_options) for file in splits] for splits in files]
    width = max(part.n_features for splits in parts for part in splits)
    if not widen:
        _check_widths([part for splits in parts for part in splits], width)
    return [Fold(*(part.widened(width) for part in splits)) for splits in parts]


def _collection(name_or_path: PathLike, root: PathLike | None) -> Path:
    path = Path(name_or_path)
    if root is None and path.is_dir():
        return path
    given = os.environ.get(ROOT_VARIABLE) if root is None else root
    if not given:
        raise FileNotFoundError(
            f"{path}: there is no such folder here; give its path, or the folder of LETOR collections that "
            f"holds it as root or in the environment variable {ROOT_VARIABLE}"
        )
    base = Path(given)
    if not base.is_dir():
        raise FileNotFoundError(
            f"{base}: there is no such folder, so {path} cannot be found; "
            f"set {ROOT_VARIABLE} to the folder that holds the LETOR collections"
        )
    if not (base / path).is_dir():
        present = ", ".join(sorted(entry.name for entry in base.iterdir() if entry.is_dir())) or "none"
        raise FileNotFoundError(
            f"{base / path}: there is no such collection; {base} holds: {present}; "
            f"name one of them, or set {ROOT_VARIABLE} to another folder"
        )
    return base / path


def _check_widths(parts: list[Dataset], width: int) -> None:
    for part in parts:
        if part.n_features != width:
            reason = (
                f"has {part.n_features} features, but other parts of the collection have {width} (if absent "
                f"means 0, write {width}:0 once in the file)"
            )
            raise DataError(part.source, None, reason)


def _fold_folders(collection: Path) -> list[Path]:
    """Fold1, Fold2, … in the order of their numbers."""
    for folder in (collection, collection / NORMALISED):
        found = _numbered_folds(folder)
        if found:
            return [found[number] for number in sorted(found)]
    raise FileNotFoundError(f"{collection}: has no folds; expected folders Fold1, Fold2, … in it")


def _has_folds(collection: Path) -> bool:
    return any(_numbered_folds(folder) for folder in (collection, collection / NORMALISED))


def _numbered_folds(folder: Path) -> dict[int, Path]:
    numbers = {path: FOLD.fullmatch(path.name) for path in folder.glob("Fold*") if path.is_dir()}
    return {int(match[1]): path for path, match in numbers.items() if match}


def _split_file(fold: Path, split: str) -> Path:
    names = file_names(split)
    for name in names:
        if (fold / name).is_file():
            return fold / name
    raise FileNotFoundError(f"{fold}: has no {split} file; expected one of {', '.join(names)}")
