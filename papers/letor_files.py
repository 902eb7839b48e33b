"""Compare a copy of the LETOR collections with the data of docs/results.md."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from ranksieve.io.folds import find_collections, fold_files

SAME_BYTES, SAME_VALUES, OTHER, NO_FOLD = (
    "same bytes",
    "same values, other bytes (comments, spaces or line ends)",
    "other values",
    "no such fold",
)


def check_letor_files(root: Path) -> Iterator[str]:
    """A line for each collection in letor_files.csv, then one for each of its files with other bytes."""
    hashes = _hashes()
    for name, folder in find_collections(root).items():
        if name in hashes:
            outcomes = _outcomes(folder, hashes[name])
            n_same = sum(outcome == SAME_BYTES for outcome in outcomes.values())
            yield f"{name}: {n_same} of {len(outcomes)} files are those of docs/results.md, byte by byte"
            for (fold, part), outcome in outcomes.items():
                if outcome != SAME_BYTES:
                    yield f"{name}, Fold{fold}, {part}: {outcome}"


def _hashes() -> dict[str, dict[tuple[int, str], tuple[str, str]]]:
    """For each collection, fold and part: SHA-256 of the bytes and of the values."""
    text = files("papers").joinpath("letor_files.csv").read_text(encoding="utf-8")
    hashes: dict[str, dict[tuple[int, str], tuple[str, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        part = int(row["fold"]), row["part"]
        hashes.setdefault(row["collection"], {})[part] = row["sha256"], row["sha256_of_values"]
    return hashes


def _outcomes(folder: Path, hashes: dict[tuple[int, str], tuple[str, str]]) -> dict[tuple[int, str], str]:
    present = fold_files(folder)
    return {
        part: _outcome(present[part], *expected) if part in present else NO_FOLD
        for part, expected in hashes.items()
    }


def _outcome(file: Path, of_bytes: str, of_values: str) -> str:
    content = file.read_bytes()
    text = gzip.decompress(content) if file.suffix == ".gz" else content
    if hashlib.sha256(text).hexdigest() == of_bytes:
        return SAME_BYTES
    return SAME_VALUES if hash_of_values(text) == of_values else OTHER


def hash_of_values(text: bytes) -> str:
    """SHA-256 of the lines without comments, with single spaces and Unix line ends."""
    digest = hashlib.sha256()
    for line in text.splitlines():
        digest.update(b" ".join(line.partition(b"#")[0].split()) + b"\n")
    return digest.hexdigest()
