"""A folder of results, read: every line is checked, and what is not finished is named."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranksieve._util.messages import shortened
from ranksieve.errors import DataError
from ranksieve.experiment.journal import Entry, damaged, is_begun, read_journal
from ranksieve.experiment.results import STUDIES_FOLDER, DataSetResults, MethodFold, Results, best_on_vali
from ranksieve.methods import METHODS

MOST_NAMED = 3
FOLD_FILE = re.compile(r"Fold(\d+)\.jsonl")
PARTS = {
    "fit": {
        "point", "random_state", "parameters", "validation", "seconds", "weights", "certificate",
    },
    "chosen": {"select", "random_state", "point", "validation"},
    "tested": {"point", "random_state", "query_ids", "test", "truncated", "elsewhere"},
}  # fmt: skip


def load_results(folder: str | os.PathLike[str]) -> Results:
    """Read a folder that :func:`ranksieve.bench` wrote, finished or not."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such folder; expected the results of ranksieve bench")
    found = {path.name: _data_set(path) for path in sorted(root.iterdir()) if path.is_dir()}
    data_sets = {name: results for name, results in found.items() if results.methods}
    lacking = {name: results.unfinished for name, results in found.items() if name not in data_sets}
    results = Results(root, data_sets, lacking)
    if not data_sets:
        begun = [f"{name} on {data_set}: {why}" for (data_set, name), why in results.unfinished.items()]
        how_far = f" ({shortened(begun, MOST_NAMED)}); run bench again to finish it" if begun else ""
        expected = how_far or "; expected the results of ranksieve bench"
        raise DataError(root, None, f"holds no finished method{expected}")
    return results


def _data_set(folder: Path) -> DataSetResults:
    methods: dict[str, Sequence[MethodFold]] = {}
    unfinished = {}
    for path in _in_table_order(folder):
        folds = [_method_fold(file) for file in _fold_files(path)]
        if not folds:
            if path.name in METHODS:
                unfinished[path.name] = "no fold is finished"
            continue
        finished, expected = sum(fold.finished for fold in folds), folds[0].header["identity"]["n_folds"]
        if finished == expected:
            methods[path.name] = folds
        else:
            unfinished[path.name] = f"{finished} of {expected} folds are finished"
    studies = [_study_rows(file) for file in _fold_files(folder / STUDIES_FOLDER)]
    return DataSetResults(folder.name, methods, unfinished, studies)


def _in_table_order(folder: Path) -> list[Path]:
    """The folders of methods, in the order of the table of methods; those it does not know come last."""
    order = {name: k for k, name in enumerate(METHODS)}
    found = [path for path in folder.iterdir() if path.is_dir() and path.name != STUDIES_FOLDER]
    return sorted(found, key=lambda path: (order.get(path.name, len(order)), path.name))


def _fold_files(folder: Path) -> list[Path]:
    named = {path: FOLD_FILE.fullmatch(path.name) for path in folder.glob("Fold*.jsonl")}
    numbers = {path: int(match[1]) for path, match in named.items() if match and is_begun(path)}
    return sorted(numbers, key=lambda path: numbers[path])


def _method_fold(file: Path) -> MethodFold:
    header, rows = read_journal(file)
    by_kind: dict[str, list[Entry]] = {kind: [] for kind in PARTS}
    for number, row in enumerate(rows, start=2):
        _check_row(file, number, row)
        if row["kind"] == "chosen":
            _check_choice(file, number, row, by_kind["fit"], header["identity"])
        by_kind.setdefault(row["kind"], []).append(row)
    choices = {(row["select"], row["random_state"]): row for row in by_kind["chosen"]}
    tested = {(row["point"], row["random_state"]): row for row in by_kind["tested"]}
    return MethodFold(header, by_kind["fit"], choices, tested)


def _check_row(file: Path, line: int, row: Entry) -> None:
    """Refuse a row that lacks a part, or whose metrics do not have one value per query."""
    lacking = sorted(PARTS.get(row["kind"], set()) - row.keys())
    if lacking:
        raise damaged(file, line, f"no {lacking[0]}")
    lengths = {len(values) for values in row.get("test", {}).values()}
    if lengths - {len(row.get("query_ids", ()))}:
        raise damaged(file, line, "not one value per query in each metric")


def _check_choice(
    file: Path, line: int, row: Entry, fits: Sequence[Entry], identity: Mapping[str, Any]
) -> None:
    """Refuse a choice that is not the best on vali of the whole grid with its seed."""
    select, seed = row["select"], row["random_state"]
    n_fits = sum(fit["random_state"] == seed for fit in fits)
    if n_fits < len(identity["grid"]) or best_on_vali(fits, select, seed)["point"] != row["point"]:
        raise damaged(file, line, f"the chosen point {row['point']} is not the best on vali by {select}")


def _study_rows(file: Path) -> dict[str, Entry]:
    return {row["kind"]: row for row in read_journal(file)[1]}
