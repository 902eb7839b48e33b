"""ranksieve demo: fit synthetic data with known relevant features and write a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, progress, table

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation

SPLIT_SHARES = (0.6, 0.2)  # training and validation queries; the rest are test queries
DATA_FILES = ("train.txt", "vali.txt", "test.txt")
METRIC, OTHER_METRIC, PROFILE, MAX_FEATURES = "ndcg@10", "map", "standard", 10


@command("ranksieve demo", "ranksieve demo --random-state 7 -o results")
def demo(
    *,
    random_state: Annotated[int, opt.value("Data", "N", "Random seed of the data.", min=0)] = 0,
    output: Annotated[str, opt.output_option("DIR", "Folder for data, model and page.")] = ".",
    report: Annotated[opt.Text, opt.value("Output", "FILE", "The HTML page.", "report.html in DIR")] = None,
) -> None:
    """Generate data with known relevant features and find them.

    Writes the data as train.txt, vali.txt and test.txt, a model file and, if the extra "report" is installed,
    an HTML page.
    """
    import numpy as np

    from ranksieve._util.files import make_folder
    from ranksieve.report import build_content, require_extra, write_report
    from ranksieve.report.calls import feature_strength
    from ranksieve.show.fit import selection_text

    make_folder(output)
    page, model_file = Path(report or Path(output, "report.html")), Path(output, "model.json")
    data_files = [Path(output, name) for name in DATA_FILES]
    opt.check_files([], page, model_file, *data_files)
    data = rs.make_ranking(random_state=random_state)
    truth, (train, valid, test) = np.asarray(data.truth), split_queries(data, random_state)
    print_text(
        f"Synthetic data: {data.n_docs} documents, {data.n_queries} queries, {data.n_features} features, "
        f"{np.count_nonzero(truth)} of them relevant."
    )
    for part, file in zip((train, valid, test), data_files, strict=True):
        rs.io.write_letor(part, file)
    print_text(f"Wrote {', '.join(map(str, data_files))}.")
    ranker = rs.SparseRanker(MAX_FEATURES, METRIC, profile=PROFILE)
    started = time.perf_counter()
    with progress("fitting the data") as bar:
        ranker.fit(train, valid=valid, progress=bar)
    seconds = time.perf_counter() - started
    evaluations = measure(ranker, train, test)
    choice = selection_text(ranker, f"{valid.n_queries} validation queries")
    _show(ranker, choice, evaluations, truth, seconds)
    ranker.to_model().save(model_file)
    print_text(f"Wrote {model_file}.")
    try:
        require_extra()
    except ImportError as error:
        print_text(f"No page written: {error}")
        return
    content = build_content(
        ranker, title="Synthetic data with planted features", choice=choice, evaluations=evaluations,
        truth=truth, support=feature_strength(ranker, train), gains=_gains(evaluations),
    )  # fmt: skip
    write_report(content, page)
    print_text(f"Wrote {page}; open it in a browser.")


def split_queries(data: rs.Dataset, seed: int) -> tuple[rs.Dataset, rs.Dataset, rs.Dataset]:
    """Split the queries at random into training, validation and test data."""
    import numpy as np

    shuffled = np.random.default_rng(seed).permutation(data.n_queries)
    cuts = np.cumsum([round(share * data.n_queries) for share in SPLIT_SHARES])
    train, valid, test = (data.select_queries(np.sort(part)) for part in np.split(shuffled, cuts))
    return train, valid, test


def measure(ranker: rs.SparseRanker, train: rs.Dataset, test: rs.Dataset) -> dict[str, Evaluation]:
    """Evaluate the chosen ranker and the densest model of the path on the test queries."""
    import numpy as np

    from ranksieve.model.linear import linear_scores_of_models

    coefs = np.stack([ranker.coef_, rs.sparse_path(train).coefs[-1]])
    sizes, scores = np.count_nonzero(coefs, axis=1), linear_scores_of_models(test.X, coefs).T
    return {
        f"test, {label} ({size} features)": rs.evaluate(s, test, [METRIC, OTHER_METRIC], PROFILE)
        for label, size, s in zip(("chosen model", "densest model"), sizes, scores, strict=True)
    }


def _gains(evaluations: dict[str, Evaluation]) -> Any:
    """Differences per query between the chosen and the densest model."""
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
    from ranksieve.show.formats import metric_title
    from ranksieve.show.sentences import choice_sentences, optimality

    planted = planted_features(truth, ranker)
    features = (("found", planted.found), ("missed", planted.missed), ("additional", planted.extra))
    rows = [(label, len(names), ", ".join(names) or "none") for label, names in features]
    print_text(f"Selecting the best held-out {metric_title(METRIC)} with at most {MAX_FEATURES} features.")
    for sentence in choice_sentences(ranker, choice):
        print_text(sentence)
    table(["relevant features", "number", "names"], rows)
    metrics = (METRIC, OTHER_METRIC)
    means = [(label, *(f"{e.mean[m]:.4f}" for m in metrics)) for label, e in evaluations.items()]
    table([f"{PROFILE} profile", *map(metric_title, metrics)], means)
    model = ranker.to_model()
    print_text(optimality(model.certificate, model.parameters))
    print_text(f"Fitted {len(ranker.choice_.coefs)} models in {seconds:.2f} seconds.")
