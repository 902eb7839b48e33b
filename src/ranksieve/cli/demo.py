"""ranksieve demo: from synthetic data with a planted truth to a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import progress, table, words

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation

SHARES = (0.6, 0.2)  # of the queries, for training and validation; the rest is the test set
PARTS = ("train.txt", "vali.txt", "test.txt")
METRIC, OTHER_METRIC, PROFILE, MAX_FEATURES = "ndcg@10", "map", "standard", 10


@command("ranksieve demo", "ranksieve demo --random-state 7 -o results")
def demo(
    *,
    random_state: Annotated[int, opt.value("Data", "N", "Seed of the synthetic data.", min=0)] = 0,
    output: Annotated[str, opt.written("DIR", "The folder for data, model and page.")] = ".",
    report: Annotated[opt.Text, opt.value("Output", "FILE", "The HTML page.", "report.html in DIR")] = None,
) -> None:
    """Plant a few features in synthetic data and find them again.

    Writes the data as train.txt, vali.txt and test.txt, a model file and, with the extra "report"
    installed, a page about it.
    """
    import numpy as np

    from ranksieve._util.files import make_folder
    from ranksieve.cli.fit_output import feature_strength, how_chosen
    from ranksieve.report import build_content, require_extra, write_report

    make_folder(output)
    page, model_file = Path(report or Path(output, "report.html")), Path(output, "model.json")
    data_files = [Path(output, name) for name in PARTS]
    opt.check_files([], page, model_file, *data_files)
    data = rs.make_ranking(random_state=random_state)
    truth, (train, valid, test) = np.asarray(data.truth), split_queries(data, random_state)
    words(
        f"Synthetic data: {data.n_docs} documents, {data.n_queries} queries, {data.n_features} features, "
        f"of which {np.count_nonzero(truth)} matter."
    )
    for part, file in zip((train, valid, test), data_files, strict=True):
        rs.io.write_letor(part, file)
    words(f"Wrote {', '.join(map(str, data_files))}.")
    ranker = rs.SparseRanker(MAX_FEATURES, METRIC, profile=PROFILE)
    started = time.perf_counter()
    with progress("fitting the data") as bar:
        ranker.fit(train, valid=valid, progress=bar)
    seconds = time.perf_counter() - started
    evaluations = measure(ranker, train, test)
    choice = how_chosen(ranker, train, f"{valid.n_queries} validation queries")
    _show(ranker, choice, evaluations, truth, seconds)
    ranker.to_model().save(model_file)
    words(f"Wrote {model_file}.")
    try:
        require_extra()
    except ImportError as error:
        words(f"No page: {error}")
        return
    content = build_content(
        ranker, title="Synthetic data with planted features", choice=choice, evaluations=evaluations,
        truth=truth, support=feature_strength(ranker, train), gains=_gains(evaluations),
    )  # fmt: skip
    write_report(content, page)
    words(f"Wrote {page}: open it in a browser.")


def split_queries(data: rs.Dataset, seed: int) -> tuple[rs.Dataset, rs.Dataset, rs.Dataset]:
    """Split the queries at random into training, validation and test data."""
    import numpy as np

    shuffled = np.random.default_rng(seed).permutation(data.n_queries)
    cuts = np.cumsum([round(share * data.n_queries) for share in SHARES])
    train, valid, test = (data.select_queries(np.sort(part)) for part in np.split(shuffled, cuts))
    return train, valid, test


def measure(ranker: rs.SparseRanker, train: rs.Dataset, test: rs.Dataset) -> dict[str, Evaluation]:
    """The chosen ranker and the densest point of the whole path on the test queries."""
    import numpy as np

    from ranksieve.model.linear import linear_scores_of_models

    coefs = np.stack([ranker.coef_, rs.sparse_path(train).coefs[-1]])
    sizes, scores = np.count_nonzero(coefs, axis=1), linear_scores_of_models(test.X, coefs).T
    return {
        f"test, {label} ({size} features)": rs.evaluate(s, test, [METRIC, OTHER_METRIC], PROFILE)
        for label, size, s in zip(("chosen model", "densest model"), sizes, scores, strict=True)
    }


def _gains(evaluations: dict[str, Evaluation]) -> Any:
    """The chosen model against the densest one, query by query."""
    from ranksieve.report import Gains

    ours, theirs = evaluations.values()
    densest = list(evaluations)[1].removeprefix("test, ")
    return Gains(
        METRIC,
        f"on {len(ours.query_ids)} test queries",
        f"the {densest}",
        ours.query_ids.tolist(),
        theirs.per_query[METRIC],
        {"chosen": ("Chosen model", ours.per_query[METRIC])},
    )


def _show(
    ranker: rs.SparseRanker, choice: str, evaluations: dict[str, Evaluation], truth: Any, seconds: float
) -> None:
    from ranksieve.report import planted_features
    from ranksieve.report.choice_words import choice_sentences, optimality

    planted = planted_features(truth, ranker)
    features = (("found", planted.found), ("missed", planted.missed), ("in addition", planted.extra))
    rows = [(label, len(names), ", ".join(names) or "none") for label, names in features]
    words(f"Choice: the best held-out {METRIC} with at most {MAX_FEATURES} features.")
    for sentence in choice_sentences(ranker, choice):
        words(sentence)
    table(["planted features", "", "which"], rows)
    metrics = (METRIC, OTHER_METRIC)
    means = [(label, *(f"{e.mean[m]:.4f}" for m in metrics)) for label, e in evaluations.items()]
    table([f"{PROFILE} profile", *metrics], means)
    model = ranker.to_model()
    words(optimality(model.certificate, model.parameters))
    words(f"Time: {len(ranker.choice_.coefs)} models in {seconds:.2f} seconds.")
