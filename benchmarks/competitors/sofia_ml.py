"""sofia-ml with its Python package pysofia: stochastic steps on sampled pairs."""

from __future__ import annotations

from typing import Any

from benchmarks.competitors.base import Competitor, FittedRanker, linear_ranker
from benchmarks.harness import OUT
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import write_letor


class SofiaML(Competitor):
    """Pegasos RankSVM. It reads a file, because it ignores query ids of arrays."""

    name, title, licence = "sofia-ml", "sofia-ml (pysofia)", "Apache-2.0 (pysofia: none stated)"
    package, module = "pysofia", "pysofia"
    grid = tuple({"alpha": 10.0**k} for k in range(-6, -1))

    def fit(self, train: Dataset, valid: Dataset, **point: Any) -> FittedRanker:
        from pysofia import eta_type, learner_type, loop_type, svm_train

        OUT.mkdir(exist_ok=True)
        write_letor(train, OUT / "sofia.txt")
        options = {"learner": learner_type.pegasos, "loop": loop_type.rank, "eta": eta_type.pegasos_eta}
        w = svm_train(
            str(OUT / "sofia.txt"), None, None, n_samples=None, n_features=train.n_features + 1,
            max_iter=1_000_000, **point, **options,
        )  # fmt: skip
        return linear_ranker(w[1:])  # features are numbered from 1
