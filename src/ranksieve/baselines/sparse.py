"""ProxRank, TGRank and RSRank: earlier sparse rankers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ranksieve._types import AnyArray, FloatArray
from ranksieve.baselines.modified_huber import ModifiedHuber
from ranksieve.baselines.solvers import TruncatedGradient
from ranksieve.data.dataset import Dataset
from ranksieve.losses import Loss, SquaredHinge
from ranksieve.metrics.profiles import Profile, as_profile
from ranksieve.metrics.table import Judged, dcg
from ranksieve.model.linear import linear_scores
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import L1, Penalty
from ranksieve.rankers.base import Attributes, Ranker, Task
from ranksieve.rankers.parameters import Count, Interval, NotNegative, Positive
from ranksieve.solvers import Problem, ProximalGradient, Result, Solver, Trace


@dataclass(eq=False, repr=False)
class ProxRank(Ranker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α‖w‖₁.

    Each iteration is w ← prox(w − ∇f(w)/L), a gradient step and soft thresholding by α/L, without momentum. L
    starts at the curvature along the first gradient, a lower bound of the Lipschitz constant of ∇f, and is
    doubled whenever f(w) is above its quadratic model, so the objective decreases in every iteration.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0.
    tol : float
        Largest duality gap, relative to the objective.
    max_iter : int
        Maximum number of iterations.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        Duality gap: the objective is at most this far above the minimum. With ``alpha=0`` the gap is the
        objective itself, and the fit stops at ``max_iter``.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, N. Liu: Efficient Gradient Descent Algorithm for Sparse Models with Application
    in Learning-to-Rank, Knowledge-Based Systems 49, 2013, where it is called SparseRank. The search for L is
    Algorithm 1 of F. Zhou et al.: Cost-Sensitive ListMLE Ranking Approach Based on Sparse Representation.
    """

    alpha: NotNegative = 1e-2
    _: KW_ONLY
    tol: Positive = 1e-4
    max_iter: Count = 1000
    warm_start: bool = False

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _penalty(self, objective: Objective) -> Penalty:
        return L1(self.alpha)

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return ProximalGradient(self.tol, self.max_iter)

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "document_weight")


@dataclass(eq=False, repr=False)
class TGRank(ProxRank):
    """Minimise the objective of :class:`ProxRank` by the truncated gradient method.

    Each iteration is a gradient step w ← w − η_t∇f(w). After every K iterations, all weights are truncated:
    |w_j| decreases by α times the sum of the last K rates η, but not below 0. The rates are
    η_t = (step/L)/√(1 + decay·t), t = 0, 1, …, L the largest eigenvalue of the Hessian at w = 0, which is the
    Lipschitz constant of ∇f.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0: the gravity of a unit step. The C of eq. (2) is 1/α.
    step : float
        The first rate, in units of 1/L: between 0 and 1.
    decay : float
        Decay of the rates; 0: constant rates.
    truncate_every : int
        K. With 1 and no decay this is proximal gradient descent, which converges to the optimum. With larger
        values the distance from the optimum grows with K·step; ``gap_`` bounds it. The default 10 is not from
        the paper.
    tol : float
        Largest duality gap at a truncation, relative to the objective.
    max_iter : int
        Maximum number of gradient steps.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        Duality gap: the objective is at most this far above the minimum.
    trace_ : Trace
        One entry for the start and one per truncation.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013, which compares FenchelRank with it (§8.5.1) but gives neither
    K nor the rates. Truncation: J. Langford, L. Li, T. Zhang: Sparse Online Learning via Truncated Gradient,
    Journal of Machine Learning Research 10, 2009, with θ = ∞ and all pairs in each gradient.
    """

    _: KW_ONLY
    step: Annotated[float, Interval(Real, 0, 1, closed="right")] = 1.0
    decay: NotNegative = 0.0
    truncate_every: Count = 10

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return TruncatedGradient(self.tol, self.max_iter, self.step, self.decay, self.truncate_every)

    def _solution(self, problem: Problem, result: Result) -> Attributes:
        """Count gradient steps instead of truncations."""
        n_iter = min(result.n_iter * self.truncate_every, self.max_iter)
        return super()._solution(problem, replace(result, n_iter=n_iter))


@dataclass(eq=False, repr=False)
class RSRank(Ranker):
    """min_w (1/Ω) Σ_{pairs} ω_ij ψ(⟨w, x_i − x_j⟩) + α‖w‖₁, Ω = Σ ω_ij, ω_ij from the ranking by w.

    ψ(t) = max(0, 1 − t)² for t ≥ −1 and −4t below. ω_ij = |2^{y_i} − 2^{y_j}|·|b(r_i) − b(r_j)| / IDCG is the
    change of NDCG when i and j, at ranks r_i and r_j of the current ranking, are swapped.

    The weights ω depend on w, so the fit proceeds in rounds: rank the documents by the current scores,
    compute ω, then minimise with fixed ω by gradient steps from the current w, each followed by a truncation
    (soft thresholding). Before the first round all scores are equal; its ω is the mean over all rankings,
    |2^{y_i} − 2^{y_j}| times one number per query. Rounds stop when the ranking no longer changes, or after
    ``n_rounds`` if it cycles.

    Parameters
    ----------
    alpha : float
        ℓ1 weight on the mean loss, ≥ 0.
    profile : "standard", "letor" or "mslr"
        Discount b(r) of NDCG: 1/log2(1 + r), or that of LETOR's scripts, where ranks 1 and 2 have the same
        discount, so that a pair at these ranks has weight 0.
    n_rounds : int
        Maximum number of rounds.
    tol : float
        Largest duality gap of a round, relative to its objective.
    max_iter : int
        Maximum number of gradient steps per round.
    warm_start : bool
        Start from the previous fit's weights and their ranking.

    Attributes
    ----------
    objective_, gap_ : float
        Objective and duality gap of the last round, with fixed ω; they do not prove a global optimum.
    trace_ : Trace
        One entry for the start and one per gradient step; the objective decreases within a round.
    round_iterations_ : list of int
        Number of gradient steps of each round.

    References
    ----------
    Z. Sun, T. Qin, Q. Tao, J. Wang: Robust Sparse Rank Learning for Non-Smooth Ranking Measures, SIGIR 2009.
    The objective is (8.5) of H. Lai et al.: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    2013, with a mean instead of a sum; they could not reproduce the paper's numbers, perhaps because it
    selects among several random initial models. The gradient steps have the rate of ProxRank.
    """

    round_iterations_: list[int] = field(init=False)

    alpha: NotNegative = 1e-2
    _: KW_ONLY
    profile: str = "standard"
    n_rounds: Count = 10
    tol: Positive = 1e-3
    max_iter: Count = 100
    warm_start: bool = False

    def _abilities(self) -> Collection[str]:
        return ("linear", "scale", "grades")

    def _fit(self, task: Task) -> Attributes:
        data, callback = task.data, task.callback
        swaps, trace = SwapWeights(data, as_profile(self.profile)), Trace()
        steps, last = 0, 0

        def record(n_iter: int, w: FloatArray, objective: float, gap: float) -> None:
            nonlocal last
            last = steps + n_iter
            if n_iter or not steps:
                trace.record(objective, gap, w)
                if callback is not None:
                    callback(last, w, objective, gap)

        w = self._start(data.feature_names)
        discount, converged = swaps.discounts(w), False
        round_iterations = list[int]()
        while not converged and len(round_iterations) < self.n_rounds:
            objective = make_objective(data, swaps.loss(discount), task.query_weight)
            problem = Problem(objective, L1(self.alpha), objective.varies)
            result = ProximalGradient(self.tol, self.max_iter).solve(problem, w, record)
            round_iterations.append(result.n_iter)
            steps = last
            w, previous = result.w, discount
            discount = swaps.discounts(w)
            converged = _equal(previous, discount)
        converged = converged and result.converged
        result = replace(result, n_iter=steps, converged=converged, trace=trace)
        return {**self._solution(problem, result), "round_iterations_": round_iterations}

    def _certificate(self) -> dict[str, Any]:
        return {"objective": self.objective_, "gap_of_last_round": self.gap_}  # no proof of a global optimum


class SwapWeights:
    """Pair weights: the change of NDCG when two documents are swapped."""

    def __init__(self, data: Dataset, profile: Profile) -> None:
        self._data, self._profile = data, profile
        self._judged = Judged(data.queries.group(data.y), data.queries)
        ideal = dcg(self._judged.ideal, None, profile)
        shares = self._judged.gains(profile) / self._per_row(np.where(ideal > 0, ideal, 1.0))
        self._by_rank = profile.discount(self._judged.ranks)
        self._gain = np.asarray(data.queries.restore(shares))

    def discounts(self, w: FloatArray | None) -> FloatArray | None:
        """Return the discount of each document's rank by Xw; None if all weights are 0."""
        if w is None or not np.any(w):
            return None
        used = np.flatnonzero(w)
        scores = self._data.queries.group(linear_scores(self._data.X, used, w[used]))
        grouped = np.empty(len(scores))
        grouped[self._judged.rank(scores).order] = self._by_rank
        return np.asarray(self._data.queries.restore(grouped))

    def loss(self, discount: FloatArray | None) -> ModifiedHuber:
        """Return the loss with the pair weights of a ranking; None: with their mean over all rankings."""
        gain = self._gain * self._mean_difference() if discount is None else self._gain
        return ModifiedHuber(gain, discount)

    def _mean_difference(self) -> FloatArray:
        """Mean of |b(r) − b(r′)| over two ranks of a query: Σ_r (n + 1 − 2r) b(r) / (n(n − 1)/2)."""
        n, judged = self._data.queries.sizes, self._judged
        steps = judged.total((self._per_row(n) + 1 - 2 * judged.ranks) * self._by_rank)
        return np.asarray(self._data.queries.restore(self._per_row(steps / np.maximum(n * (n - 1) / 2, 1))))

    def _per_row(self, values: AnyArray) -> AnyArray:
        return np.repeat(values, self._data.queries.sizes)


def _equal(a: FloatArray | None, b: FloatArray | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
