"""Results of experiments: test values of each method on each data set and fold, and the results folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve._types import BoolArray, FloatArray, PathLike
from ranksieve.choice.decide import best
from ranksieve.errors import DataError, short_list
from ranksieve.experiment.journal import Entry, damaged_line, has_header, read_journal
from ranksieve.methods import METHODS
from ranksieve.metrics import Evaluation
from ranksieve.metrics.evaluate import join_evaluations, summarise
from ranksieve.metrics.profiles import as_profile
from ranksieve.show.formats import join_names
from ranksieve.show.result import Part, Shown
from ranksieve.show.upwards import report_function

STUDIES_FOLDER = "studies"  # in the folder of a data set, next to the folders of its methods
TABLE_METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map")
SPARSITY_MEASURES = ("sparsity", "density", "n_selected")


def best_on_valid(fits: Sequence[Entry], select: str, seed: int | None) -> Entry:
    """Return the best fit with this seed by a metric on validation data, ties broken by grid order."""
    candidates = sorted(
        (row for row in fits if row["random_state"] == seed), key=lambda row: int(row["point"])
    )
    values = np.array([[row["validation"][select]] for row in candidates])
    return candidates[best(values, np.zeros(len(candidates)))]


@dataclass(frozen=True, eq=False)
class SeedResult:
    """The selected model of one seed and its test values; the weights of a nonlinear ranker are NaN."""

    parameters: Mapping[str, Any]
    validation: float
    seconds: float
    test: Evaluation
    coef: FloatArray
    varying: BoolArray

    @property
    def n_selected(self) -> float:
        """Number of nonzero weights; NaN for a nonlinear ranker."""
        return len(self.coef) * self.sparsity

    @property
    def sparsity(self) -> float:
        """As the papers measure it: nonzero weights / all features; NaN for a nonlinear ranker."""
        return _nonzero_share(self.coef)

    @property
    def density(self) -> float:
        """Features in use / features that vary within some query: no other can be of use; NaN as above."""
        return _nonzero_share(self.coef[self.varying])

    def to_row(self) -> dict[str, float]:
        """Return the test metrics and SPARSITY_MEASURES."""
        return {**self.test.mean, **{name: float(getattr(self, name)) for name in SPARSITY_MEASURES}}


def _nonzero_share(coef: FloatArray) -> float:
    return float("nan") if np.isnan(coef).any() else float(np.mean(coef != 0))


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Results of one method on one fold, one per seed."""

    seed_results: tuple[SeedResult, ...]
    grid_seconds: float

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Selected parameters of the first seed."""
        return self.seed_results[0].parameters

    @property
    def validation(self) -> float:
        """Validation value of the selected model of the first seed."""
        return self.seed_results[0].validation

    @property
    def coef(self) -> FloatArray:
        """Weights of the selected model of the first seed."""
        return self.seed_results[0].coef

    @cached_property
    def test(self) -> Evaluation:
        """Test values of each query, averaged over the seeds."""
        first, names = self.seed_results[0].test, self.seed_results[0].test.per_query
        values = {
            name: np.mean([result.test.per_query[name] for result in self.seed_results], axis=0)
            for name in names
        }
        return summarise(values, first.query_ids, first.profile, first.empty)

    def mean(self, name: str) -> float:
        """Mean over the seeds of one of SPARSITY_MEASURES, or of the seconds of the selected fit."""
        return float(np.mean([getattr(result, name) for result in self.seed_results]))


@dataclass(frozen=True, eq=False)
class MethodResult:
    """All folds of one method on one data set."""

    folds: tuple[FoldResult, ...]

    @property
    def n_seeds(self) -> int:
        return min(len(fold.seed_results) for fold in self.folds)

    def mean(self, metric: str) -> float:
        """Mean over folds of the mean over queries of a test metric."""
        return float(np.mean([fold.test.mean[metric] for fold in self.folds]))

    def pooled(self, metric: str) -> FloatArray:
        """Test values of the queries of all folds."""
        return np.concatenate([fold.test.per_query[metric] for fold in self.folds])

    def to_row(self) -> dict[str, float]:
        """Return metrics and sparsity averaged over folds, and seconds summed over folds."""
        means = {metric: self.mean(metric) for metric in self.folds[0].test.mean}
        shares = {
            name: float(np.mean([fold.mean(name) for fold in self.folds])) for name in SPARSITY_MEASURES
        }
        fit_seconds = sum(fold.mean("seconds") for fold in self.folds)
        grid_seconds = sum(fold.grid_seconds for fold in self.folds)
        return {**means, **shares, "fit_seconds": fit_seconds, "grid_seconds": grid_seconds}

    def spread(self) -> dict[str, float]:
        """Return the standard deviations over seeds of the means in ``to_row``; empty for one seed."""
        if self.n_seeds < 2:
            return {}
        rows = [[fold.seed_results[k].to_row() for fold in self.folds] for k in range(self.n_seeds)]
        return {
            name: float(np.std([np.mean([row[name] for row in of_seed]) for of_seed in rows], ddof=1))
            for name in rows[0][0]
        }


@dataclass(frozen=True, eq=False)
class MethodFold:
    """The results file of one method on one fold: header, fits, and the choice and test row of each seed."""

    header: Entry
    fits: Sequence[Entry]
    choices: Mapping[int | None, Entry]
    tested: Mapping[int | None, Entry]

    @property
    def finished(self) -> bool:
        """Whether every seed has a choice and a test row."""
        return self.choices.keys() == self.tested.keys() == set(self.header["identity"]["seeds"])

    @cached_property
    def chosen(self) -> Entry | None:
        """Parameters, weights, certificate and test values of the selected model of the first seed."""
        if not self.finished:
            return None
        choice = self.choices[self.header["identity"]["seeds"][0]]
        return {**self._fit_of(choice), **self.tested[choice["random_state"]], **choice}

    @property
    def result(self) -> FoldResult:
        """Results of the selected models."""
        chosen = [self.choices[seed] for seed in self.header["identity"]["seeds"]]
        return FoldResult(tuple(map(self._seed_result, chosen)), sum(row["seconds"] for row in self.fits))

    def _fit_of(self, choice: Entry) -> Entry:
        names = ("point", "random_state")
        return next(row for row in self.fits if all(row[name] == choice[name] for name in names))

    def _seed_result(self, choice: Entry) -> SeedResult:
        notes, profile = self.header["notes"], as_profile(self.header["identity"]["profile"])
        fit, tested = self._fit_of(choice), self.tested[choice["random_state"]]
        per_query = {name: np.array(values, dtype=np.float64) for name, values in tested["test"].items()}
        ids = np.array(tested["query_ids"], dtype=object)
        return SeedResult(
            fit["parameters"],
            choice["validation"],
            fit["seconds"],
            summarise(per_query, ids, profile, profile.empty),
            dense_weights(fit["weights"], notes["features"]),
            np.array(notes["varying"]),
        )


@dataclass(frozen=True, eq=False)
class DataSetResults:
    """Finished methods on one data set, unfinished ones with their progress, and the studies of each fold."""

    name: str
    methods: Mapping[str, Sequence[MethodFold]]
    unfinished: Mapping[str, str]
    studies: Sequence[Mapping[str, Entry]]

    @cached_property
    def results(self) -> dict[str, MethodResult]:
        """Results of each finished method."""
        return {
            name: MethodResult(tuple(fold.result for fold in folds)) for name, folds in self.methods.items()
        }

    @cached_property
    def pooled(self) -> dict[str, Evaluation]:
        """Test values of the queries of all folds, as one evaluation per method, for paired tests."""
        return {name: _pool([fold.test for fold in result.folds]) for name, result in self.results.items()}

    @property
    def header(self) -> Entry:
        """Header of the first results file; all have the same data set and software."""
        return next(iter(self.methods.values()))[0].header

    @property
    def features(self) -> list[str]:
        return list(self.header["notes"]["features"])

    @property
    def n_queries(self) -> int:
        """Number of test queries in all folds."""
        return len(next(iter(self.pooled.values())).query_ids)


@dataclass(frozen=True, eq=False, repr=False)
class Results(Shown):
    """The content of a results folder.

    ``unfinished`` maps (data set, method) to the progress of each method that is left out.
    """

    folder: Path
    data_sets: Mapping[str, DataSetResults]
    unfinished: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def report(self, path: PathLike, baseline: str | None = None) -> None:
        """Write the page that ``ranksieve tables --report`` writes."""
        report_function("calls.report_results")(self, path, baseline)

    def _line(self) -> str:
        methods = dict.fromkeys(name for one in self.data_sets.values() for name in one.methods)
        more = f", {len(self.unfinished)} unfinished" if self.unfinished else ""
        return f"{join_names(list(methods))} on {join_names(list(self.data_sets))}{more}"

    def shown(self) -> Sequence[Part]:
        """The tables of accuracy, significance and times."""
        from ranksieve.experiment.tables import all_tables, main_parts

        return list(main_parts(all_tables(self)))

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Means over folds of every metric on test data, one row per data set and method."""
        rows = [
            {"data_set": one.name, "method": name, **result.to_row()}
            for one in self.data_sets.values()
            for name, result in one.results.items()
        ]
        return {
            name: [row.get(name) for row in rows] for name in dict.fromkeys(n for row in rows for n in row)
        }


def _pool(folds: Sequence[Evaluation]) -> Evaluation:
    ids = [[f"Fold{k} {query}" for query in fold.query_ids] for k, fold in enumerate(folds, start=1)]
    pairs = zip(folds, ids, strict=True)
    return join_evaluations([replace(fold, query_ids=np.array(names, dtype=object)) for fold, names in pairs])


def dense_weights(weights: Mapping[str, float] | None, names: Sequence[str]) -> FloatArray:
    """Invert :func:`ranksieve.model.linear.nonzero_weights`; all NaN if ``weights`` is None."""
    if weights is None:
        return np.full(len(names), np.nan)
    return np.array([weights.get(name, 0.0) for name in names])


FOLD_FILE = re.compile(r"Fold(\d+)\.jsonl")
ROW_FIELDS = {
    "fit": {"point", "random_state", "parameters", "validation", "seconds", "weights", "certificate"},
    "chosen": {"select", "random_state", "point", "validation"},
    "tested": {"point", "random_state", "query_ids", "test"},
}  # fmt: skip


def load_results(folder: str | os.PathLike[str]) -> Results:
    """Read a folder that :func:`ranksieve.bench` wrote, finished or not."""
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{root}: no such folder; expected the results of ranksieve bench")
    folders = [_read_data_set(path) for path in sorted(root.iterdir()) if path.is_dir()]
    data_sets = {results.name: results for results in folders if results.methods}
    unfinished = {
        (results.name, name): progress for results in folders for name, progress in results.unfinished.items()
    }
    if not data_sets:
        started = [f"{name} on {data_set}: {progress}" for (data_set, name), progress in unfinished.items()]
        progress = f" ({short_list(started, 3)}); run bench again to finish it" if started else ""
        hint = progress or "; expected the results of ranksieve bench"
        raise DataError(root, None, f"contains no finished method{hint}")
    return Results(root, data_sets, unfinished)


def _read_data_set(folder: Path) -> DataSetResults:
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
    """Return the folders of the methods in the order of the table METHODS; other names come last."""
    order = {name: k for k, name in enumerate(METHODS)}
    paths = [path for path in folder.iterdir() if path.is_dir() and path.name != STUDIES_FOLDER]
    return sorted(paths, key=lambda path: (order.get(path.name, len(order)), path.name))


def _fold_files(folder: Path) -> list[Path]:
    matches = {path: FOLD_FILE.fullmatch(path.name) for path in folder.glob("Fold*.jsonl")}
    numbers = {path: int(match[1]) for path, match in matches.items() if match and has_header(path)}
    return sorted(numbers, key=lambda path: numbers[path])


def read_fold(file: Path) -> MethodFold:
    """Read the results file of one method on one fold."""
    header, rows = read_journal(file)
    by_kind: dict[str, list[Entry]] = {kind: [] for kind in ROW_FIELDS}
    for number, row in enumerate(rows, start=2):
        _check_row(file, number, row)
        if row["kind"] == "chosen":
            _check_choice(file, number, row, by_kind["fit"], header["identity"])
        by_kind.setdefault(row["kind"], []).append(row)
    choices, tested = ({row["random_state"]: row for row in by_kind[kind]} for kind in ("chosen", "tested"))
    return MethodFold(header, by_kind["fit"], choices, tested)


def _check_row(file: Path, line: int, row: Entry) -> None:
    """Raise an error if a field is missing, or a metric does not have one value per query."""
    missing = sorted(ROW_FIELDS.get(row["kind"], set()) - row.keys())
    if missing:
        raise damaged_line(file, line, f"no {missing[0]}")
    lengths = {len(values) for values in row.get("test", {}).values()}
    if lengths - {len(row.get("query_ids", ()))}:
        raise damaged_line(file, line, "a metric does not have one value per query")


def _check_choice(
    file: Path, line: int, row: Entry, fits: Sequence[Entry], identity: Mapping[str, Any]
) -> None:
    """Raise an error if the chosen point is not the best of the whole grid on validation data."""
    select, seed = row["select"], row["random_state"]
    n_fits = sum(fit["random_state"] == seed for fit in fits)
    if n_fits < len(identity["grid"]) or best_on_valid(fits, select, seed)["point"] != row["point"]:
        raise damaged_line(
            file, line, f"the chosen point {row['point']} is not the best on validation data by {select}"
        )


def _study_rows(file: Path) -> dict[str, Entry]:
    return {row["kind"]: row for row in read_journal(file)[1]}
