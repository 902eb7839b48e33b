"""The bounds of the papers' theorems, and a table that compares them with measurements.

The theorems of FenchelRank and FSMRank need features in [0, 1]; those of FSMRank also importances in (0, 1]
and similarities in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from papers.choices import PaperResults
from papers.studies.base import first_row
from ranksieve._types import FloatArray
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.tables import Cell, ResultTable, text_cell
from ranksieve.rankers.fsmrank import fsmrank_lipschitz

Row = tuple[Cell, ...]


def fenchelrank_iterations(radius: float, tol: float) -> float:
    """Theorem 1: FenchelRank needs at most 16r²/ε − 1 iterations to be within ε of the minimum (r² ≥ 1/8)."""
    return 16.0 * radius**2 / tol - 1.0


def l1_ball_gap(radius: float, w: FloatArray, gradient: FloatArray) -> float:
    """Theorem 2: f(w) − min f over ‖w‖₁ ≤ r is at most r‖g‖_∞ + ⟨g, w⟩."""
    return max(0.0, radius * float(np.max(np.abs(gradient))) + float(gradient @ w))


def fsmrank_convergence(lipschitz: float, start: FloatArray, optimum: FloatArray, n_iter: int) -> float:
    """Theorem 2: after t iterations the objective is within 2L‖x0 − x*‖²/(t + 1)² of the minimum.

    L is the largest constant that the line search may accept. It doubles from L0/2¹⁰, so it tries L0 itself,
    where the test always holds: L = L0 is valid, without the usual factor 2 of backtracking. ``start`` and
    ``optimum`` are in the solver's variables: (u, v) for eq. (2), w for eq. (1).
    """
    change = start - optimum
    return 2.0 * lipschitz * float(change @ change) / (n_iter + 1) ** 2


def fsmrank_generalisation(
    radius: float, n_features: int, n_pairs: float, similarity_weight: float, probability: float
) -> float:
    """Theorem 3: with probability 1 − θ, ℓ(w) on unseen pairs exceeds ℓ(w) on the training pairs by at most

    2L0 [2C√(2d/p) + (1 + λ1/2)·C²·√(2 log(4d²)/p)] + [(1 + C)² + (λ1/2)C² − 1]·√(log(1/θ)/(2p))

    for every w with Σ|w_j|/s_j ≤ C, ℓ = f + q, p pairs drawn independently, L0 = (4 + 2λ1)d of Theorem 1.

    The second term follows the proof: the theorem states C² + λ1/2 where the proof has C² + (λ1/2)C², and
    log(4d) where the entropy over the (2d)² entries of wwᵀ gives log(4d²). Lemma 1 needs the Lipschitz
    constant of the loss, 2(1 + C) in the margin, but the theorem uses L0, that of the gradient; this function
    uses the larger of the two.

    Parameters
    ----------
    radius : float
        C; for a fitted model, Σ|w_j|/s_j.
    probability : float
        θ in (0, 1), the probability that the bound does not hold.
    """
    C, d, p, ridge = radius, n_features, n_pairs, 0.5 * similarity_weight
    lipschitz = max(fsmrank_lipschitz(d, similarity_weight), 2.0 * (1.0 + C))
    complexity = 2 * C * math.sqrt(2 * d / p) + (1 + ridge) * C**2 * math.sqrt(2 * math.log(4 * d**2) / p)
    range_ = (1 + C) ** 2 + ridge * C**2 - 1
    return 2 * lipschitz * complexity + range_ * math.sqrt(math.log(1 / probability) / (2 * p))


def listmle_iterations(lipschitz: float, optimum: FloatArray, tol: float) -> float:
    """Theorem 2(d) of Sparse CS-ListMLE: at most L‖w*‖²/(2ε) iterations from w = 0 to an accuracy of ε.

    L is the largest constant that the line search may accept. It doubles from L0/2⁸, where L0 is the bound of
    Theorem 1, so it tries L0 itself, where the test always holds.
    """
    return lipschitz * float(optimum @ optimum) / (2.0 * tol)


def bounds_table(results: PaperResults) -> ResultTable:
    """Table of all bounds on the first fold."""
    builders = {
        "fenchelrank_bounds": _fenchelrank,
        "listmle_bounds": _listmle,
        "fsmrank_bounds": _fsmrank,
    }
    rows: list[Row] = []
    for study, build in builders.items():
        row = first_row(results, study)
        rows += build(row) if row else []
    return ResultTable(
        "theory",
        f"{results.name}: bounds of the theorems",
        ("theorem", "quantity", "setting", "bound", "measured"),
        tuple(rows),
        "First fold. FenchelRank: iterations until the objective is within ε of the minimum over the ball "
        "(in brackets: until the duality gap proves it). Sparse CS-ListMLE: iterations until it is within ε "
        "of the minimum; ε is a thousandth of the loss at w = 0, and L the bound of theorem 1. FSMRank, 2: "
        "distance from the minimum. FSMRank, 3: loss on test pairs minus loss on training pairs; the bound "
        "holds with probability 0.95 for independent pairs, but pairs of one query are not independent.",
    )


def _fenchelrank(row: Entry) -> Iterator[Row]:
    for run in row.get("runs", ()):
        stopped = run["stopped"] if run["stopped"] is not None else f"> {run['tried']}"
        needed = run["needed"] if run["needed"] is not None else f"> {run['tried']}"
        setting = f"r = {run['radius']:g}, ε = {row['tol']:g}"
        texts = (text_cell("FenchelRank, 1"), text_cell("iterations"), text_cell(setting))
        yield (*texts, _rounded_up(run["bound"]), text_cell(f"{needed} ({stopped})"))


def _listmle(row: Entry) -> Iterator[Row]:
    for run in row["runs"]:
        needed = str(run["needed"]) if run["needed"] is not None else f"> {run['tried']}"
        texts = (
            text_cell("Sparse CS-ListMLE, 2(d)"),
            text_cell("iterations"),
            text_cell(f"λ = {run['alpha']:g}"),
        )
        yield (*texts, _rounded_up(run["bound"]), text_cell(needed))


def _fsmrank(row: Entry) -> Iterator[Row]:
    if "n_iter" not in row:
        return
    after = text_cell(f"after {row['n_iter']} iterations")
    distances = (_value_cell(row["distance_bound"]), text_cell(f"{row['distance']:.2g}"))
    yield (text_cell("FSMRank, 2"), text_cell("distance from the minimum"), after, *distances)
    setting = text_cell(f"C = {row['radius']:.3g}, p = {row['n_pairs']:.0f}, θ = 0.05")
    excess = (_value_cell(row["excess_bound"]), text_cell(f"{row['excess']:+.2g}"))
    yield (text_cell("FSMRank, 3"), text_cell("loss on test pairs − on training pairs"), setting, *excess)


def _rounded_up(value: float) -> Cell:
    return Cell(value, f"{math.ceil(value):,}")


def _value_cell(value: float) -> Cell:
    return Cell(value, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}")
