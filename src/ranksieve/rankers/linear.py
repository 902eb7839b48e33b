"""Rankers that minimise a loss plus a penalty: LinearRanker for any combination, and methods of papers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray, Matrix
from ranksieve._util.files import to_plain
from ranksieve.data.dataset import Dataset
from ranksieve.data.parts import map_queries
from ranksieve.errors import ParameterError, lookup
from ranksieve.losses import LOSSES, CostSensitiveListMLE, Loss, SquaredHinge
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import L1, PENALTIES, L1Ball, NoPenalty, Penalty, Ridge
from ranksieve.rankers.base import Attributes, Ranker
from ranksieve.rankers.parameters import Count, Device, Interval, NotNegative, Positive, Share, one_of
from ranksieve.solvers import (
    SOLVERS,
    Fista,
    FrankWolfe,
    Problem,
    ProximalGradient,
    ProxNewton,
    Result,
    Reweighted,
    Solver,
    TruncatedNewton,
)
from ranksieve.solvers.frank_wolfe import VARIANTS

CONCAVE = [name for name, kind in PENALTIES.items() if "concave" in kind.offers]
FIRST_LIPSCHITZ_SHARE = 2.0**-8  # of the Lipschitz bound of ListMLE: initial value of the search for L


@dataclass(eq=False, repr=False)
class LinearRanker(Ranker):
    """min_w loss(Xw) + penalty(w) for any loss, penalty and suitable solver.

    FenchelRank, RankSVM, SparseRankSVM and SparseListMLE are special cases. If loss and penalty are convex,
    ``objective_`` is at most ``gap_`` above the minimum.

    Parameters
    ----------
    loss : str or Loss
        A name in :data:`ranksieve.losses.LOSSES` or a loss, such as ``SquaredHinge()``.
    penalty : Penalty, optional
        For example ``L1(0.01)``, ``ElasticNet(0.01, l1_ratio=0.5)``, ``L1Ball(8.0)`` or ``MCP(0.01)`` from
        :mod:`ranksieve.penalties`; or a mapping as in model files, ``{"kind": "l1", "alpha": 0.01}``.
        Default: no penalty.
    solver : str or Solver, optional
        A name in :data:`ranksieve.solvers.SOLVERS` or a solver with its own tolerance, such as
        ``FrankWolfe(1e-4, 1000)``. Default: the first of SOLVERS that can solve the problem.
    tol : float
        Maximum relative gap (absolute for a ball); not used if ``solver`` is an object.
    max_iter : int
        Maximum number of iterations; not used if ``solver`` is an object.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Attributes
    ----------
    convex_ : bool
        Whether the penalty is convex; if not, ``gap_`` is the gap of the last round's convex problem.

    Examples
    --------
    >>> import ranksieve as rs
    >>> from ranksieve.penalties import L1
    >>> data = rs.make_ranking(50, 10, 3)
    >>> rs.LinearRanker(penalty=L1(0.05)).fit(data).gap_ < 1e-6
    True
    """

    convex_: bool = field(init=False)

    loss: Any = "squared_hinge"
    penalty: Any = None
    solver: Any = None
    _: KW_ONLY
    tol: Positive = 1e-6
    max_iter: Count = 1000
    warm_start: bool = False
    device: Device = "cpu"

    def _loss(self) -> Loss:
        if isinstance(self.loss, str):
            return lookup(LOSSES, self.loss, "loss")()
        expected = f"a loss such as SquaredHinge() or a name: {', '.join(LOSSES)}"
        return _object_with("bind", "loss", self.loss, expected)  # type: ignore[no-any-return]

    def _abilities(self) -> Collection[str]:
        return tuple(one for one in super()._abilities() if one != "distributed" or not self._needs_rows)

    @property
    def _needs_rows(self) -> bool:
        solver = SOLVERS.get(self.solver) if isinstance(self.solver, str) else self.solver
        return "rows" in getattr(solver, "needs", ())

    def _penalty(self, objective: Objective) -> Penalty:
        if self.penalty is None:
            return Ridge(0.0)  # unlike NoPenalty, it has a duality gap
        if isinstance(self.penalty, Mapping):
            kind: Any = lookup(PENALTIES, str(self.penalty.get("kind")), "penalty")
            shape = {name: value for name, value in self.penalty.items() if name != "kind"}
            return kind(**shape)  # type: ignore[no-any-return]
        expected = f"a penalty such as L1(0.01); kinds: {', '.join(PENALTIES)}"
        return _object_with("offers", "penalty", self.penalty, expected)  # type: ignore[no-any-return]

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        if isinstance(self.solver, str):
            return lookup(SOLVERS, self.solver, "solver")(self.tol, self.max_iter)
        if self.solver is not None:
            expected = f"a solver such as Fista() or a name: {', '.join(SOLVERS)}"
            return _object_with("solve", "solver", self.solver, expected)  # type: ignore[no-any-return]
        for kind in SOLVERS.values():
            if kind.needs <= problem.offers:  # type: ignore[attr-defined]
                return kind(self.tol, self.max_iter)
        reason = f"no solver supports it with the loss {problem.objective.loss.name}; pass a `solver`"
        raise ParameterError("penalty", self.penalty, reason)

    def _solution(self, problem: Problem, result: Result) -> Attributes:
        return {**super()._solution(problem, result), "convex_": "concave" not in problem.penalty.offers}

    def _stated_parameters(self) -> dict[str, Any]:
        """With the penalty as kind and parameters, so that the problem can be rebuilt."""
        stated = super()._stated_parameters()
        if type(self.penalty) in PENALTIES.values():
            stated["penalty"] = to_plain({"kind": self.penalty.name, **vars(self.penalty)})
        return stated

    def _certificate(self) -> dict[str, Any]:
        return super()._certificate() if self.convex_ else _last_round_certificate(self)


def _object_with(method: str, name: str, value: Any, expected: str) -> Any:
    """``value`` if it is an object, not a class, with this method."""
    if isinstance(value, type) or not hasattr(value, method):
        raise ParameterError(name, value, f"must be {expected}")
    return value


def _last_round_certificate(ranker: Ranker) -> dict[str, Any]:
    """Certificate of a fit with a concave penalty: about the last convex problem, not the global optimum."""
    return {"objective": ranker.objective_, "gap_of_last_round": ranker.gap_}


@dataclass(eq=False, repr=False)
class FenchelRank(Ranker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² subject to ‖w‖₁ ≤ r.

    From w = 0, each iteration takes the gradient g, picks the feature with the largest |g_j| and moves
    towards the ball's vertex −r·sign(g_j)·e_j by the exact step in [0, 1]. It stops when the duality gap
    r‖g‖_∞ + ⟨g, w⟩ is at most ``tol``; f(w) is then within ``tol`` of the minimum. At most 16r²/tol − 1
    iterations are needed (Theorem 1).

    Parameters
    ----------
    radius : float
        r. The paper chooses it among 1, 2, 4, …, 256 by NDCG@10 on validation data.
    tol : float
        Maximum duality gap (absolute; f(0) = 1).
    max_iter : int
        Maximum number of iterations.
    variant : "classic", "away" or "pairwise"
        The paper's steps, or away or pairwise steps, which can also move away from a vertex and so avoid
        zigzagging near a face.
    warm_start : bool
        Start from the previous fit's weights, scaled into the ball.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin, J. Wu: Sparse Learning-to-Rank via an Efficient Primal-Dual Algorithm,
    IEEE Transactions on Computers 62(6), 2013. Its eq. (3) prints 1/r for 1/p, and the alternative step of
    §5.6 must be min(max(0, ·), 1) and lacks the factor p/(2r²) of eq. (28). Here the step is the exact
    minimiser, found by Newton's method on the derivative instead of sorting p breakpoints. Its Table 6 sets
    the radius equivalent to a penalty to r = C‖w*‖₁; it should be r = ‖w*‖₁.
    """

    radius: Positive = 8.0
    _: KW_ONLY
    tol: Positive = 1e-3
    max_iter: Count = 1000
    variant: Annotated[str, one_of(VARIANTS)] = "classic"
    warm_start: bool = False
    device: Device = "cpu"

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _penalty(self, objective: Objective) -> Penalty:
        return L1Ball(self.radius)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return FrankWolfe(self.tol, self.max_iter, self.variant)


@dataclass(eq=False, repr=False)
class RankSVM(Ranker):
    """min_w ½‖w‖² + C Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)².

    Truncated Newton: conjugate gradients with Hessian products in O(n log n), without forming pairs. Every
    feature that varies within a query gets a weight; features that are constant within every query get
    exactly 0.

    Parameters
    ----------
    C : float
        Weight of the sum over pairs. Divided by C·p, the problem is the mean squared hinge over p pairs plus
        a ridge of 1/(C·p), so data with more pairs need a smaller C for the same shrinkage. On the LETOR
        data sets, with 4·10⁴ to 4·10⁵ pairs, values of C·p from 10 to 100 are best on validation data.
    average : bool
        C is the weight of the mean over pairs (C/p in the formula), so that one grid fits data of any size.
    tol : float
        Maximum relative duality gap.
    max_iter : int
        Maximum number of Newton steps.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Notes
    -----
    ``objective_`` and ``gap_`` are on the scale of the mean loss: the formula above divided by C·p. With
    query weights, p is the sum of the weights of the pairs.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs, Information Retrieval 13(3), 2010.
    LETOR calls it RankSVM-Primal.
    """

    C: Positive = 1e-4
    _: KW_ONLY
    average: bool = False
    tol: Positive = 1e-6
    max_iter: Count = 100
    warm_start: bool = False
    device: Device = "cpu"

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _penalty(self, objective: Objective) -> Penalty:
        pairs = 1.0 if self.average else objective.loss.normaliser
        return Ridge(1.0 / (self.C * pairs))

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        objective = make_objective(data, self._loss(), query_weight)
        return Problem(objective, self._penalty(objective), usable=objective.varies)

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        return TruncatedNewton(self.tol, self.max_iter)


L1_SOLVERS: dict[str, Callable[[float, int], Solver]] = {"path": ProxNewton, "fista": Fista}
MAX_ROUND_STEPS = 50  # with more features than documents a round may not converge, and need not


def _newton_round(tol: float, max_iter: int) -> Solver:
    return ProxNewton(tol, min(max_iter, MAX_ROUND_STEPS))


ROUND_SOLVERS: dict[str, Callable[[float, int], Solver]] = {
    "path": _newton_round,
    # Features with almost no penalty close the gap slowly, so the gradient mapping also stops a round.
    "fista": partial(Fista, mapping_tol=1e-6),
}


@dataclass(eq=False, repr=False)
class SparseRankSVM(Ranker):
    """min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j g(|w_j|).

    With g(t) = t (ℓ1) the problem is convex and solved to a duality gap. The other penalties are concave and
    give sparser models; they are solved by reweighted ℓ1 with warm starts, where each round is a certified ℓ1
    problem with weights g′(|w_j|):

    - ``"log"``: g′(t) = 1/(ε + t)
    - ``"mcp"``: g′(t) = max(1 − t/(γα), 0)
    - ``"lp"``: g′(t) = p(t + smoothing)^{p−1}
    - ``"scad"``: g′(t) = 1 up to α, decreasing to 0 at aα

    Parameters
    ----------
    penalty : "l1", "log", "mcp", "lp" or "scad"
        g: |w| itself, or one of four concave functions, which penalise large weights less.
    alpha : float
        α, the weight of the penalty on the mean loss; the paper's C is 1/(α·p).
    l1_weights : sequence of float, optional
        v: one ℓ1 weight per feature (only with ``"l1"``).
    solver : "path" or "fista"
        Proximal Newton with working sets, or the paper's accelerated forward–backward splitting, which
        reaches the same solution more slowly.
    epsilon, gamma, p, smoothing, a : float
        Shape parameters of the concave penalties.
    tol : float
        Maximum relative duality gap of each ℓ1 problem; with a concave penalty, reweighting stops when the
        relative decrease of the objective is below this.
    max_iter : int
        Maximum number of iterations of the solver; at most 50 per round with proximal Newton.
    max_rounds : int
        Maximum number of rounds of reweighting.
    warm_start : bool
        Start from the previous fit's weights.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Notes
    -----
    ``objective_`` is the true objective. For a concave penalty, ``gap_`` certifies the ℓ1 problem of the last
    round, and ``trace_`` has an entry for the start and one per round, decreasing from the first round on.

    References
    ----------
    L. Laporte, R. Flamary, S. Canu, S. Déjean, J. Mothe: Nonconvex Regularizations for Feature Selection in
    Ranking With Sparse SVM, IEEE Transactions on Neural Networks and Learning Systems 25(6), 2014. Its
    Lipschitz constant Σ‖x_i − x_j‖² is far too large, so backtracking is used here; the infinite slope of ℓp
    at 0 is smoothed; MCP's knee γα depends on the scale of the loss, here the mean over pairs.
    """

    penalty: Annotated[str, one_of(("l1", *CONCAVE))] = "l1"
    alpha: NotNegative = 1e-2
    _: KW_ONLY
    l1_weights: Any = None
    solver: Annotated[str, one_of(("path", "fista"))] = "path"
    epsilon: Positive = 0.1
    gamma: Positive = 2.0
    p: Share = 0.5
    smoothing: Positive = 0.001
    a: Annotated[float, Interval(Real, 2, np.inf, closed="neither")] = 3.7
    tol: Positive = 1e-6
    max_iter: Count = 10_000
    max_rounds: Count = 50
    warm_start: bool = False
    device: Device = "cpu"

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _penalty(self, objective: Objective) -> Penalty:
        """The penalty, with the parameters of the ranker that it has."""
        if self.penalty == "l1":
            return L1(self.alpha, self.l1_weights)
        if self.l1_weights is not None:
            reason = f"`penalty={self.penalty!r}` computes its own weights; omit these"
            raise ParameterError("l1_weights", self.l1_weights, reason)
        kind: Any = PENALTIES[self.penalty]
        shape = {one.name: getattr(self, one.name) for one in fields(kind) if hasattr(self, one.name)}
        return kind(**shape)  # type: ignore[no-any-return]

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        if self.penalty == "l1":
            return L1_SOLVERS[self.solver](self.tol, self.max_iter)
        return Reweighted(self.tol, self.max_rounds, ROUND_SOLVERS[self.solver](self.tol, self.max_iter))

    def _certificate(self) -> dict[str, Any]:
        convex = self._fit_parameters["penalty"] == "l1"
        return super()._certificate() if convex else _last_round_certificate(self)


@dataclass(eq=False, repr=False)
class SparseListMLE(Ranker):
    """min_w (1/q) Σ_queries (1/DCG@k) Σ_j β_j log2(1 + Σ_{t: y_t<y_j} (α_jt/β_j) e^{s_t − s_j}) + α‖w‖₁.

    s = Xw; α_jt and β_j measure the loss of DCG@k if document j is ranked below document t, or below all less
    relevant documents (:class:`ranksieve.losses.CostSensitiveListMLE`). ``alpha=0`` gives the dense ranker,
    CS-ListMLE.

    The paper's iteration is w ← prox(w − ∇f(w)/L). L starts at L0/2⁸, L0 the bound of Theorem 1, and doubles
    whenever f(w) is above its quadratic model. The iteration stops when the norm of the proximal gradient
    mapping, L times the step, is at most ``tol`` times its norm at w = 0.

    Parameters
    ----------
    alpha : float
        ℓ1 weight α on the mean loss, ≥ 0. The paper chooses it among 1e-7, 1e-6, …, 1e-1 on validation data.
        The loss at w = 0 is Σ_j β_j / DCG@k, often far above 1, so larger values may be better.
    k : int
        Cut-off of the NDCG@k that the loss approximates. The paper uses 1, 3, 5, 8 and 10.
    solver : "proximal", "accelerated" or "newton"
        The paper's iteration; the same with Nesterov's momentum, restarted when the objective increases; or
        proximal Newton, which reaches the optimum in few steps and needs ``alpha`` > 0.
    max_iter : int
        Maximum number of iterations. The paper's iteration often reaches it before the optimum; see ``gap_``.
    tol : float
        Stop when the gradient mapping is at most this share of its initial norm; with "newton", when the
        relative gap is at most this.
    warm_start : bool
        Start from the previous fit's weights.

    Attributes
    ----------
    gap_ : float
        F(w) − c(f(w) − ⟨g, w⟩) with g = ∇f(w), c = min(1, α/‖g‖_∞): a bound on F(w) minus the minimum,
        because f is convex and nonnegative. NaN for ``alpha=0``, where there is no bound.
    trace_ : Trace
        One entry per iteration and one for the start; all gaps but the last are NaN, except with "newton".

    References
    ----------
    F. Zhou et al.: Cost-Sensitive ListMLE Ranking Approach Based on Sparse Representation. The dense loss:
    M. Lu, M. Xie, Y. Wang, J. Liu, Y. Huang: Cost-Sensitive Listwise Ranking Approach, PAKDD 2010.
    Its sums over t = j+1, … assume documents sorted by label. Theorem 1 lacks the 1/ln 2 of log2 and holds
    for feature ranges, not for maxima. A stopping rule on ‖∇f(w)‖ cannot work at an ℓ1 optimum, where ∇f is
    not 0; hence the gradient mapping. The paper's initial L = L0/γᵖ, p the number of iterations, cannot be
    used; hence 2⁸.
    """

    alpha: NotNegative = 1e-3
    k: Count = 10
    _: KW_ONLY
    solver: Annotated[str, one_of(("proximal", "accelerated", "newton"))] = "proximal"
    max_iter: Count = 1000
    tol: Positive = 1e-4
    warm_start: bool = False

    def _loss(self) -> Loss:
        return CostSensitiveListMLE(self.k)

    def _penalty(self, objective: Objective) -> Penalty:
        if self.solver == "newton" and self.alpha == 0:
            reason = "`solver='newton'` needs alpha > 0; use `solver='proximal'` or `solver='accelerated'`"
            raise ParameterError("alpha", self.alpha, reason)
        return L1(self.alpha) if self.alpha > 0 else NoPenalty()

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        if self.solver == "newton":
            return ProxNewton(self.tol, self.max_iter)
        first = FIRST_LIPSCHITZ_SHARE * problem.objective.loss.lipschitz_bound(squared_radii(data))
        accelerated = self.solver == "accelerated"
        # The bound is 0 if no feature varies; any positive value works then.
        return ProximalGradient(self.tol, self.max_iter, accelerated, stop="mapping", lipschitz=first or 1.0)

    def _abilities(self) -> Collection[str]:
        return (*super()._abilities(), "grades")


def squared_radii(data: Dataset) -> FloatArray:
    """¼ Σ_f (max − min of feature f)² per query: squared radius of a ball that contains its documents."""
    return map_queries(data, _squared_radii)


def _squared_radii(data: Dataset) -> FloatArray:
    queries = data.queries
    rows_of_query = np.split(queries.order, queries.offsets[1:-1])
    return np.array([_squared_diameter(data.X[rows]) / 4.0 for rows in rows_of_query])


def _squared_diameter(X: Matrix) -> float:
    ranges = (X.max(axis=0) - X.min(axis=0)).astype(np.float64)
    return float((ranges * ranges).sum())
