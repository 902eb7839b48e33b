"""FTRL-proximal (follow the regularised leader) over batches of pairs of one query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ranksieve._types import BoolArray, FloatArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.matrix import dense_stored_columns, is_float64_in_place
from ranksieve.data.queries import Queries, local_levels, pair_weights, pairs_per_query
from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.ftrl import Lists, Rule, State, ftrl_pass
from ranksieve.losses.base import grouped_weights
from ranksieve.solvers.base import Loop, Problem, Solver

BLOCK_CELLS = 1 << 20  # of features that are turned into dense float64 at a time
DEFAULT_RULE = Rule(l1=64.0, rate=0.0625, smoothing=1.0, feature_wise=True, batch_pairs=0)
DIVERGED = 1e100  # a weight whose square would soon overflow


@dataclass(eq=False)
class FtrlState:
    """All that the next batch needs to know of the batches before it."""

    squares: FloatArray
    """n = Σ g², per feature."""
    sums: FloatArray
    """v = Σ (g − σw), per feature."""
    w: FloatArray
    n_batches: int = 0
    n_pairs: float = 0.0
    """Pairs learned from, each as often as it came and times its weight."""
    n_passes: int = 0

    @classmethod
    def zeros(cls, n_features: int) -> FtrlState:
        return cls(np.zeros(n_features), np.zeros(n_features), np.zeros(n_features))

    def ordered(self, columns: Sequence[int]) -> FtrlState:
        """A copy with the features in another order."""
        return replace(self, squares=self.squares[columns], sums=self.sums[columns], w=self.w[columns])

    def widened(self, n_features: int) -> FtrlState:
        """This state, or one with further features: none of the batches so far had any of them."""
        more = n_features - len(self.w)
        if more <= 0:
            return self
        squares, sums, w = (np.pad(array, (0, more)) for array in (self.squares, self.sums, self.w))
        return replace(self, squares=squares, sums=sums, w=w)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which :meth:`from_dict` restores every bit."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FtrlState:
        arrays = {name: np.array(content[name], dtype=np.float64) for name in ("squares", "sums", "w")}
        if not all(a.shape == (len(arrays["w"]),) and np.isfinite(a).all() for a in arrays.values()):
            raise DataError(None, None, "the arrays of the state differ in length or are not finite")
        counts = int(content["n_batches"]), float(content["n_pairs"]), int(content["n_passes"])
        return cls(arrays["squares"], arrays["sums"], arrays["w"], *counts)


class Passes:
    """A data set ready to be learned from, query by query.

    A query without pairs, or with weight 0, makes no batch. Dense float64 in C order is read where it is;
    anything else (float32, CSR, scattered rows) is gathered into dense float64 a few queries at a time, a CSR
    matrix with only the features that these queries have. The results have the same bits.
    """

    def __init__(
        self, X: Matrix, queries: Queries, level: IntArray, weight: FloatArray, mass: FloatArray | None = None
    ) -> None:
        self._X, self._queries, self._weight, self._mass = X, queries, weight, mass
        self._level = level.astype(np.int64, copy=False)  # losses keep smaller numbers; one kernel for all
        self._pairs = pairs_per_query(level, queries)
        self._pair_weights = weight * pair_weights(level, queries, mass)
        self._has_pairs: BoolArray = self._pair_weights > 0

    @classmethod
    def of(cls, data: Dataset, query_weight: FloatArray | None = None) -> Passes:
        """The passes over a data set."""
        level = local_levels(data.queries.group(data.y), data.queries)
        weight = checked_query_weight(query_weight, data.n_queries)
        return cls(data.X, data.queries, level, weight, grouped_weights(data.document_weight, data.queries))

    def run(self, rule: Rule, state: FtrlState, sequence: IntArray | None = None) -> None:
        """Learn from each query once, in the order of ``sequence`` (default: of first appearance)."""
        turn = np.arange(self._queries.n_queries) if sequence is None else sequence
        turn = turn[self._has_pairs[turn]]
        arrays = State(state.squares, state.sums, state.w)
        for X, columns, lists, queries in self._blocks(turn):
            state.n_batches = ftrl_pass(X, columns, lists, queries, rule, state.n_batches, arrays)
        state.n_pairs += float(np.sum(self._pair_weights[turn]))
        if not (all(np.isfinite(a).all() for a in arrays) and np.all(np.abs(state.w) < DIVERGED)):
            reason = "the weights diverged; give a smaller number or scale the features"
            raise ParameterError("rate", rule.rate, reason)

    def _blocks(self, turn: IntArray) -> Iterator[tuple[FloatArray, IntArray, Lists, IntArray]]:
        """(features, their columns, queries, which of them in what order), one block after another."""
        if is_float64_in_place(self._X) and self._queries.contiguous:
            lists = Lists(self._queries.offsets, self._level, self._pairs, self._weight, self._mass)
            yield np.asarray(self._X), np.arange(self._X.shape[1]), lists, turn
            return
        block = np.cumsum(self._queries.sizes[turn]) * self._X.shape[1] // BLOCK_CELLS
        for queries in np.split(turn, np.flatnonzero(np.diff(block)) + 1) if len(turn) else ():
            places, offsets = self._places(queries)
            rows = places if self._queries.contiguous else self._queries.order[places]
            X, columns = dense_stored_columns(self._X[rows])
            mass = None if self._mass is None else self._mass[places]
            lists = Lists(offsets, self._level[places], self._pairs[queries], self._weight[queries], mass)
            yield X, columns, lists, np.arange(len(queries))

    def _places(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Where the rows of the queries stand in grouped order, and the offsets of each once gathered."""
        sizes = self._queries.sizes[queries]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        shift = self._queries.offsets[queries] - offsets[:-1]
        return np.arange(offsets[-1]) + np.repeat(shift, sizes), offsets


@dataclass(frozen=True)
class Ftrl(Solver):
    """``max_iter`` passes over the queries; the order of pass e of all is drawn from (random_state, e).

    A weight stays 0 while |Σ g| ≤ λ, a sum over all pairs seen, so λ acts as α = λ/(pairs seen) on the mean
    loss. Objective and gap are those of the problem, f + α‖w‖₁ with the α of the last pass; there is no
    stopping rule. Without ``random_state`` queries come in the order of first appearance. A start is of the
    type :class:`FtrlState`, which is gone on with, and changed.
    """

    max_iter: int = 5
    rule: Rule = DEFAULT_RULE
    random_state: int | None = 0
    name: ClassVar[str] = "ftrl"
    needs: ClassVar[frozenset[str]] = frozenset({"rows", "slopes"})

    def check(self, problem: Problem) -> None:
        super().check(problem)
        slopes = problem.penalty.slopes(problem.n_features)
        if not np.isfinite([slopes.up, slopes.down]).all():
            raise ParameterError("solver", self.name, "needs a penalty that forbids no feature and no sign")

    def run(self, problem: Problem, start: Any, loop: Loop) -> None:
        objective = problem.objective
        if not isinstance(start, FtrlState | None):
            raise ParameterError("start", start, "must be an FtrlState for the solver ftrl")
        state = FtrlState.zeros(problem.n_features) if start is None else start
        features: Any = objective.features  # a FeatureMatrix: nothing else offers "rows"
        passes = Passes(
            features.X, objective.loss.queries, objective.loss.level, objective.loss.weight,
            objective.loss.mass,
        )  # fmt: skip
        while True:
            point = objective.evaluate(state.w.copy())
            if loop.ends(point.w, problem.value(point), problem.gap(point), np.inf, point):
                return
            passes.run(
                self.rule,
                state,
                epoch_order(self.random_state, state.n_passes, objective.loss.queries.n_queries),
            )
            state.n_passes += 1


def epoch_order(random_state: int | None, epoch: int, n_queries: int) -> IntArray:
    """The order of queries in one pass, drawn from (random_state, epoch); None: that of first appearance."""
    if random_state is None:
        return np.arange(n_queries)
    return np.random.default_rng([random_state, epoch]).permutation(n_queries)
