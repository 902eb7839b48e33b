"""The five papers' experiments: each method with its paper's grid and its rule of choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ranksieve.estimators import FenchelRank, FSMRank, MinBatSRank, SparseListMLE, SparseRankSVM
from ranksieve.estimators.base import LinearRanker
from ranksieve.experiment.protocol import parameter_grid


@dataclass(frozen=True)
class PaperMethod:
    """How a paper runs a method: ``make(**point)`` for each point of the grid, chosen by ``select``."""

    paper: str
    make: Callable[..., LinearRanker]
    grid: Sequence[Mapping[str, Any]]
    select: str


def _decades(first: float, last: float, per_decade: int = 1) -> list[float]:
    steps = round(abs(last - first) * per_decade) + 1
    return [float(value) for value in np.logspace(first, last, steps)]


_FENCHEL = parameter_grid(radius=[2.0**k for k in range(9)])
_FSM = parameter_grid(similarity_weight=[0.0, *_decades(-4, -1)], alpha=_decades(-1.5, -5, 2))
_MINBAT = parameter_grid(rate=[2.0**k for k in range(1, -11, -1)], l1=[2.0**k for k in range(15, -3, -1)])
_RANKSVM = parameter_grid(alpha=[float(a) for a in np.geomspace(0.2, 1e-4, 40)])
_LISTMLE = parameter_grid(alpha=_decades(-1, -7))

PAPER_METHODS: dict[str, PaperMethod] = {
    "fenchelrank": PaperMethod("FenchelRank", FenchelRank, _FENCHEL, "ndcg@10"),
    "fsmrank": PaperMethod("FSMRank", FSMRank, _FSM, "ndcg@10"),
    # The paper names neither passes nor order; 20 passes in file order come nearest to its numbers.
    "minbatsrank": PaperMethod(
        "MinBatSRank", partial(MinBatSRank, n_epochs=20, shuffle=False), _MINBAT, "ndcg@10"
    ),
    "ranksvm-l1": PaperMethod("NonconvexRankSVM", partial(SparseRankSVM, "l1"), _RANKSVM, "map"),
    "ranksvm-log": PaperMethod("NonconvexRankSVM", partial(SparseRankSVM, "log"), _RANKSVM, "map"),
    "ranksvm-mcp": PaperMethod("NonconvexRankSVM", partial(SparseRankSVM, "mcp"), _RANKSVM, "map"),
    "ranksvm-l0.5": PaperMethod("NonconvexRankSVM", partial(SparseRankSVM, "lp"), _RANKSVM, "map"),
    "listmle-sparse": PaperMethod("SparseCSListMLE", SparseListMLE, _LISTMLE, "ndcg@10"),
    "listmle-dense": PaperMethod("SparseCSListMLE", SparseListMLE, parameter_grid(alpha=[0.0]), "ndcg@10"),
}
