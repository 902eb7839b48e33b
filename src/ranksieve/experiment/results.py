"""Results as data: what each method reached on each data set, fold by fold, and their folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray
from ranksieve.choice.decide import best
from ranksieve.errors import DataError, shortened
from ranksieve.experiment.journal import Entry, damaged, is_begun, read_journal
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluation
from ranksieve.metrics.evaluate import summarise, together
from ranksieve.metrics.profiles import as_profile

STUDIES_FOLDER = "studies"  # of a data set, beside the folders of its methods
TABLE_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
SHARES = ("sparsity", "varying_sparsity", "n_selected")


def best_on_valid(fits: Sequence[Entry], select: str, seed: int | None) -> Entry:
    """The best fit with a seed by a metric on validation data; the earlier one in a tie."""
    among = sorted((row for row in fits if row["random_state"] == seed), key=lambda row: int(row["point"]))
    values = np.array([[row["validation"][select]] for row in among])
    return among[best(values, np.zeros(len(among)))]


@dataclass(frozen=True, eq=False)
class Draw:
    """What was chosen with one seed and what it reached; a ranker that is not linear has weights NaN."""

    parameters: Mapping[str, Any]
    validation: float
    seconds: float
    test: Evaluation
    coef: FloatArray
    varying: BoolArray

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

    def to_row(self) -> dict[str, float]:
        """Metrics and sparsity."""
        return {**self.test.mean, **{name: float(getattr(self, name)) for name in SHARES}}


def _share(coef: FloatArray) -> float:
    return float("nan") if np.isnan(coef).any() else float(np.mean(coef != 0))


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What was chosen on one fold and what it reached: once, or once for each seed."""

    draws: tuple[Draw, ...]
    grid_seconds: float

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those that the first seed chose."""
        return self.draws[0].parameters

    @property
    def validation(self) -> float:
        """That of the first seed's choice."""
        return self.draws[0].validation

    @property
    def coef(self) -> FloatArray:
        """The weights of the first seed."""
        return self.draws[0].coef

    @cached_property
    def test(self) -> Evaluation:
        """Test values, of each query the mean over the seeds."""
        first, names = self.draws[0].test, self.draws[0].test.per_query
        values = {name: np.mean([draw.test.per_query[name] for draw in self.draws], axis=0) for name in names}
        return summarise(values, first.query_ids, first.profile, first.empty)

    def mean(self, name: str) -> float:
        """The mean over the seeds of one of SHARES, or of the seconds of the chosen fit."""
        return float(np.mean([getattr(draw, name) for draw in self.draws]))


@dataclass(frozen=True, eq=False)
class MethodResult:
    """All folds of one method on one data set."""

    folds: tuple[FoldResult, ...]

    @property
    def n_seeds(self) -> int:
        return min(len(fold.draws) for fold in self.folds)

    def mean(self, metric: str) -> float:
        """Mean over folds of the mean over queries."""
        return float(np.mean([fold.test.mean[metric] for fold in self.folds]))

    def pooled(self, metric: str) -> FloatArray:
        """Test values of all folds' queries."""
        return np.concatenate([fold.test.per_query[metric] for fold in self.folds])

    def to_row(self) -> dict[str, float]:
        """Metrics, sparsity and time, averaged over folds."""
        means = {metric: self.mean(metric) for metric in self.folds[0].test.mean}
        shares = {name: float(np.mean([fold.mean(name) for fold in self.folds])) for name in SHARES}
        fit_seconds = sum(fold.mean("seconds") for fold in self.folds)
        grid_seconds = sum(fold.grid_seconds for fold in self.folds)
        return {**means, **shares, "fit_seconds": fit_seconds, "grid_seconds": grid_seconds}

    def spread(self) -> dict[str, float]:
        """Standard deviation over the seeds of what ``to_row`` averages; empty with one seed."""
        if self.n_seeds < 2:
            return {}
        rows = [[fold.draws[k].to_row() for fold in self.folds] for k in range(self.n_seeds)]
        return {
            name: float(np.std([np.mean([row[name] for row in of_seed]) for of_seed in rows], ddof=1))
            for name in rows[0][0]
        }


@dataclass(frozen=True, eq=False)
class MethodFold:
    """One method on one fold: header, the rows of its fits, and by seed those of its choice and its test."""

    header: Entry
    fits: Sequence[Entry]
    choices: Mapping[int | None, Entry]
    tested: Mapping[int | None, Entry]

    @property
    def finished(self) -> bool:
        """Whether there are a choice and its test with every seed."""
        return self.choices.keys() == self.tested.keys() == set(self.header["identity"]["seeds"])

    @cached_property
    def chosen(self) -> Entry | None:
        """Parameters, weights, certificate and test of what was chosen with the first seed."""
        if not self.finished:
            return None
        choice = self.choices[self.header["identity"]["seeds"][0]]
        return {**self._fit_of(choice), **self.tested[choice["random_state"]], **choice}

    @property
    def result(self) -> FoldResult:
        """What the chosen models reached."""
        chosen = [self.choices[seed] for seed in self.header["identity"]["seeds"]]
        return FoldResult(tuple(map(self._draw, chosen)), sum(row["seconds"] for row in self.fits))

    def _fit_of(self, choice: Entry) -> Entry:
        names = ("point", "random_state")
        return next(row for row in self.fits if all(row[name] == choice[name] for name in names))

    def _draw(self, choice: Entry) -> Draw:
        notes, profile = self.header["notes"], as_profile(self.header["identity"]["profile"])
        fit, tested = self._fit_of(choice), self.tested[choice["random_state"]]
        per_query = {name: np.array(values, dtype=np.float64) for name, values in tested["test"].items()}
        ids = np.array(tested["query_ids"], dtype=object)
        return Draw(
            fit["parameters"],
            choice["validation"],
            fit["seconds"],
            summarise(per_query, ids, profile, profile.empty),
            dense(fit["weights"], notes["features"]),
            np.array(notes["varying"]),
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
    """The content of a results folder.

    ``unfinished`` says by data set and method how far each method is that is left out.
    """

    folder: Path
    data_sets: Mapping[str, DataSetResults]
    unfinished: Mapping[tuple[str, str], str] = field(default_factory=dict)


def _pool(folds: Sequence[Evaluation]) -> Evaluation:
    ids = [[f"Fold{k} {query}" for query in fold.query_ids] for k, fold in enumerate(folds, start=1)]
    pairs = zip(folds, ids, strict=True)
    return together([replace(fold, query_ids=np.array(names, dtype=object)) for fold, names in pairs])


def dense(weights: Mapping[str, float] | None, names: Sequence[str]) -> FloatArray:
    """The inverse of :func:`ranksieve.model.linear.nonzero_weights`; NaN without weights."""
    if weights is None:
        return np.full(len(names), np.nan)
    return np.array([weights.get(name, 0.0) for name in names])


MOST_NAMED = 3
FOLD_FILE = re.compile(r"Fold(\d+)\.jsonl")
PARTS = {
    "fit": {"point", "random_state", "parameters", "validation", "seconds", "weights", "certificate"},
    "chosen": {"select", "random_state", "point", "validation"},
    "tested": {"point", "random_state", "query_ids", "test"},
}  # fmt: skip


def load_results(folder: str | os.PathLike[str]) -> Results:
    """Read a folder that :func:`ranksieve.bench` wrote, finished or not."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: there is no such folder; expected the results of ranksieve bench")
    folders = [_data_set(path) for path in sorted(root.iterdir()) if path.is_dir()]
    data_sets = {one.name: one for one in folders if one.methods}
    unfinished = {(one.name, name): why for one in folders for name, why in one.unfinished.items()}
    if not data_sets:
        begun = [f"{name} on {data_set}: {why}" for (data_set, name), why in unfinished.items()]
        how_far = f" ({shortened(begun, MOST_NAMED)}); run bench again to finish it" if begun else ""
        expected = how_far or "; expected the results of ranksieve bench"
        raise DataError(root, None, f"holds no finished method{expected}")
    return Results(root, data_sets, unfinished)


def _data_set(folder: Path) -> DataSetResults:
    methods: dict[str, Sequence[MethodFold]] = {}
    unfinished = {}
    for path in _in_table_order(folder):
        folds = [read_fold(file) for file in _fold_files(path)]
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
    paths = [path for path in folder.iterdir() if path.is_dir() and path.name != STUDIES_FOLDER]
    return sorted(paths, key=lambda path: (order.get(path.name, len(order)), path.name))


def _fold_files(folder: Path) -> list[Path]:
    named = {path: FOLD_FILE.fullmatch(path.name) for path in folder.glob("Fold*.jsonl")}
    numbers = {path: int(match[1]) for path, match in named.items() if match and is_begun(path)}
    return sorted(numbers, key=lambda path: numbers[path])


def read_fold(file: Path) -> MethodFold:
    """What a file says of one method on one fold."""
    header, rows = read_journal(file)
    by_kind: dict[str, list[Entry]] = {kind: [] for kind in PARTS}
    for number, row in enumerate(rows, start=2):
        _check_row(file, number, row)
        if row["kind"] == "chosen":
            _check_choice(file, number, row, by_kind["fit"], header["identity"])
        by_kind.setdefault(row["kind"], []).append(row)
    choices, tested = ({row["random_state"]: row for row in by_kind[kind]} for kind in ("chosen", "tested"))
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
    """Refuse a choice that is not the best on valid of the whole grid with its seed."""
    select, seed = row["select"], row["random_state"]
    n_fits = sum(fit["random_state"] == seed for fit in fits)
    if n_fits < len(identity["grid"]) or best_on_valid(fits, select, seed)["point"] != row["point"]:
        raise damaged(file, line, f"the chosen point {row['point']} is not the best on valid by {select}")


def _study_rows(file: Path) -> dict[str, Entry]:
    return {row["kind"]: row for row in read_journal(file)[1]}
