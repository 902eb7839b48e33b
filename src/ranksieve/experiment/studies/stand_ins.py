"""Time, iterations and sparsity on synthetic stand-ins for the collections that the papers use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ranksieve.estimators import (
    CSListMLE,
    FenchelRank,
    FSMRank,
    MinBatSRank,
    SparseListMLE,
    SparseRank,
    SparseRankSVM,
    TGRank,
)
from ranksieve.estimators.linear import LinearRanker
from ranksieve.experiment.cells import Cell, Table, word
from ranksieve.experiment.journal import Entry, Journal, check_begun, only_writer
from ranksieve.experiment.results import Results
from ranksieve.experiment.results_folder import STAND_INS_FOLDER
from ranksieve.experiment.studies.base import Chooser, timed_fit
from ranksieve.experiment.studies.fsmrank import problem_of, subgradient_descent
from ranksieve.formats.folds import Fold, deal_folds
from ranksieve.generators.stand_ins import SHAPES, make_stand_in
from ranksieve.methods import decades
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path

STAND_INS_STUDY = "stand_ins"
PROFILE = "letor"
N_ALPHAS = 25
MAX_ITER = 50  # the papers have up to 1000; a twentieth keeps nine collections short
SUBGRADIENT_ITER, STEPS = 30, (2.0, 8.0)
N_EPOCHS = 5
FACTORS = (3.0, 1.0)  # of α, for the concave penalties
LISTMLE_ALPHA = 1e-2


def measure_stand_in(name: str) -> dict[str, Any]:
    """Each method once, its weight α chosen on the validation part: iterations, seconds, sparsity.

    α is that of the ℓ1 path; FenchelRank has the radius of its solution, so that FenchelRank, TGRank and
    SparseRank solve one problem. The others choose among a few values of their own.
    """
    data = make_stand_in(name)
    fold = deal_folds(data, 5)[0]
    chooser, train = Chooser(fold, PROFILE), fold.train
    path = sparse_path(train, n_alphas=N_ALPHAS)
    best = int(np.argmax(chooser.validation(path.coefs)))
    alpha, radius = float(path.alphas[best]), float(np.abs(path.coefs[best]).sum())
    n_pairs = make_objective(train).loss.normaliser
    single: dict[str, list[LinearRanker]] = {
        "RankSVM-ℓ1": [SparseRankSVM("l1", alpha)],
        "RankSVM-log": [SparseRankSVM("log", alpha * by) for by in FACTORS],
        "RankSVM-ℓ0.5": [SparseRankSVM("lp", alpha * by) for by in FACTORS],
        "FenchelRank": [FenchelRank(radius, max_iter=MAX_ITER)],
        "TGRank": [TGRank(alpha, max_iter=MAX_ITER)],
        "SparseRank": [SparseRank(alpha, max_iter=MAX_ITER)],
        "MinBatSRank": [
            MinBatSRank(alpha * n_pairs * N_EPOCHS, 2.0**k, n_epochs=N_EPOCHS) for k in (1, -2, -5, -8)
        ],
        "FSMRank": [FSMRank(weight, 1e-3) for weight in decades(-3, -4)],
        "Sparse CS-ListMLE": [SparseListMLE(LISTMLE_ALPHA, max_iter=MAX_ITER)],
        "CS-ListMLE": [CSListMLE(max_iter=MAX_ITER)],
    }
    runs = {title: _chosen_run(rankers, fold, chooser) for title, rankers in single.items()}
    shape = {"queries": data.n_queries, "documents": data.n_docs, "pairs": n_pairs}
    levels = {"features": data.n_features, "levels": len(np.unique(data.y))}
    return {"shape": shape | levels, "alpha": alpha, "runs": runs, "subgradient": _subgradient(fold, runs)}


def _chosen_run(rankers: list[LinearRanker], fold: Fold, chooser: Chooser) -> dict[str, Any]:
    fitted = [timed_fit(ranker, fold.train) for ranker in rankers]
    best = int(np.argmax(chooser.validation([ranker.coef_ for ranker, _ in fitted])))
    ranker, seconds = fitted[best]
    return {
        "n_iter": ranker.n_iter_,
        "seconds": seconds,
        "sparsity": np.mean(ranker.coef_ != 0),
        "parameters": {k: v for k, v in ranker.get_params(deep=False).items() if k in ("alpha", "rate")},
    }


def _subgradient(fold: Fold, runs: Mapping[str, Any]) -> dict[str, Any]:
    """Objectives of FSMRank and of the subgradient method after the same number of iterations."""
    alpha = runs["FSMRank"]["parameters"]["alpha"]
    ranker, seconds = timed_fit(FSMRank(alpha, 1e-3, max_iter=SUBGRADIENT_ITER, tol=1e-12), fold.train)
    problem = problem_of(ranker, fold.train)
    traces = [subgradient_descent(problem, step, SUBGRADIENT_ITER) for step in STEPS]
    slow = min(traces, key=lambda trace: min(trace.objective))
    return {
        "FSMRank": {"objective": ranker.objective_, "seconds": seconds},
        "subgradient": {"objective": min(slow.objective), "seconds": slow.seconds[-1]},
    }


def run_stand_in(folder: Path, name: str) -> None:
    """Measure it, unless its file has it already."""
    path = stand_in_file(folder, name)
    with only_writer(path):
        journal = Journal(path, _identity(name), {"title": f"Stand-in for {name}"})
        if not journal.rows:
            journal.append({"kind": STAND_INS_STUDY, **measure_stand_in(name)})


def check_stand_in(folder: Path, name: str) -> None:
    """Refuse a file that is elsewhere, or was begun with other settings."""
    check_begun(stand_in_file(folder, name), _identity(name), folder)


def stand_in_file(folder: Path, name: str) -> Path:
    return folder / STAND_INS_FOLDER / f"{name}.jsonl"


def _identity(name: str) -> dict[str, Any]:
    return {"stand_in": name, "shape": vars(SHAPES[name]), "max_iter": MAX_ITER}


def stand_in_table(results: Results) -> Table | None:
    """One row per stand-in, one column per method."""
    found = {name: results.stand_ins[name] for name in SHAPES if name in results.stand_ins}
    if not found:
        return None
    methods = list(next(iter(found.values()))["runs"])
    rows = tuple(
        (word(_label(name)), word(_shape_words(row)), *(_run_cell(row["runs"][method]) for method in methods))
        for name, row in found.items()
    )
    return Table(
        "stand_ins",
        "Stand-ins for other collections: iterations, seconds and sparsity",
        ("stand-in for", "shape", *methods),
        rows,
        "Synthetic data with the shapes of the collections (queries × documents × features, levels), drawn "
        "with planted features; where queries are fewer by a factor, the name says so. They say nothing of "
        "accuracy. Cells: iterations / seconds / sparsity of one fit to three fifths of the queries, α "
        f"chosen on a fifth; at most {MAX_ITER} iterations of FenchelRank, TGRank, SparseRank and ListMLE "
        f"(the papers have up to 1000), {N_EPOCHS} passes of MinBatSRank.",
    )


def _label(name: str) -> str:
    divisor = SHAPES[name].divisor
    return name if divisor == 1 else f"{name}, queries / {divisor}"


def _shape_words(row: Entry) -> str:
    shape = row["shape"]
    return f"{shape['queries']:,} × {shape['documents']:,} × {shape['features']}, {shape['levels']}"


def _run_cell(run: Entry) -> Cell:
    return word(f"{run['n_iter']} / {run['seconds']:.2g} / {run['sparsity']:.2f}")
