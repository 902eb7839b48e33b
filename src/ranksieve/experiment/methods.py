"""One table of all methods: what each minimises and how, how it is made, and the grid its paper tries.

The command line, the documentation and the experiments read this table; one line adds a method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ranksieve import estimators as e
from ranksieve.estimators.base import LinearRanker, Ranker
from ranksieve.experiment.protocol import parameter_grid


@dataclass(frozen=True)
class Method:
    """A way to learn a ranker: ``make(**point)`` for each point of the grid, chosen by ``select``."""

    title: str
    source: str
    loss: str
    penalty: str
    solver: str
    make: Callable[..., Ranker]
    grid: Sequence[Mapping[str, Any]] = ({},)
    select: str = "ndcg@10"

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters with their defaults."""
        return dict(self.make().get_params(deep=False))

    @property
    def linear(self) -> bool:
        """Whether it gives a linear model."""
        return isinstance(self.make(), LinearRanker)


def _decades(first: float, last: float, per_decade: int = 1) -> list[float]:
    steps = round(abs(last - first) * per_decade) + 1
    return [float(value) for value in np.logspace(first, last, steps)]


def _powers_of_two(first: int, last: int) -> list[float]:
    return [2.0**k for k in range(first, last - 1, -1)]


HINGE = "squared hinge"
LAPORTE = "Laporte et al. 2014"
_FSM = parameter_grid(similarity_weight=[0.0, *_decades(-4, -1)], alpha=_decades(-1.5, -5, 2))
_MINBAT = parameter_grid(rate=_powers_of_two(1, -10), l1=_powers_of_two(15, -2))
_ALPHAS = parameter_grid(alpha=[float(a) for a in np.geomspace(0.2, 1e-4, 40)])
_REWEIGHTED = "reweighted ℓ1"


def _ranksvm(title: str, penalty: str, name: str, solver: str) -> Method:
    make = partial(e.SparseRankSVM, name)
    return Method(title, LAPORTE, HINGE, penalty, solver, make, _ALPHAS, "map")


METHODS: dict[str, Method] = {
    "sparseranker": Method(
        "SparseRanker", "the certified path", HINGE, "ℓ1, elastic net", "proximal Newton", e.SparseRanker
    ),
    "fenchelrank": Method(
        "FenchelRank", "Lai et al. 2013", HINGE, "ℓ1 ball", "Frank–Wolfe", e.FenchelRank,
        parameter_grid(radius=[2.0**k for k in range(9)]),
    ),
    "fsmrank": Method(
        "FSMRank", "Lai et al. 2013", HINGE, "weighted ℓ1 + similarity", "accelerated gradient",
        e.FSMRank, _FSM,
    ),
    # The paper names neither passes nor order; 20 passes in file order come nearest to its numbers.
    "minbatsrank": Method(
        "MinBatSRank", "Cheng et al. 2018", HINGE, "ℓ1", "FTRL-proximal",
        partial(e.MinBatSRank, n_epochs=20, shuffle=False), _MINBAT,
    ),
    "ranksvm-l1": _ranksvm("RankSVM-ℓ1", "ℓ1", "l1", "proximal Newton or FISTA"),
    "ranksvm-log": _ranksvm("RankSVM-log", "log", "log", _REWEIGHTED),
    "ranksvm-mcp": _ranksvm("RankSVM-MCP", "MCP", "mcp", _REWEIGHTED),
    "ranksvm-l0.5": _ranksvm("RankSVM-ℓ0.5", "ℓ0.5", "lp", _REWEIGHTED),
    "ranksvm-scad": _ranksvm("RankSVM-SCAD", "SCAD", "scad", _REWEIGHTED),
    "sparselistmle": Method(
        "Sparse CS-ListMLE", "Zhou et al.", "cost-sensitive ListMLE", "ℓ1", "proximal gradient",
        e.SparseListMLE, parameter_grid(alpha=_decades(-1, -7)),
    ),
}  # fmt: skip
