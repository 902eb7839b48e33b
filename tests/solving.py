"""Solvers as functions of a loss and a penalty."""

from __future__ import annotations

from ranksieve.baselines.solvers import CuttingPlane, Subgradient, TruncatedGradient
from ranksieve.penalties import PENALTIES
from ranksieve.solvers import (
    Fista,
    FrankWolfe,
    Problem,
    ProximalGradient,
    ProxNewton,
    Reweighted,
    TruncatedNewton,
)


def offering(capability):
    """Names of the penalties with a capability."""
    return [name for name, kind in PENALTIES.items() if capability in kind.offers]


def solving(kind):
    """``solve(objective, penalty, start, usable=…, callback=…, **options of the solver)``."""

    def solve(objective, penalty, start=None, *, usable=None, callback=None, **options):
        return kind(**options).solve(Problem(objective, penalty, usable), start, callback)

    return solve


prox_newton = solving(ProxNewton)
newton = solving(TruncatedNewton)
fista = solving(Fista)
proximal_gradient = solving(ProximalGradient)
frank_wolfe = solving(FrankWolfe)
cutting_plane = solving(CuttingPlane)
subgradient = solving(Subgradient)
truncated_gradient = solving(TruncatedGradient)
reweighted = solving(Reweighted)
