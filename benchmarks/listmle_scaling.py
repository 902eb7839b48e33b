"""Cost-sensitive ListMLE: time of a gradient for 10⁴ to 10⁶ documents, about 100 per query.

``loss``: value and gradient with respect to the scores; ``objective``: with respect to the weights of 20
features. The exponent is the slope of log time over log documents; 1 means linear. The second series has as
many label levels as documents per query, which would show a cost proportional to documents × levels.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import save_result, seconds
from ranksieve.data.dataset import Dataset
from ranksieve.losses import CostSensitiveListMLE
from ranksieve.objective import LocalObjective, Objective

SIZES = (10_000, 31_600, 100_000, 316_000, 1_000_000)
DOCS_PER_QUERY, N_FEATURES, REPEATS = 100, 20, 25


def make(n_docs: int, n_levels: int) -> Objective:
    rng = np.random.default_rng(n_docs)
    sizes = rng.integers(DOCS_PER_QUERY // 2, 3 * DOCS_PER_QUERY // 2, 2 * n_docs // DOCS_PER_QUERY)
    qid = np.repeat(np.arange(len(sizes)), sizes)[:n_docs]
    y = np.floor(n_levels * rng.random(n_docs) ** 2) * (4.0 / (n_levels - 1))
    data = Dataset(rng.standard_normal((n_docs, N_FEATURES)), y, qid)
    return LocalObjective(data.X, CostSensitiveListMLE().bind(data.y, data.queries))


def measure(n_docs: int, n_levels: int) -> tuple[float, float]:
    """Fewest seconds for the loss and for the objective."""
    objective = make(n_docs, n_levels)
    w = np.random.default_rng(0).standard_normal(N_FEATURES)
    scores = objective.scores(w)
    objective.loss.evaluate(scores)  # compile
    return (
        min(seconds(lambda: objective.loss.evaluate(scores), REPEATS)),
        min(seconds(lambda: objective.gradient(objective.evaluate(w)), REPEATS)),
    )


def exponent(times: list[float]) -> float:
    return float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])


def main() -> None:
    five_levels = {n: measure(n, 5) for n in SIZES}
    many_levels = {n: measure(n, 100_000) for n in SIZES}
    result: dict[str, object] = {
        "data": f"synthetic, {DOCS_PER_QUERY} documents a query, {N_FEATURES} features"
    }
    for name, times in (("5_levels", five_levels), ("a_level_a_document", many_levels)):
        for part, column in (("loss", 0), ("objective", 1)):
            best = [times[n][column] for n in SIZES]
            for n, t in zip(SIZES, best, strict=True):
                result[f"{name}_{part}_ms_{n}"] = 1e3 * t
            result[f"{name}_{part}_ns_per_document_at_{SIZES[-1]}"] = 1e9 * best[-1] / SIZES[-1]
            result[f"{name}_{part}_exponent"] = exponent(best)
    save_result("listmle_scaling", {**result, "runs": f"best of {REPEATS}"})


if __name__ == "__main__":
    main()
