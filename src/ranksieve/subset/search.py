"""Branch and bound over sets of features: the best one, and a bound that no set is below."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.choice.forward import ForwardSearch, fit_set, mean_curvature
from ranksieve.data.budget import Budget
from ranksieve.objective import Objective
from ranksieve.solvers import Result
from ranksieve.solvers.base import Callback, relative
from ranksieve.subset.allowed import AllowedSets, Region
from ranksieve.subset.proof import AGAIN, HOLDS, LACKS, Proof, screened
from ranksieve.subset.relaxation import Bounds, Relaxation, Relaxed

LEAST_GAP = 1e-9  # smaller gaps are rounding
PROMISING = 1.002  # times the best objective: a rounded relaxation below it, after one step, is fitted
EAGER = 10  # regions whose rounded relaxation is improved by swaps in any case
FIT_TOL = 1e-10
RIDGE_SHARE = 1e-2  # of the mean curvature at w = 0: needed for the bound, negligible for the ranking


@dataclass(frozen=True)
class Effort:
    """When a search ends: at a relative gap, after seconds, or after nodes."""

    gap: float = 1e-3
    seconds: float = np.inf
    nodes: int | None = None


@dataclass(order=True)
class Open:
    """A region to look at, the lowest bound first.

    ``bounds`` are those of its parent, the node of the proof and the side of it in ``parent``.
    """

    least: float
    number: int
    region: Region = field(compare=False)
    bounds: Bounds = field(compare=False)
    w: FloatArray = field(compare=False)
    threshold: float = field(compare=False)
    hessian: FloatArray = field(compare=False)
    parent: tuple[int, int] | None = field(compare=False, default=None)


@dataclass(frozen=True, eq=False)
class SubsetResult:
    """The best set found, its weights, and what is proven of all others.

    ``joined`` and ``left`` bound the objective of every allowed set with, and without, each feature.
    ``max_cost`` is the limit that was asked for, if any.
    """

    max_features: int
    ridge: float
    fit: Result
    bound: float
    root_bound: float
    joined: FloatArray
    left: FloatArray
    n_nodes: int
    seconds: float
    proof: Proof
    max_cost: float | None = None

    def certificate(self) -> dict[str, Any]:
        """What a model file says is proven, with all that is needed to check it."""
        objective, gap = float(self.fit.objective), float(self.fit.objective) - self.bound
        cost = {} if self.max_cost is None else {"max_cost": self.max_cost}
        return {
            "kind": "subset",
            "objective": objective,
            "gap": gap,
            "relative_gap": relative(gap, objective),
            "bound": self.bound,
            "ridge": self.ridge,
            "n_features": len(self.fit.w),
            "max_features": self.max_features,
            **cost,
            "proof": self.proof.to_lines(),
        }


class SubsetSearch:
    """The best set of at most k features of one objective, for growing k.

    min over sets S that the budget allows, |S| ≤ k, of min_w f(w) + ½μ‖w‖², w the weights of S. Without a
    ``ridge``, μ is 1 % of the mean curvature of the usable features at w = 0.
    """

    def __init__(self, objective: Objective, budget: Budget, ridge: float | None = None) -> None:
        if ridge is None:
            ridge = RIDGE_SHARE * mean_curvature(objective.curvatures(objective.at_zero), budget.usable)
        self.objective, self.budget, self.ridge = objective, budget, float(ridge)
        self._forward = ForwardSearch(objective, budget.usable, FIT_TOL, ridge)
        self._fits: dict[tuple[int, ...], Result] = {}
        self._before: Sequence[int] = budget.fixed  # the best set of the size before

    def allowed(self, max_features: int) -> AllowedSets:
        return AllowedSets(replace(self.budget, max_features=max_features))

    @property
    def everything(self) -> Region:
        """All sets that hold the fixed features."""
        inside = np.isin(np.arange(len(self.budget.usable)), self.budget.fixed)
        return Region(inside, self.budget.usable & ~inside)

    def relaxation(self, max_features: int) -> Relaxation:
        """What bounds the sets of at most so many features."""
        allowed = self.allowed(max_features)
        return Relaxation.of(self.objective, self.ridge, self.budget.signs, allowed, self.everything)

    def best(self, max_features: int, effort: Effort, callback: Callback | None = None) -> SubsetResult:
        """The best set of at most so many features; the next search begins with it."""
        with single_threaded_blas():
            run = Run(self, max_features, effort, callback)
            run.start(self.good_sets(max_features))
            found = run.until_done()
        self._before = np.flatnonzero(found.fit.w).tolist()
        return found

    def good_sets(self, max_features: int) -> list[Result]:
        """Sets by forward selection with swaps, from nothing and from the best set of the size before."""
        path = self._forward.path(max_features, self.budget)
        sets = [np.flatnonzero(fit.w).tolist() for fit in path[-1:]]
        if 0 < len(self._before) < max_features:
            sets.append(self._forward.grown(self._before, max_features, self.budget))
        return [self.fit(chosen) for chosen in sets] or [self.fit(self.budget.fixed)]

    def fit(self, chosen: Sequence[int], start: FloatArray | None = None) -> Result:
        """The weights of a set."""
        key = tuple(sorted(chosen))
        if key not in self._fits:
            start = np.zeros(self.objective.n_features) if start is None else start
            fit = fit_set(self.objective, key, start, self.ridge, self.budget.signs, FIT_TOL)
            self._fits[key] = replace(fit, point=None)
        return self._fits[key]

    def knows(self, chosen: IntArray) -> bool:
        """Whether a set has been fitted."""
        return tuple(chosen.tolist()) in self._fits

    def improved(self, chosen: Sequence[int]) -> Result:
        """The set after swaps that lower its objective."""
        return self.fit(self._forward.grown(chosen, len(chosen), self.budget))


class Run:
    """One search: open regions, the best set so far, and the least bound of what has been closed."""

    def __init__(
        self, search: SubsetSearch, max_features: int, effort: Effort, callback: Callback | None = None
    ) -> None:
        self.search, self.effort, self.began = search, effort, time.perf_counter()
        self.callback = callback
        self.relaxation = search.relaxation(max_features)
        self.allowed = self.relaxation.allowed
        self.open: list[Open] = []
        self.proof, self.root_bound, self.closed = Proof(), 0.0, np.inf
        d = search.objective.n_features
        self.joined, self.left = np.full(d, np.inf), np.full(d, np.inf)
        self.fit: Result

    def start(self, fits: Sequence[Result]) -> None:
        """Begin with all allowed sets, and with good ones to compare with."""
        self.fit = min(fits, key=lambda fit: fit.objective)
        point = self.search.objective.evaluate(self.fit.w)
        g = self.search.objective.gradient(point)
        threshold = max(0.5 * float(np.max(np.abs(g), initial=0.0)), np.finfo(float).tiny)
        region = self.allowed.narrowed(self.search.everything)
        nothing = np.zeros(len(g))
        self.open = [
            Open(
                0.0, 0, region, Bounds(0.0, nothing, nothing), self.fit.w, threshold,
                self.relaxation.hessian(point),
            )
        ]  # fmt: skip

    @property
    def target(self) -> float:
        """A region is closed if its bound is at least this."""
        return self.fit.objective * (1.0 - max(self.effort.gap, LEAST_GAP))

    @property
    def n_nodes(self) -> int:
        return len(self.proof.nodes)

    @property
    def ends(self) -> bool:
        """Whether time or nodes are used up; the first region is always looked at."""
        if self.n_nodes == 0:
            return False
        late = time.perf_counter() - self.began >= self.effort.seconds
        return late or (self.effort.nodes is not None and self.n_nodes >= self.effort.nodes)

    def until_done(self) -> SubsetResult:
        """Look at the region of the lowest bound until the target is met or the effort spent."""
        self._report()
        while self.open and self.open[0].least < self.target and not self.ends:
            self._look(heapq.heappop(self.open))
            self._report()
        for node in self.open:
            self._close(node.bounds.at_least(node.least).over(node.region))
        seconds = time.perf_counter() - self.began
        bound = min(self.closed, self.fit.objective)
        root = min(self.root_bound, self.fit.objective)
        return SubsetResult(
            self.allowed.max_features, self.search.ridge, self.fit, bound, root,
            self.joined, self.left, self.n_nodes, seconds, self.proof,
        )  # fmt: skip

    def _report(self) -> None:
        if self.callback is not None:
            least = min(self.closed, self.open[0].least if self.open else np.inf, self.fit.objective)
            self.callback(self.n_nodes, self.fit.w, self.fit.objective, self.fit.objective - least)

    def _look(self, node: Open) -> None:
        """Bound a region, then close it or split it by the free feature of the largest weight."""
        if self.allowed.all_fit(node.region):
            self._close_single(node.region, node.parent, node.least)
            return
        relaxed = self.relaxation.solve(
            node.region, node.w, node.threshold, node.hessian, self.target, self.fit.objective
        )
        number = self.proof.add(relaxed.point.w, node.parent)
        bounds = relaxed.bounds.at_least(node.least)
        if number == 0:
            self.root_bound = bounds.least
        self._round(node.region, relaxed)
        if bounds.least >= self.target:
            self._close(bounds)
            return
        region, closed = screened(node.region, bounds, self.target)
        if np.isfinite(closed):
            self._close(bounds.at_least(closed))
        region = self.allowed.narrowed(region)
        if not self.allowed.possible(region):
            return  # all of its sets have been closed
        if self.allowed.all_fit(region):
            self._close_single(region, (number, AGAIN), bounds.least)
            return
        j = int(np.argmax(np.where(region.free, np.abs(relaxed.point.w), -1.0)))
        self.proof.nodes[number].split = j
        without = relaxed.point.w.copy()
        without[j] = 0.0
        for side, part, least, start in (
            (HOLDS, region.holding(j), bounds.joined[j], relaxed.point.w),
            (LACKS, region.lacking(j), bounds.left[j], without),
        ):
            child = Open(
                float(least), 2 * number + side + 1, self.allowed.narrowed(part), bounds, start,
                relaxed.threshold, relaxed.hessian, (number, side),
            )  # fmt: skip
            heapq.heappush(self.open, child)

    def _close_single(self, region: Region, parent: tuple[int, int] | None, least: float) -> None:
        """A region whose features all fit into one set: that set is its best."""
        fit = self.search.fit(np.flatnonzero(region.inside | region.free).tolist())
        point = self.search.objective.evaluate(fit.w)
        bounds = self.relaxation.bounds(point, region).at_least(least)
        if self.proof.add(fit.w, parent) == 0:
            self.root_bound = bounds.least
        self._close(bounds)
        self._adopt(fit)

    def _close(self, bounds: Bounds) -> None:
        """No set of a region is below its bounds."""
        self.closed = min(self.closed, bounds.least)
        np.minimum(self.joined, bounds.joined, out=self.joined)
        np.minimum(self.left, bounds.left, out=self.left)

    def _round(self, region: Region, relaxed: Relaxed) -> None:
        """Try the set of the features that the relaxation uses most."""
        chosen = self.allowed.filled(region, relaxed.shares)
        if not len(chosen) or self.search.knows(chosen):
            return
        enough = PROMISING * self.fit.objective
        if self.n_nodes <= EAGER or self.relaxation.step(relaxed, chosen, enough) < enough:
            fit = self.search.fit(chosen.tolist(), relaxed.point.w)
            if self.n_nodes <= EAGER or fit.objective < self.fit.objective:
                fit = min(fit, self.search.improved(chosen.tolist()), key=lambda one: one.objective)
            self._adopt(fit)

    def _adopt(self, fit: Result) -> None:
        if fit.objective < self.fit.objective:
            self.fit = fit
