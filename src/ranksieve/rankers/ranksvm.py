"""RankSVM in the primal: the squared hinge over pairs with ℓ2, by truncated Newton steps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import Ridge
from ranksieve.rankers.base import SolvedRanker
from ranksieve.rankers.parameters import Count, Device, Positive
from ranksieve.solvers import Problem, Solver, TruncatedNewton


@dataclass(eq=False, repr=False)
class RankSVM(SolvedRanker):
    """min_w ½‖w‖² + C Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)².

    Newton steps by conjugate gradients on implicit Hessian products: O(n log n) a product, and no pair is
    ever built. All features that can tell two documents of a query apart get a weight; those that are
    constant within every query get exactly 0.

    Parameters
    ----------
    C : float
        Weight of the sum over pairs. Divided by C·p the problem is the mean squared hinge over p pairs plus
        a ridge of 1/(C·p), so data with more pairs need a smaller C for the same shrinkage. On the LETOR
        sets, with 4·10⁴ to 4·10⁵ pairs, values of C·p from 10 to 100 do best on validation data.
    average : bool
        Let C weigh the mean over pairs instead (C/p in the formula): one grid for data of any size.
    tol : float
        Largest duality gap, as a share of the objective.
    max_iter : int
        Most Newton steps.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C·p. With
    weights per query, p is the sum of the pairs' weights.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs, Information Retrieval 13(3), 2010.
    LETOR calls it RankSVM-Primal.
    """

    works_in_parts = True

    C: Positive = 1e-4
    _: KW_ONLY
    average: bool = False
    tol: Positive = 1e-6
    max_iter: Count = 100
    warm_start: bool = False
    device: Device = "cpu"

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = self._objective(data, query_weight)
        pairs = 1.0 if self.average else objective.loss.normaliser
        return Problem(objective, Ridge(1.0 / (self.C * pairs)), objective.varies)

    def _objective(self, data: Dataset, query_weight: FloatArray | None) -> Objective:
        return make_objective(data, "squared_hinge", query_weight)

    def _solver(self, problem: Problem) -> Solver:
        return TruncatedNewton(self.tol, self.max_iter)
