"""LETOR collections from RANKSIEVE_LETOR; raises Skipped if they are missing."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness import Skipped, letor_folder
from ranksieve.io.folds import Fold, load_letor_folds


def letor_file(collection: str) -> Path:
    """Training file of the first fold."""
    path = letor_folder() / collection / "Fold1" / "train.txt"
    if not path.exists():
        raise Skipped(f"no {collection} data (set RANKSIEVE_LETOR)")
    return path


def letor_folds(collection: str) -> list[Fold]:
    letor_file(collection)
    return load_letor_folds(collection, letor_folder())
