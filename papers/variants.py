"""Methods as a paper prints them apart: a number of features, a part of the objective, another NDCG@k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ranksieve import estimators as e
from ranksieve.experiment import cells
from ranksieve.methods import METHODS, Method, decades, parameter_grid

_FS_RANK, _FSM_RANK = METHODS["fsrank"], METHODS["fsmrank"]
IMPORTANCE_WEIGHTS = decades(-0.5, -5, 4)
"""λ2 in quarters of a decade: on half decades what importance brings is lost."""
_WITHOUT_SIMILARITY = parameter_grid(similarity_weight=[0.0], alpha=IMPORTANCE_WEIGHTS)
_SPARSE, _DENSE = METHODS["sparselistmle"], METHODS["cslistmle"]


def _where(method: Method, **fixed: Any) -> Sequence[Mapping[str, Any]]:
    """The points of a method's grid that have these values."""
    return [point for point in method.grid if fixed.items() <= point.items()]


VARIANTS: dict[str, Method] = {
    **{
        f"fsrank-k{k}": replace(_FS_RANK, title=f"FS-Rank, k = {k}", grid=_where(_FS_RANK, k=k))
        for k in (5, 10, 15, 20, 25)
    },
    "fsmrank-importance": replace(
        _FSM_RANK, title="FSMRank, λ1 = 0", grid=_WITHOUT_SIMILARITY
    ),
    "fsmrank-plain": replace(
        _FSM_RANK, title="FSMRank, λ1 = 0, s = 1", make=partial(e.FSMRank, importance="ones"),
        grid=_WITHOUT_SIMILARITY,
    ),
    **{
        f"sparselistmle@{k}": replace(
            _SPARSE, title=f"Sparse CS-ListMLE@{k}", make=partial(e.SparseListMLE, k=k, solver="newton")
        )
        for k in (1, 3, 5, 8)
    },
    **{
        f"cslistmle@{k}": replace(_DENSE, title=f"CS-ListMLE@{k}", make=partial(e.CSListMLE, k=k))
        for k in (1, 3, 5)
    },
}  # fmt: skip


def title(name: str) -> str:
    """What a method or a variant is called in words."""
    return VARIANTS[name].title if name in VARIANTS else cells.title(name)
