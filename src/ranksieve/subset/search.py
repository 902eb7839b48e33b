"""Branch and bound over sets of features: the best set found, and a lower bound of all sets."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, IntArray
from ranksieve.choice.forward import ForwardSearch, fit_set
from ranksieve.data.budget import Budget
from ranksieve.objective import Objective
from ranksieve.show.formats import percent, plural
from ranksieve.show.result import Part, Shown, Table
from ranksieve.show.sentences import subset_sentence
from ranksieve.solvers import Result
from ranksieve.solvers.base import Callback, relative
from ranksieve.subset.allowed import AllowedSets, Region
from ranksieve.subset.proof import SAME, WITH, WITHOUT, Proof, screen
from ranksieve.subset.relaxation import Bounds, Relaxation, Relaxed

MIN_GAP = 1e-9  # relative; smaller gaps are rounding noise
PROMISING_FACTOR = 1.002  # fit a rounded relaxation if one step gets below this times the best objective
SWAPPED_NODES = 10  # the rounded relaxations of the first nodes are always improved by swaps
FIT_TOL = 1e-10


@dataclass(frozen=True)
class Effort:
    """Limits of a search: relative gap, seconds, number of nodes."""

    gap: float = 1e-3
    seconds: float = np.inf
    nodes: int | None = None


@dataclass(order=True)
class OpenRegion:
    """A region still to be bounded, ordered by its lower bound.

    ``bounds`` are those of its parent, and ``parent`` is (node of the parent in the proof, side).
    """

    least: float
    number: int
    region: Region = field(compare=False)
    bounds: Bounds = field(compare=False)
    w: FloatArray = field(compare=False)
    threshold: float = field(compare=False)
    hessian: FloatArray = field(compare=False)
    parent: tuple[int, int] | None = field(compare=False, default=None)


@dataclass(frozen=True, eq=False, repr=False)
class SubsetResult(Shown):
    """The best set found, its weights, and the proven bounds of all others.

    ``with_each`` and ``without_each`` are lower bounds of the objective of every allowed set with, and
    without, each feature. ``max_cost`` is the cost limit, if any.
    """

    max_features: int
    ridge: float
    fit: Result
    bound: float
    root_bound: float
    with_each: FloatArray
    without_each: FloatArray
    n_nodes: int
    seconds: float
    proof: Proof
    max_cost: float | None = None

    def _line(self) -> str:
        gap = relative(float(self.fit.objective) - self.bound, float(self.fit.objective))
        used = plural(int(np.count_nonzero(self.fit.w)), "feature")
        return (
            f"{used}, objective {self.fit.objective:.6g}, gap {percent(gap)}, {plural(self.n_nodes, 'node')}"
        )

    def shown(self) -> Sequence[Part]:
        """The objective of the set, the bound of all others, and the proof."""
        certificate = self.certificate()
        facts = [
            ("features", int(np.count_nonzero(self.fit.w))),
            ("objective", f"{certificate['objective']:.6g}"),
            ("bound of all sets", f"{self.bound:.6g}"),
            ("bound before the first split", f"{self.root_bound:.6g}"),
            ("nodes", self.n_nodes),
        ]
        return [Table(["best set", ""], facts), subset_sentence(certificate, {})]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Weights, and the bounds of all sets with and without each column."""
        with_each, without_each = self.with_each.tolist(), self.without_each.tolist()
        weights = self.fit.w.tolist()
        return {
            "column": list(range(len(weights))), "weight": weights, "bound_with": with_each,
            "bound_without": without_each,
        }  # fmt: skip

    def certificate(self) -> dict[str, Any]:
        """The certificate in a model file, with everything that is needed to check it."""
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
    """Search for the best set of at most k features of one objective, for increasing k.

    min over sets S that the budget allows, |S| ≤ k, of min_w f(w) + ½μ‖w‖², w the weights of S. Without a
    ``ridge``, μ is that of forward selection.
    """

    def __init__(self, objective: Objective, budget: Budget, ridge: float | None = None) -> None:
        self._forward = ForwardSearch(objective, budget.usable, FIT_TOL, ridge)
        self.objective, self.budget, self.ridge = objective, budget, float(self._forward.ridge)
        self._fits: dict[tuple[int, ...], Result] = {}
        self._previous_set: Sequence[int] = budget.fixed  # the best set of the previous size

    def allowed(self, max_features: int) -> AllowedSets:
        return AllowedSets(replace(self.budget, max_features=max_features))

    @property
    def everything(self) -> Region:
        """All sets that contain the fixed features."""
        inside = np.isin(np.arange(len(self.budget.usable)), self.budget.fixed)
        return Region(inside, self.budget.usable & ~inside)

    def relaxation(self, max_features: int) -> Relaxation:
        allowed = self.allowed(max_features)
        return Relaxation.of(self.objective, self.ridge, self.budget.signs, allowed, self.everything)

    def best(self, max_features: int, effort: Effort, callback: Callback | None = None) -> SubsetResult:
        """Search for the best set of at most ``max_features`` features; the next search starts from it."""
        with single_threaded_blas():
            search = BranchAndBound(self, max_features, effort, callback)
            search.start(self.good_sets(max_features))
            result = search.run()
        self._previous_set = np.flatnonzero(result.fit.w).tolist()
        return result

    def good_sets(self, max_features: int) -> list[Result]:
        """Sets by forward selection with swaps, from scratch and from the best set of the previous size."""
        path = self._forward.path(max_features, self.budget)
        sets = [np.flatnonzero(fit.w).tolist() for fit in path[-1:]]
        if 0 < len(self._previous_set) < max_features:
            sets.append(self._forward.grow(self._previous_set, max_features, self.budget))
        return [self.fit(chosen) for chosen in sets] or [self.fit(self.budget.fixed)]

    def fit(self, chosen: Sequence[int], start: FloatArray | None = None) -> Result:
        key = tuple(sorted(chosen))
        if key not in self._fits:
            start = np.zeros(self.objective.n_features) if start is None else start
            fit = fit_set(self.objective, key, start, self.ridge, self.budget.signs, FIT_TOL)
            self._fits[key] = replace(fit, point=None)
        return self._fits[key]

    def has_fitted(self, chosen: IntArray) -> bool:
        return tuple(chosen.tolist()) in self._fits

    def improve_by_swaps(self, chosen: Sequence[int]) -> Result:
        return self.fit(self._forward.grow(chosen, len(chosen), self.budget))


class BranchAndBound:
    """One search: open regions, the best set so far, and the lowest bound of the closed regions."""

    def __init__(
        self, search: SubsetSearch, max_features: int, effort: Effort, callback: Callback | None = None
    ) -> None:
        self.search, self.effort, self.start_time = search, effort, time.perf_counter()
        self.callback = callback
        self.relaxation = search.relaxation(max_features)
        self.allowed = self.relaxation.allowed
        self.open: list[OpenRegion] = []
        self.proof, self.root_bound, self.closed = Proof(), 0.0, np.inf
        d = search.objective.n_features
        self.with_each, self.without_each = np.full(d, np.inf), np.full(d, np.inf)
        self.fit: Result

    def start(self, fits: Sequence[Result]) -> None:
        """Open the region of all allowed sets; the best of ``fits`` is the first incumbent."""
        self.fit = min(fits, key=lambda fit: fit.objective)
        point = self.search.objective.evaluate(self.fit.w)
        g = self.search.objective.gradient(point)
        threshold = max(0.5 * float(np.max(np.abs(g), initial=0.0)), np.finfo(float).tiny)
        region = self.allowed.narrow(self.search.everything)
        zeros = np.zeros(len(g))
        self.open = [
            OpenRegion(
                0.0, 0, region, Bounds(0.0, zeros, zeros), self.fit.w, threshold,
                self.relaxation.hessian(point),
            )
        ]  # fmt: skip

    @property
    def target(self) -> float:
        """A region is closed if its bound is at least this."""
        return self.fit.objective * (1.0 - max(self.effort.gap, MIN_GAP))

    @property
    def n_nodes(self) -> int:
        return len(self.proof.nodes)

    @property
    def is_exhausted(self) -> bool:
        """Whether time or nodes are used up; the first region is always processed."""
        if self.n_nodes == 0:
            return False
        late = time.perf_counter() - self.start_time >= self.effort.seconds
        return late or (self.effort.nodes is not None and self.n_nodes >= self.effort.nodes)

    def run(self) -> SubsetResult:
        """Process the region with the lowest bound until the target is reached or the effort is used up."""
        self._report()
        while self.open and self.open[0].least < self.target and not self.is_exhausted:
            self._process(heapq.heappop(self.open))
            self._report()
        for node in self.open:
            self._close(node.bounds.at_least(node.least).over(node.region))
        seconds = time.perf_counter() - self.start_time
        bound = min(self.closed, self.fit.objective)
        root = min(self.root_bound, self.fit.objective)
        return SubsetResult(
            self.allowed.max_features, self.search.ridge, self.fit, bound, root,
            self.with_each, self.without_each, self.n_nodes, seconds, self.proof,
        )  # fmt: skip

    def _report(self) -> None:
        if self.callback is not None:
            least = min(self.closed, self.open[0].least if self.open else np.inf, self.fit.objective)
            self.callback(self.n_nodes, self.fit.w, self.fit.objective, self.fit.objective - least)

    def _process(self, node: OpenRegion) -> None:
        """Bound a region, then close it or split it by the free feature with the largest weight."""
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
        region, closed = screen(node.region, bounds, self.target)
        if np.isfinite(closed):
            self._close(bounds.at_least(closed))
        region = self.allowed.narrow(region)
        if not self.allowed.is_feasible(region):
            return  # all of its sets are closed
        if self.allowed.all_fit(region):
            self._close_single(region, (number, SAME), bounds.least)
            return
        j = int(np.argmax(np.where(region.free, np.abs(relaxed.point.w), -1.0)))
        self.proof.nodes[number].split = j
        without = relaxed.point.w.copy()
        without[j] = 0.0
        for side, part, least, start in (
            (WITH, region.with_features(j), bounds.with_each[j], relaxed.point.w),
            (WITHOUT, region.without_features(j), bounds.without_each[j], without),
        ):
            child = OpenRegion(
                float(least), 2 * number + side + 1, self.allowed.narrow(part), bounds, start,
                relaxed.threshold, relaxed.hessian, (number, side),
            )  # fmt: skip
            heapq.heappush(self.open, child)

    def _close_single(self, region: Region, parent: tuple[int, int] | None, least: float) -> None:
        """Close a region whose features are all allowed together: that set is its best."""
        fit = self.search.fit(np.flatnonzero(region.inside | region.free).tolist())
        point = self.search.objective.evaluate(fit.w)
        bounds = self.relaxation.bounds(point, region).at_least(least)
        if self.proof.add(fit.w, parent) == 0:
            self.root_bound = bounds.least
        self._close(bounds)
        self._keep_if_better(fit)

    def _close(self, bounds: Bounds) -> None:
        self.closed = min(self.closed, bounds.least)
        np.minimum(self.with_each, bounds.with_each, out=self.with_each)
        np.minimum(self.without_each, bounds.without_each, out=self.without_each)

    def _round(self, region: Region, relaxed: Relaxed) -> None:
        """Try the set of the features with the largest share in the relaxation."""
        chosen = self.allowed.fill(region, relaxed.shares)
        if not len(chosen) or self.search.has_fitted(chosen):
            return
        enough = PROMISING_FACTOR * self.fit.objective
        if self.n_nodes <= SWAPPED_NODES or self.relaxation.step(relaxed, chosen, enough) < enough:
            fit = self.search.fit(chosen.tolist(), relaxed.point.w)
            if self.n_nodes <= SWAPPED_NODES or fit.objective < self.fit.objective:
                fit = min(fit, self.search.improve_by_swaps(chosen.tolist()), key=lambda one: one.objective)
            self._keep_if_better(fit)

    def _keep_if_better(self, fit: Result) -> None:
        if fit.objective < self.fit.objective:
            self.fit = fit
