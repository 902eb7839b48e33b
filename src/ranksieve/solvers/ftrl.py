"""FTRL-proximal (follow the regularised leader) over batches of pairs of a query."""

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
from ranksieve.kernels.ftrl import FtrlArrays, FtrlData, Rule, ftrl_pass
from ranksieve.losses.base import grouped_weights
from ranksieve.solvers.base import Loop, Problem, Solver

DENSE_BLOCK_CELLS = 1 << 20  # matrix cells converted to dense float64 at a time
DEFAULT_RULE = Rule(l1=64.0, rate=0.0625, smoothing=1.0, feature_wise=True, batch_pairs=0)
MAX_WEIGHT = 1e100  # larger weights have diverged: their squares would soon overflow


@dataclass(eq=False)
class FtrlState:
    """The state of the algorithm between batches."""

    squares: FloatArray
    """n = Σ g², per feature."""
    sums: FloatArray
    """v = Σ (g − σw), per feature."""
    w: FloatArray
    n_batches: int = 0
    n_pairs: float = 0.0
    """Total weight of the pairs seen, counted once per pass."""
    n_passes: int = 0

    @classmethod
    def zeros(cls, n_features: int) -> FtrlState:
        return cls(np.zeros(n_features), np.zeros(n_features), np.zeros(n_features))

    def ordered(self, columns: Sequence[int]) -> FtrlState:
        """A copy with the features in another order."""
        return replace(self, squares=self.squares[columns], sums=self.sums[columns], w=self.w[columns])

    def widened(self, n_features: int) -> FtrlState:
        """The state with zeros for further features, which no batch so far had."""
        more = n_features - len(self.w)
        if more <= 0:
            return self
        squares, sums, w = (np.pad(array, (0, more)) for array in (self.squares, self.sums, self.w))
        return replace(self, squares=squares, sums=sums, w=w)

    def to_dict(self) -> dict[str, Any]:
        """Lists and numbers for JSON; :meth:`from_dict` restores every bit."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FtrlState:
        arrays = {name: np.array(content[name], dtype=np.float64) for name in ("squares", "sums", "w")}
        if not all(a.shape == (len(arrays["w"]),) and np.isfinite(a).all() for a in arrays.values()):
            raise DataError(None, None, "the arrays of the FTRL state must be finite and of equal length")
        counts = int(content["n_batches"]), float(content["n_pairs"]), int(content["n_passes"])
        return cls(arrays["squares"], arrays["sums"], arrays["w"], *counts)


class FtrlPasses:
    """Passes of FTRL over a data set, query by query.

    Queries without pairs, or with weight 0, are skipped. Dense float64 in C order is read in place; other
    data (float32, CSR, scattered rows) are copied to dense float64 a few queries at a time, from CSR only the
    features that occur in these queries. The results have the same bits.
    """

    def __init__(
        self,
        X: Matrix,
        queries: Queries,
        level: IntArray,
        query_weight: FloatArray,
        document_weight: FloatArray | None = None,
    ) -> None:
        self._X, self._queries = X, queries
        self._query_weight, self._document_weight = query_weight, document_weight
        self._level = level.astype(np.int64, copy=False)  # losses use smaller types; one version is compiled
        self._pairs = pairs_per_query(level, queries)
        self._pair_weights = query_weight * pair_weights(level, queries, document_weight)
        self._has_pairs: BoolArray = self._pair_weights > 0

    @classmethod
    def of(cls, data: Dataset, query_weight: FloatArray | None = None) -> FtrlPasses:
        level = local_levels(data.queries.group(data.y), data.queries)
        weight = checked_query_weight(query_weight, data.n_queries)
        return cls(data.X, data.queries, level, weight, grouped_weights(data.document_weight, data.queries))

    def run(self, rule: Rule, state: FtrlState, sequence: IntArray | None = None) -> None:
        """Learn from each query once, in the order of ``sequence`` (default: of first appearance)."""
        order = np.arange(self._queries.n_queries) if sequence is None else sequence
        order = order[self._has_pairs[order]]
        arrays = FtrlArrays(state.squares, state.sums, state.w)
        for X, columns, data, queries in self._blocks(order):
            state.n_batches = ftrl_pass(X, columns, data, queries, rule, state.n_batches, arrays)
        state.n_pairs += float(np.sum(self._pair_weights[order]))
        if not (all(np.isfinite(a).all() for a in arrays) and np.all(np.abs(state.w) < MAX_WEIGHT)):
            reason = "the weights diverged; use a smaller value or scale the features"
            raise ParameterError("rate", rule.rate, reason)

    def _blocks(self, order: IntArray) -> Iterator[tuple[FloatArray, IntArray, FtrlData, IntArray]]:
        """Yield blocks: (features, their columns, data of queries, order of these queries)."""
        if is_float64_in_place(self._X) and self._queries.contiguous:
            data = FtrlData(
                self._queries.offsets, self._level, self._pairs, self._query_weight, self._document_weight
            )
            yield np.asarray(self._X), np.arange(self._X.shape[1]), data, order
            return
        block = np.cumsum(self._queries.sizes[order]) * self._X.shape[1] // DENSE_BLOCK_CELLS
        for queries in np.split(order, np.flatnonzero(np.diff(block)) + 1) if len(order) else ():
            positions, offsets = self._positions(queries)
            rows = positions if self._queries.contiguous else self._queries.order[positions]
            X, columns = dense_stored_columns(self._X[rows])
            weight = None if self._document_weight is None else self._document_weight[positions]
            level, pairs = self._level[positions], self._pairs[queries]
            data = FtrlData(offsets, level, pairs, self._query_weight[queries], weight)
            yield X, columns, data, np.arange(len(queries))

    def _positions(self, queries: IntArray) -> tuple[IntArray, IntArray]:
        """Positions of the rows of some queries in grouped order, and the offsets of the queries in them."""
        sizes = self._queries.sizes[queries]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        shift = self._queries.offsets[queries] - offsets[:-1]
        return np.arange(offsets[-1]) + np.repeat(shift, sizes), offsets


@dataclass(frozen=True)
class Ftrl(Solver):
    """FTRL with ``max_iter`` passes over the queries; the order of pass e is drawn from (random_state, e).

    A weight stays 0 while |Σ g| ≤ λ, where the sum is over all pairs seen, so λ acts as α = λ/(pairs seen) on
    the mean loss. Objective and gap are those of the problem, f + α‖w‖₁ with the α of the last pass; there is
    no stopping rule. Without ``random_state`` queries are in order of first appearance. A start must be an
    :class:`FtrlState`, which is updated in place.
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
            raise ParameterError(
                "solver", self.name, "needs a penalty without excluded features and without sign constraints"
            )

    def run(self, problem: Problem, start: Any, loop: Loop) -> None:
        objective = problem.objective
        if not isinstance(start, FtrlState | None):
            raise ParameterError("start", start, "must be an FtrlState for the solver ftrl")
        state = FtrlState.zeros(problem.n_features) if start is None else start
        features: Any = objective.features  # a FeatureMatrix, because the loss offers "rows"
        passes = FtrlPasses(
            features.X, objective.loss.queries, objective.loss.level, objective.loss.query_weight,
            objective.loss.document_weight,
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
    """Order of queries in one pass, drawn from (random_state, epoch); if None, order of first appearance."""
    if random_state is None:
        return np.arange(n_queries)
    return np.random.default_rng([random_state, epoch]).permutation(n_queries)
