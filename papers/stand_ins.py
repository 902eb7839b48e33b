"""Synthetic stand-ins for collections that may not be redistributed, and the measurements on them.

A stand-in has the same number of queries, documents, features, label levels and relevant documents per query
as the collection; features and labels are random. Use stand-ins for claims about time, sparsity and
convergence, not about accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from papers.studies.base import ModelSelector, timed_fit
from papers.studies.fsmrank import problem_of, subgradient_descent
from ranksieve._types import IntArray
from ranksieve.baselines import CSListMLE, ProxRank, TGRank
from ranksieve.data.dataset import Dataset
from ranksieve.errors import lookup
from ranksieve.experiment.journal import Entry, Journal, check_resumable, has_header, read_journal, write_lock
from ranksieve.experiment.tables import Cell, ResultTable, text_cell
from ranksieve.io.folds import Fold, deal_folds
from ranksieve.methods import decades
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.rankers import FenchelRank, FSMRank, MinBatSRank, SparseListMLE, SparseRankSVM
from ranksieve.rankers.base import Ranker
from ranksieve.synthetic import labels_of_best, noisy_scores, planted_features

STAND_INS_FOLDER = "stand_ins"  # in a results folder
N_INFORMATIVE = 10
NOISE, CORRELATION = 0.5, 0.5
PROFILE = "letor"
N_ALPHAS = 25
MAX_ITER = 50  # up to 1000 in the papers; fewer here, because there are nine collections
SUBGRADIENT_ITER, STEPS = 30, (2.0, 8.0)
N_EPOCHS = 5
ALPHA_FACTORS = (3.0, 1.0)  # for the concave penalties
LISTMLE_ALPHA = 1e-2


@dataclass(frozen=True)
class Shape:
    """Shape of a collection; its stand-in has 1/``divisor`` of the queries."""

    n_queries: int
    n_docs: int
    n_features: int
    n_levels: int
    relevant: float  # documents per query with a label above 0
    divisor: int = 1


# LETOR 3.0 and MQ2007: Table III of Laporte et al. 2014. With two label levels, the number of relevant
# documents follows from preferences / documents. MSLR-WEB10K and set 1 of Yahoo's challenge: their web pages.
SHAPES = {
    "TD2003": Shape(50, 49_058, 64, 2, 8.2),
    "TD2004": Shape(75, 74_146, 64, 2, 14.8),
    "HP2003": Shape(150, 147_606, 64, 2, 1.23),
    "HP2004": Shape(75, 74_409, 64, 2, 1.08),
    "NP2003": Shape(150, 148_657, 64, 2, 1.01),
    "NP2004": Shape(75, 73_834, 64, 2, 1.03),
    "MQ2007": Shape(1_692, 69_623, 46, 3, 10.6),
    "MSLR": Shape(10_000, 1_200_192, 136, 5, 57.5, divisor=20),
    "Yahoo": Shape(29_921, 709_877, 519, 5, 17.5, divisor=40),
}


def make_stand_in(name: str, random_state: int = 0) -> Dataset:
    """Make the stand-in for a collection in SHAPES, bit-identical for the same ``random_state``.

    Features are drawn as in :func:`ranksieve.make_ranking`, in correlated blocks, scaled to [0, 1] within
    each query. Relevant documents are the best by a planted linear score with noise. With more than two label
    levels, a share of 0.4 of them has label 2 or more, 0.4 of these label 3 or more, and so on.
    """
    shape = lookup(SHAPES, name, "name")
    rng = np.random.default_rng(random_state)
    n_queries = shape.n_queries // shape.divisor
    sizes = split_evenly(rng, shape.n_docs // shape.divisor, n_queries)
    d = shape.n_features
    X, truth = planted_features(rng, sizes, d, N_INFORMATIVE, d // 20, CORRELATION)
    relevant = split_evenly(rng, round(shape.relevant * n_queries), n_queries).astype(np.float64)
    y = labels_of_best(noisy_scores(rng, X, truth, NOISE), sizes, relevant, shape.n_levels)
    return Dataset(X, y, np.repeat(np.arange(1, n_queries + 1), sizes), truth=truth)


def split_evenly(rng: np.random.Generator, total: int, n: int) -> IntArray:
    """Return n integers that differ by at most one and add up to ``total``, in random order."""
    return rng.permutation(total // n + (np.arange(n) < total % n))


def measure_stand_in(name: str) -> dict[str, Any]:
    """Measure iterations, seconds and sparsity of each method on a stand-in.

    α is selected on the ℓ1 path with validation data. FenchelRank gets the radius of that solution, so
    FenchelRank, TGRank and SparseRank solve the same problem. The other methods select among a few values.
    """
    data = make_stand_in(name)
    fold = deal_folds(data, 5)[0]
    selector, train = ModelSelector(fold, PROFILE), fold.train
    path = sparse_path(train, n_alphas=N_ALPHAS)
    best = int(np.argmax(selector.validation_means(path.coefs)))
    alpha, radius = float(path.alphas[best]), float(np.abs(path.coefs[best]).sum())
    n_pairs = make_objective(train).loss.normaliser
    candidates: dict[str, list[Ranker]] = {
        "RankSVM-ℓ1": [SparseRankSVM("l1", alpha)],
        "RankSVM-log": [SparseRankSVM("log", alpha * factor) for factor in ALPHA_FACTORS],
        "RankSVM-ℓ0.5": [SparseRankSVM("lp", alpha * factor) for factor in ALPHA_FACTORS],
        "FenchelRank": [FenchelRank(radius, max_iter=MAX_ITER)],
        "TGRank": [TGRank(alpha, max_iter=MAX_ITER)],
        "SparseRank": [ProxRank(alpha, max_iter=MAX_ITER)],
        "MinBatSRank": [
            MinBatSRank(alpha * n_pairs * N_EPOCHS, 2.0**k, n_epochs=N_EPOCHS) for k in (1, -2, -5, -8)
        ],
        "FSMRank": [FSMRank(weight, 1e-3) for weight in decades(-3, -4)],
        "Sparse CS-ListMLE": [SparseListMLE(LISTMLE_ALPHA, max_iter=MAX_ITER)],
        "CS-ListMLE": [CSListMLE(max_iter=MAX_ITER)],
    }
    runs = {title: _best_run(rankers, fold, selector) for title, rankers in candidates.items()}
    size = {"queries": data.n_queries, "documents": data.n_docs, "pairs": n_pairs}
    levels = {"features": data.n_features, "levels": len(np.unique(data.y))}
    return {"shape": size | levels, "alpha": alpha, "runs": runs, "subgradient": _subgradient(fold, runs)}


def _best_run(rankers: list[Ranker], fold: Fold, selector: ModelSelector) -> dict[str, Any]:
    fits = [timed_fit(ranker, fold.train) for ranker in rankers]
    best = int(np.argmax(selector.validation_means([ranker.coef_ for ranker, _ in fits])))
    ranker, seconds = fits[best]
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
    best = min(traces, key=lambda trace: min(trace.objective))
    return {
        "FSMRank": {"objective": ranker.objective_, "seconds": seconds},
        "subgradient": {"objective": min(best.objective), "seconds": best.seconds[-1]},
    }


def run_stand_in(folder: Path, name: str) -> None:
    """Measure a stand-in, unless its file already contains the result."""
    path = stand_in_file(folder, name)
    with write_lock(path):
        journal = Journal(path, _identity(name), {"title": f"Stand-in for {name}"})
        if not journal.rows:
            journal.append({"kind": "stand_ins", **measure_stand_in(name)})


def check_stand_in(folder: Path, name: str) -> None:
    """Raise an error if the results file was written with other settings."""
    check_resumable(stand_in_file(folder, name), _identity(name), folder)


def stand_in_file(folder: Path, name: str) -> Path:
    return folder / STAND_INS_FOLDER / f"{name}.jsonl"


def _identity(name: str) -> dict[str, Any]:
    return {"stand_in": name, "shape": vars(SHAPES[name]), "max_iter": MAX_ITER}


def load_stand_ins(folder: Path) -> dict[str, Entry]:
    """The results of the stand-ins in a results folder, by name."""
    paths = [path for path in sorted((folder / STAND_INS_FOLDER).glob("*.jsonl")) if has_header(path)]
    rows_by_name = {path.stem: read_journal(path)[1] for path in paths}
    return {name: rows[0] for name, rows in rows_by_name.items() if rows}


def stand_in_table(folder: Path) -> ResultTable | None:
    """Table of the stand-ins with one column per method; None without results."""
    results = load_stand_ins(folder)
    results = {name: results[name] for name in SHAPES if name in results}
    if not results:
        return None
    methods = list(next(iter(results.values()))["runs"])
    rows = tuple(
        (
            text_cell(_label(name)),
            text_cell(_shape_text(row)),
            *(_run_cell(row["runs"][method]) for method in methods),
        )
        for name, row in results.items()
    )
    return ResultTable(
        "stand_ins",
        "Stand-ins for other collections: iterations, seconds and sparsity",
        ("stand-in for", "shape", *methods),
        rows,
        "Synthetic data with the shapes of the collections (queries × documents × features, levels) and "
        "planted features; some with fewer queries, as given in the name. Not for conclusions about "
        "accuracy. Cells: iterations / seconds / sparsity of one fit to three fifths of the queries, α "
        f"selected on another fifth; at most {MAX_ITER} iterations of FenchelRank, TGRank, SparseRank and "
        f"ListMLE (papers: up to 1000), {N_EPOCHS} passes of MinBatSRank.",
    )


def _label(name: str) -> str:
    divisor = SHAPES[name].divisor
    return name if divisor == 1 else f"{name}, queries / {divisor}"


def _shape_text(row: Entry) -> str:
    shape = row["shape"]
    return f"{shape['queries']:,} × {shape['documents']:,} × {shape['features']}, {shape['levels']}"


def _run_cell(run: Entry) -> Cell:
    return text_cell(f"{run['n_iter']} / {run['seconds']:.2g} / {run['sparsity']:.2f}")
