"""A folder of results as data: what each method reached on each data set, fold by fold."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.experiment.journal import Entry, is_begun, read_journal
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluation
from ranksieve.metrics.evaluate import summarise
from ranksieve.metrics.profiles import as_profile

PAPER_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
STUDIES_FOLDER = "studies"
STAND_INS_FOLDER = "stand_ins"
FOLD_FILE = re.compile(r"Fold(\d+)\.jsonl")
FITTED = frozenset({"point", "parameters", "validation", "weights", "certificate"})
PARTS = {
    "fit": FITTED | {"seconds"},
    "chosen": FITTED | {"query_ids", "test", "truncated", "fit_seconds", "grid_seconds"},
    "rechosen": frozenset({"select", "point", "parameters", "weights", "query_ids", "test"}),
}


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The chosen model of one fold and what it reached."""

    parameters: Mapping[str, Any]
    validation: float
    test: Evaluation
    coef: FloatArray
    varying: BoolArray
    fit_seconds: float
    grid_seconds: float

    @property
    def n_selected(self) -> float:
        """Nonzero weights; NaN for a ranker that is not linear."""
        return len(self.coef) * self.sparsity

    @property
    def sparsity(self) -> float:
        """Nonzero weights / features; NaN for a ranker that is not linear."""
        return _share(self.coef)

    @property
    def varying_sparsity(self) -> float:
        """Nonzero weights / features, both without the features that are constant within every query."""
        return _share(self.coef[self.varying])


@dataclass(frozen=True, eq=False)
class MethodResult:
    """All folds of one method on one data set."""

    folds: tuple[FoldResult, ...]

    def mean(self, metric: str) -> float:
        """Mean over folds of the mean over queries."""
        return float(np.mean([fold.test.mean[metric] for fold in self.folds]))

    def pooled(self, metric: str) -> FloatArray:
        """Test values of all folds' queries."""
        return np.concatenate([fold.test.per_query[metric] for fold in self.folds])

    def to_row(self) -> dict[str, float]:
        """Metrics, sparsity and time, averaged over folds."""
        means = {metric: self.mean(metric) for metric in self.folds[0].test.mean}
        shares = ("sparsity", "varying_sparsity", "n_selected")
        of = {name: [getattr(fold, name) for fold in self.folds] for name in shares}
        times = {name: sum(getattr(f, name) for f in self.folds) for name in ("fit_seconds", "grid_seconds")}
        return {**means, **{name: float(np.mean(values)) for name, values in of.items()}, **times}


def _share(coef: FloatArray) -> float:
    return float("nan") if np.isnan(coef).any() else float(np.mean(coef != 0))


@dataclass(frozen=True, eq=False)
class MethodFold:
    """One method on one fold: header, the rows of its fits, and the row of the chosen one if it is there.

    ``rechosen`` holds what other metrics would have chosen, by their names.
    """

    header: Entry
    fits: Sequence[Entry]
    chosen: Entry | None
    rechosen: Mapping[str, Entry] = field(default_factory=dict)

    @cached_property
    def result(self) -> FoldResult:
        """What the chosen model reached."""
        chosen: Entry = self.chosen or {}
        names, profile = self.header["notes"]["features"], as_profile(self.header["identity"]["profile"])
        per_query = {name: np.array(values, dtype=np.float64) for name, values in chosen["test"].items()}
        ids = np.array(chosen["query_ids"], dtype=object)
        return FoldResult(
            chosen["parameters"],
            chosen["validation"],
            summarise(per_query, ids, profile, profile.empty),
            dense(chosen["weights"], names),
            np.array(self.header["notes"]["varying"]),
            chosen["fit_seconds"],
            chosen["grid_seconds"],
        )


@dataclass(frozen=True, eq=False)
class DataSetResults:
    """All finished methods on one data set, the unfinished ones by name, and the studies of each fold."""

    name: str
    methods: Mapping[str, Sequence[MethodFold]]
    unfinished: Mapping[str, str]
    studies: Sequence[Mapping[str, Entry]]

    @cached_property
    def results(self) -> dict[str, MethodResult]:
        """The protocol's result of each method."""
        return {
            name: MethodResult(tuple(fold.result for fold in folds)) for name, folds in self.methods.items()
        }

    @cached_property
    def pooled(self) -> dict[str, Evaluation]:
        """Test values of all folds' queries as one evaluation per method, for paired tests."""
        return {name: _pool([fold.test for fold in result.folds]) for name, result in self.results.items()}

    @property
    def header(self) -> Entry:
        """The header of any file: what they share on data and software."""
        return next(iter(self.methods.values()))[0].header

    @property
    def features(self) -> list[str]:
        return list(self.header["notes"]["features"])

    @property
    def n_queries(self) -> int:
        """Test queries of all folds."""
        return len(next(iter(self.pooled.values())).query_ids)


@dataclass(frozen=True, eq=False)
class Results:
    """The content of a results folder; ``stand_ins`` are measured on synthetic data, by name."""

    folder: Path
    data_sets: Mapping[str, DataSetResults]
    stand_ins: Mapping[str, Entry] = field(default_factory=dict)


def load_results(folder: str | os.PathLike[str]) -> Results:
    """Read a folder that :func:`ranksieve.bench` wrote, finished or not."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such folder; expected the results of ranksieve bench")
    found = {path.name: _data_set(path) for path in sorted(root.iterdir()) if path.is_dir()}
    data_sets = {name: results for name, results in found.items() if results.methods}
    if not data_sets:
        raise ValueError(f"{root}: holds no finished method; expected the results of ranksieve bench")
    return Results(root, data_sets, _stand_ins(root / STAND_INS_FOLDER))


def _stand_ins(folder: Path) -> dict[str, Entry]:
    rows = {path.stem: read_journal(path)[1] for path in sorted(folder.glob("*.jsonl")) if is_begun(path)}
    return {name: found[0] for name, found in rows.items() if found}


def _data_set(folder: Path) -> DataSetResults:
    methods, unfinished = {}, {}
    for path in _in_table_order(folder):
        folds = [_method_fold(file) for file in _fold_files(path)]
        if not folds:
            continue
        finished, expected = sum(f.chosen is not None for f in folds), folds[0].header["identity"]["n_folds"]
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
    by_kind: dict[str, list[Entry]] = {"fit": [], "chosen": [], "rechosen": []}
    for number, row in enumerate(rows, start=2):
        _check_row(f"{file}:{number}", row)
        by_kind.setdefault(row["kind"], []).append(row)
    chosen = by_kind["chosen"][0] if by_kind["chosen"] else None
    return MethodFold(header, by_kind["fit"], chosen, {row["select"]: row for row in by_kind["rechosen"]})


def _check_row(place: str, row: Entry) -> None:
    """Refuse a row that lacks a part, or whose metrics do not have one value per query."""
    lacking = sorted(PARTS.get(row["kind"], frozenset()) - row.keys())
    if lacking:
        raise ValueError(f"{place}: damaged line (no {lacking[0]}); remove the file to run it again")
    lengths = {len(values) for values in row.get("test", {}).values()}
    if lengths - {len(row.get("query_ids", ()))}:
        raise ValueError(
            f"{place}: damaged line (not one value per query in each metric); remove the file to run it again"
        )


def _study_rows(file: Path) -> dict[str, Entry]:
    return {row["kind"]: row for row in read_journal(file)[1]}


def _pool(parts: Sequence[Evaluation]) -> Evaluation:
    names = parts[0].per_query
    per_query = {name: np.concatenate([part.per_query[name] for part in parts]) for name in names}
    ids = np.empty(sum(len(part.query_ids) for part in parts), dtype=object)
    labels: list[Any] = [f"Fold{k} {q}" for k, part in enumerate(parts, 1) for q in part.query_ids]
    ids[:] = labels
    return summarise(per_query, ids, parts[0].profile, parts[0].empty)


def dense(weights: Mapping[str, float] | None, names: Sequence[str]) -> FloatArray:
    """The inverse of :func:`ranksieve._util.json_values.nonzero_weights`; NaN without weights."""
    if weights is None:
        return np.full(len(names), np.nan)
    return np.array([weights.get(name, 0.0) for name in names])
