"""Folds of training, validation and test data: those of a LETOR collection, or random ones."""

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
from ranksieve.io.text_files import FOLD_NAME, SPLITS, file_names

ROOT_VARIABLE = "RANKSIEVE_LETOR"
NORMALISED_SUBFOLDER = "QueryLevelNorm"


@dataclass(frozen=True)
class Fold:
    """One fold; unpacks as ``train, valid, test``."""

    train: Dataset
    valid: Dataset
    test: Dataset

    def __iter__(self) -> Iterator[Dataset]:
        return iter((self.train, self.valid, self.test))


def deal_folds(data: Dataset, n_folds: int = 5, random_state: int = 0) -> list[Fold]:
    """Split the queries at random into ``n_folds`` parts and return one fold per part.

    Fold k tests on part k, validates on the next one and trains on the others: every query is a test query
    once, as in LETOR's folds.
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
    """Collections in a folder, by name: the folder itself if it has folds, else its subfolders with folds."""
    base = Path(root)
    if not base.is_dir():
        raise FileNotFoundError(f"{base}: no such folder; expected a folder with LETOR collections")
    if _has_folds(base):
        return {base.resolve().name: base}
    collections = {path.name: path for path in sorted(base.iterdir()) if path.is_dir() and _has_folds(path)}
    if not collections:
        raise FileNotFoundError(
            f"{base}: has no folds; expected folders Fold1, Fold2, … in it or in its subfolders"
        )
    return collections


def load_letor_folds(
    name_or_path: PathLike, root: PathLike | None = None, *, widen: bool = True, **read_options: Any
) -> list[Fold]:
    """Read ``Fold1``, ``Fold2``, … of a collection, each with a train, validation and test file.

    The data sets use LETOR's metric conventions: their ``profile`` is ``"letor"``.

    Parameters
    ----------
    name_or_path : str or path
        Collection under ``root``, such as ``"MQ2008"``, or the path of its folder. The folds may also be in
        its subfolder ``QueryLevelNorm``.
    root : path, optional
        Folder of collections; default: the environment variable RANKSIEVE_LETOR.
    widen : bool
        Add columns of 0 to data sets with fewer features than the widest; if False, raise an error instead.
    **read_options
        Passed to :func:`read_letor`.
    """
    folds = _fold_folders(_collection(name_or_path, root)).values()
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
    root_folder = os.environ.get(ROOT_VARIABLE) if root is None else root
    if not root_folder:
        raise FileNotFoundError(
            f"{path}: no such folder; give its path, or set root or the environment variable {ROOT_VARIABLE} "
            "to the folder of LETOR collections that contains it"
        )
    base = Path(root_folder)
    if not base.is_dir():
        raise FileNotFoundError(
            f"{base}: no such folder, so {path} cannot be found; "
            f"set {ROOT_VARIABLE} to the folder that contains the LETOR collections"
        )
    if not (base / path).is_dir():
        present = ", ".join(sorted(entry.name for entry in base.iterdir() if entry.is_dir())) or "none"
        raise FileNotFoundError(
            f"{base / path}: no such collection; {base} contains: {present}; "
            f"name one of them, or set {ROOT_VARIABLE} to another folder"
        )
    return base / path


def _check_widths(parts: list[Dataset], width: int) -> None:
    for part in parts:
        if part.n_features != width:
            reason = (
                f"has {part.n_features} features, but other parts of the collection have {width} (if absent "
                f"features are 0, write {width}:0 on one line of the file)"
            )
            raise DataError(part.source, None, reason)


def fold_files(collection: Path) -> dict[tuple[int, str], Path]:
    """The files of a collection by number of the fold and split ("train", "validation", "test")."""
    folds = _fold_folders(collection)
    return {(number, split): _split_file(fold, split) for number, fold in folds.items() for split in SPLITS}


def _fold_folders(collection: Path) -> dict[int, Path]:
    """Fold1, Fold2, … in numerical order."""
    for folder in (collection, collection / NORMALISED_SUBFOLDER):
        folds = _numbered_folds(folder)
        if folds:
            return {number: folds[number] for number in sorted(folds)}
    raise FileNotFoundError(f"{collection}: has no folds; expected folders Fold1, Fold2, … in it")


def _has_folds(collection: Path) -> bool:
    return any(_numbered_folds(folder) for folder in (collection, collection / NORMALISED_SUBFOLDER))


def _numbered_folds(folder: Path) -> dict[int, Path]:
    numbers = {path: FOLD_NAME.fullmatch(path.name) for path in folder.glob("Fold*") if path.is_dir()}
    return {int(match[1]): path for path, match in numbers.items() if match}


def _split_file(fold: Path, split: str) -> Path:
    names = file_names(split)
    for name in names:
        if (fold / name).is_file():
            return fold / name
    raise FileNotFoundError(f"{fold}: has no {split} file; expected one of {', '.join(names)}")
