"""Solvers: minimise a loss plus a penalty, with a bound on the distance to the optimum.

To add a solver, write a file and add a line to SOLVERS.
"""

from __future__ import annotations

from collections.abc import Callable

from ranksieve.solvers.base import Callback, Problem, Result, Solver, Trace
from ranksieve.solvers.frank_wolfe import FrankWolfe
from ranksieve.solvers.ftrl import Ftrl
from ranksieve.solvers.newton import DenseNewton, TruncatedNewton
from ranksieve.solvers.prox_newton import ProxNewton, Reweighted
from ranksieve.solvers.proximal import Fista, ProximalGradient

SOLVERS: dict[str, Callable[..., Solver]] = {
    "prox_newton": ProxNewton,
    "truncated_newton": TruncatedNewton,
    "dense_newton": DenseNewton,
    "proximal_gradient": ProximalGradient,
    "fista": Fista,
    "frank_wolfe": FrankWolfe,
    "reweighted": Reweighted,
    "ftrl": Ftrl,
}

__all__ = [
    "SOLVERS",
    "Callback",
    "DenseNewton",
    "Fista",
    "FrankWolfe",
    "Ftrl",
    "Problem",
    "ProxNewton",
    "ProximalGradient",
    "Result",
    "Reweighted",
    "Solver",
    "Trace",
    "TruncatedNewton",
]
