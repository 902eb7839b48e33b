"""Time of one epoch of MinBatSRank: compared with NumPy on built pairs, and by number of documents.

On the training data of OHSUMED Fold1 both make the same updates with the same queries in the same order. The
second part uses queries of 100 documents with 45 features, 10⁴ to 10⁶ documents in total.
"""

from __future__ import annotations

import itertools
import statistics

import numpy as np

from benchmarks.harness import letor_root, save_result, seconds
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor
from ranksieve.kernels.ftrl import Rule
from ranksieve.solvers.ftrl import FtrlPasses, FtrlState

RULE = Rule(l1=256.0, rate=0.0625, smoothing=1.0, feature_wise=True, batch_pairs=0)
SIZES = (10_000, 100_000, 1_000_000)
N_FEATURES, LIST_LENGTH = 45, 100


def ranksieve_epoch(data: Dataset) -> FtrlState:
    state = FtrlState.zeros(data.n_features)
    FtrlPasses.of(data).run(RULE, state)
    return state


def epoch_seconds(data: Dataset, repeats: int) -> float:
    """Median seconds of an epoch that continues the previous ones, after compilation."""
    passes, state = FtrlPasses.of(data), FtrlState.zeros(data.n_features)
    passes.run(RULE, state)
    return statistics.median(seconds(lambda: passes.run(RULE, state), repeats))


def pair_differences(data: Dataset) -> list[FloatArray]:
    """x_i − x_j over the pairs of each query."""
    differences = []
    for lo, hi in itertools.pairwise(data.queries.offsets):
        rows = data.queries.order[lo:hi]
        better, worse = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        differences.append(data.X[rows[better]] - data.X[rows[worse]])
    return differences


def numpy_epoch(differences: list[FloatArray], n_features: int) -> FloatArray:
    """The same updates with built pairs."""
    n, v, w = (np.zeros(n_features) for _ in range(3))
    for K in differences:
        g = -2.0 * (K.T @ np.maximum(0.0, 1.0 - K @ w))
        root, n = np.sqrt(RULE.smoothing + n), n + g**2
        v = v + g - (np.sqrt(RULE.smoothing + n) - root) / RULE.rate * w
        shrunk = np.where(np.abs(v) <= RULE.l1, 0.0, v - RULE.l1 * np.sign(v))
        w = -RULE.rate * shrunk / np.sqrt(RULE.smoothing + n)
    return w


def synthetic(n_docs: int) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_docs, N_FEATURES))
    scores = X[:, :5].sum(axis=1) + 3.0 * rng.standard_normal(n_docs)
    return Dataset(
        X, np.digitize(scores, [2.0, 5.0]), np.repeat(np.arange(n_docs // LIST_LENGTH), LIST_LENGTH)
    )


def on_ohsumed() -> dict[str, float]:
    root = letor_root()
    if root is None:
        return {}
    train = read_letor(root / "OHSUMED" / "Fold1" / "train.txt")
    ranksieve_seconds = epoch_seconds(train, 51)
    differences = pair_differences(train)
    numpy_seconds = statistics.median(seconds(lambda: numpy_epoch(differences, train.n_features), 5))
    largest = np.max(np.abs(numpy_epoch(differences, train.n_features) - ranksieve_epoch(train).w))
    return {
        "ohsumed_documents": train.n_docs,
        "ohsumed_epoch_milliseconds": 1e3 * ranksieve_seconds,
        "ohsumed_numpy_on_built_pairs_milliseconds": 1e3 * numpy_seconds,
        "ohsumed_largest_difference_of_weights": float(largest),
    }


def main() -> None:
    result: dict[str, float] = on_ohsumed()
    for n_docs in SIZES:
        epoch = epoch_seconds(synthetic(n_docs), 5)
        result[f"epoch_milliseconds_of_{n_docs}_documents"] = 1e3 * epoch
        result[f"nanoseconds_a_document_of_{n_docs}"] = 1e9 * epoch / n_docs
    save_result("minbatsrank_epoch", result)


if __name__ == "__main__":
    main()
