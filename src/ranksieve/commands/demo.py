"""demo: from synthetic data with a planted truth to a report."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.commands.files import check_outputs
from ranksieve.commands.fit_page import support_of
from ranksieve.commands.fitting import run
from ranksieve.commands.show import table, words
from ranksieve.data.dataset import Dataset
from ranksieve.estimators import SparseRanker
from ranksieve.generators.ranking import make_ranking
from ranksieve.metrics import Evaluation, evaluate
from ranksieve.model import linear_scores_of_models
from ranksieve.path import sparse_path
from ranksieve.report import (
    Content,
    Gains,
    Planted,
    build_content,
    certificate,
    planted_features,
    require_extra,
    write_report,
)

SHARES = (0.6, 0.2)  # of the queries, for training and validation; the rest is the test set
METRIC, PROFILE, BUDGET = "ndcg@10", "standard", 10
METRICS = (METRIC, "map")


def run_demo(seed: int, folder: str, report: str | None) -> None:
    """Plant features, find them again, show and write what came out."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    page, model_file = Path(report or Path(folder, "report.html")), Path(folder, "model.json")
    check_outputs([page, model_file])
    data = make_ranking(seed=seed)
    truth, (train, valid, test) = np.asarray(data.truth), split_queries(data, seed)
    words(
        f"Synthetic data: {data.n_docs} documents, {data.n_queries} queries, {data.n_features} features, "
        f"of which {np.count_nonzero(truth)} matter."
    )
    started = time.perf_counter()
    ranker = SparseRanker(BUDGET, METRIC, profile=PROFILE)
    run(ranker, train, {"valid": valid, "progress": None})
    seconds = time.perf_counter() - started
    evaluations = measure(ranker, train, test)
    _show(ranker, evaluations, planted_features(truth, ranker), seconds)
    ranker.to_model().save(model_file)
    words(f"Wrote {model_file}.")
    try:
        require_extra()
    except ImportError as error:
        words(f"No page: {error}")
        return
    choice = f"on {valid.n_queries} held-out queries"
    write_report(_content(ranker, train, evaluations, truth, choice), page)
    words(f"Wrote {page}: open it in a browser.")


def _content(
    ranker: SparseRanker,
    train: Dataset,
    evaluations: dict[str, Evaluation],
    truth: FloatArray,
    choice: str,
) -> Content:
    ours, theirs = evaluations.values()
    n_test, densest = len(ours.query_ids), list(evaluations)[1]
    gains = Gains(
        METRIC,
        f"on {n_test} test queries",
        f"the {densest.removeprefix('test, ')}",
        ours.query_ids.tolist(),
        theirs.per_query[METRIC],
        {"chosen": ("Chosen model", ours.per_query[METRIC])},
    )
    return build_content(
        ranker,
        title="Synthetic data with planted features",
        choice=choice,
        evaluations=evaluations,
        truth=truth,
        support=support_of(ranker, train),
        gains=gains,
    )


def split_queries(data: Dataset, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Deal the queries at random into training, validation and test data."""
    shuffled = np.random.default_rng(seed).permutation(data.n_queries)
    cuts = np.cumsum([round(share * data.n_queries) for share in SHARES])
    train, valid, test = (data.select_queries(np.sort(part)) for part in np.split(shuffled, cuts))
    return train, valid, test


def measure(ranker: SparseRanker, train: Dataset, test: Dataset) -> dict[str, Evaluation]:
    """The chosen ranker and the densest point of the whole path on the test queries."""
    coefs = np.stack([ranker.coef_, sparse_path(train).coefs[-1]])
    sizes, scores = np.count_nonzero(coefs, axis=1), linear_scores_of_models(test.X, coefs).T
    return {
        f"test, {label} ({size} features)": evaluate(s, test, METRICS, PROFILE)
        for label, size, s in zip(("chosen model", "densest model"), sizes, scores, strict=True)
    }


def _show(ranker: SparseRanker, evaluations: dict[str, Evaluation], planted: Planted, seconds: float) -> None:
    rows = (("found", planted.found), ("missed", planted.missed), ("in addition", planted.extra))
    words(f"Choice: the best validation {METRIC} with at most {BUDGET} features.")
    table(
        ["planted features", "", "which"],
        [(label, len(names), ", ".join(names) or "none") for label, names in rows],
    )
    metrics = list(next(iter(evaluations.values())).mean)
    table(
        [f"{PROFILE} profile", *metrics],
        [(label, *(f"{e.mean[m]:.4f}" for m in metrics)) for label, e in evaluations.items()],
    )
    proof = ranker.to_model().certificate
    words(f"Certificate: the objective {proof['objective']:.6g} is {certificate(proof['relative_gap'])}.")
    words(f"Time: {len(ranker.path_)} models in {seconds:.2f} seconds.")
