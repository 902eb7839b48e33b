"""ListNet: the cross entropy of the probabilities to come first, with or without ℓ1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import varying_columns
from ranksieve.estimators.checks import check_at_least, check_choice, check_not_negative, check_positive
from ranksieve.estimators.direct import DirectRanker
from ranksieve.estimators.sparse_listmle import SOLVERS as PENALISED_SOLVERS
from ranksieve.estimators.sparse_listmle import Solve
from ranksieve.losses.listnet import ListNetLoss
from ranksieve.objective import Objective
from ranksieve.penalties.l1 import L1
from ranksieve.solvers.result import Callback, Result, Trace
from ranksieve.theory import squared_radii


class ListNet(DirectRanker):
    """min_w (1/q) Σ_queries Σ_j P_j log(P_j/Q_j) + α‖w‖₁, P = softmax(y), Q = softmax(Xw) over the query.

    The cross entropy between the probabilities of each document to come first, by labels and by scores, less
    the entropy of P, which does not depend on w (:class:`ranksieve.losses.ListNetLoss`). P takes the label
    itself as score, like the original. Features that are constant within every query change no ranking;
    their weights are 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0; 0 is ListNet.
    solver : "lbfgs", "gradient" or "newton"
        L-BFGS, for ``alpha=0`` only; gradient descent with an adaptive rate 1/L, each step followed by the
        soft threshold; or proximal Newton, for ``alpha`` > 0 only.
    max_iter : int
        Most iterations. Few are an early stop, the regulariser of the original, worth choosing on validation
        data.
    tol : float
        Stop when the largest entry of the gradient has fallen to this share of that at w = 0; for "gradient"
        the norm of the proximal gradient mapping, for "newton" ``gap_`` as a share of the objective.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − max(0, c(f(w) − ⟨g, w⟩)) with g = ∇f(w), c = min(1, α/‖g‖_∞): F(w) is at most this far above
        the minimum, because f is convex with minimum ≥ 0. NaN for ``alpha=0``, where nothing is proven.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li: Learning to Rank: From Pairwise Approach to Listwise
    Approach, ICML 2007, with a linear scoring function and top-one probabilities.
    """

    stops_early = True

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        solver: str = "gradient",
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start

    def _solve(
        self,
        data: Dataset,
        start: FloatArray | None,
        query_weight: FloatArray | None,
        callback: Callback | None,
    ) -> Result:
        self._check()
        loss, varying = ListNetLoss().bind(data.y, data.queries, query_weight), varying_columns(data)
        result = SOLVERS[self.solver](
            Objective(data.X, loss),
            L1(self.alpha),
            start,
            bound=lambda: loss.lipschitz_bound(squared_radii(data)),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )
        return replace(result, w=np.where(varying, result.w, 0.0))

    def _check(self) -> None:
        check_not_negative("alpha", self.alpha)
        check_choice("solver", self.solver, SOLVERS)
        check_positive("tol", self.tol)
        check_at_least("max_iter", self.max_iter, 1)
        needed = NEEDS_ALPHA.get(self.solver)
        if needed is not None and needed != (self.alpha > 0):
            raise ValueError(
                f"solver={self.solver!r} needs {'alpha > 0' if needed else 'alpha=0'}, got "
                f"alpha={self.alpha:g}; solver='gradient' takes any alpha"
            )


def _lbfgs(
    objective: Objective,
    penalty: L1,
    start: FloatArray | None,
    *,
    bound: Callable[[], float],
    tol: float,
    max_iter: int,
    callback: Callback | None,
) -> Result:
    """L-BFGS-B on the smooth objective; the trace has one entry an iteration."""
    trace = Trace()

    def value_and_gradient(w: FloatArray) -> tuple[float, FloatArray]:
        point = objective.evaluate(w)
        return point.value, objective.gradient(point)

    def record(intermediate_result: Any) -> None:
        trace.record(float(intermediate_result.fun), np.nan, intermediate_result.x)
        if callback is not None:
            callback(len(trace), intermediate_result.x, float(intermediate_result.fun), np.nan)

    first = np.zeros(objective.n_features) if start is None else start
    steepest = float(np.max(np.abs(objective.gradient(objective.at_zero)), initial=0.0))
    with single_threaded_blas():
        found = minimize(
            value_and_gradient,
            first,
            jac=True,
            method="L-BFGS-B",
            callback=record,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol * steepest, "ftol": 0.0},
        )
    return Result(found.x, float(found.fun), np.nan, int(found.nit), bool(found.success), trace)


SOLVERS: dict[str, Solve] = {
    "gradient": PENALISED_SOLVERS["proximal"],
    "lbfgs": _lbfgs,
    "newton": PENALISED_SOLVERS["newton"],
}
NEEDS_ALPHA = {"lbfgs": False, "newton": True}
