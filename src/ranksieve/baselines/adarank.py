"""AdaRank: boosting on a ranking metric, with single features as weak rankers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve._util.messages import warn_caller
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.describe import varying_columns
from ranksieve.data.features import dense_columns
from ranksieve.errors import DataError, ParameterError
from ranksieve.losses.base import NO_PAIRS
from ranksieve.metrics import METRICS, Evaluator, MetricSpec, Profile, parse
from ranksieve.metrics.profiles import as_profile
from ranksieve.model.linear import linear_scores
from ranksieve.rankers.base import LinearRanker, PlainFit
from ranksieve.rankers.parameters import Count, Interval
from ranksieve.solvers import Callback, Trace

PERFECT = 1.0 - 1e-15  # a feature that ranks every query perfectly would get an infinite weight
NO_GUIDE = (
    "{metric} ({profile} profile) is 0 for every feature, so it cannot guide the choice of features and all "
    "weights are 0; use another `metric` or `profile` (letor gives lists shorter than k an NDCG@k of 0)"
)


@dataclass(eq=False, repr=False)
class AdaRank(PlainFit, LinearRanker):
    """Greedily reduce Σ_q exp(−E(q, f)), E the metric of query q ranked by f = Σ_t α_t x_{j_t}.

    Each round looks at the queries through P(q) ∝ exp(−E(q, f)), so those that are ranked badly count more,
    takes the feature j with the largest r = Σ_q P(q) E(q, x_j) and adds it with the weight
    α = ½ ln[Σ_q P(q)(1 + E(q, x_j)) / Σ_q P(q)(1 − E(q, x_j))] = artanh r. So the model is linear and sparse.
    Features rank as they are, higher values first (the paper's rule): negate one that falls with relevance.

    Parameters
    ----------
    metric : str
        E, a metric in [0, 1], such as "ndcg@10" or "map". A query without a relevant document has E = 0.
    n_rounds : int
        Most rounds. LETOR's practice is to choose it on validation data.
    tol : float
        Stop before a round after which the mean metric would be more than ``tol`` below the round before
        (as RankLib, which uses 0.002); infinity takes all rounds.
    profile : "letor", "mslr", "standard" or Profile
        How the metric reads labels, ranks and short lists.
    repeat : bool
        Whether a feature may be chosen twice in a row, as in the paper. When the second choice is the first
        feature again, neither the ranking nor P changes, and it is chosen for ever; hence False.

    Attributes
    ----------
    chosen_ : array
        The feature of each round.
    round_weights_ : array
        α of each round; ``coef_`` holds their sums by feature.
    performance_ : array
        Mean metric of the training queries after each round.
    objective_ : float
        Σ_q exp(−E(q, f)), weighted with ``query_weight``; ``trace_`` has it for each round.
    gap_ : float
        NaN: nothing is proven on how far the objective is from its least value.

    References
    ----------
    J. Xu, H. Li: AdaRank: A Boosting Algorithm for Information Retrieval, SIGIR 2007.
    """

    scale_matters = False
    metric: str = "ndcg@10"
    n_rounds: Count = 100
    _: KW_ONLY
    tol: Annotated[float, Interval(Real, 0, np.inf, closed="both")] = 0.002
    profile: str | Profile = "letor"
    repeat: bool = False

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        spec = self._checked_metric()
        weight = checked_query_weight(query_weight, data.n_queries)
        if not data.pairs_per_query @ weight > 0:
            raise DataError(None, None, NO_PAIRS)
        weak = WeakRankers.of(data, self.profile, spec)
        self.coef_, self.trace_, rounds = np.zeros(data.n_features), Trace(), []
        for done in boost(weak, weight, self.n_rounds, self.tol, self.repeat):
            rounds.append(done)
            self.coef_[done.feature] += done.weight
            self.trace_.record(done.loss, np.nan, self.coef_)
            if callback is not None:
                callback(len(rounds), self.coef_.copy(), done.loss, np.nan)
        self._keep(rounds, float(weight.sum()))

    def _checked_metric(self) -> MetricSpec:
        spec = parse(self.metric)
        if not METRICS[spec.name].at_most_one:
            reason = "AdaRank needs a metric between 0 and 1, for example ndcg@10"
            raise ParameterError("metric", self.metric, reason)
        return spec

    def _keep(self, rounds: list[Round], loss_at_zero: float) -> None:
        if not rounds:
            name = as_profile(self.profile).name
            warn_caller(NO_GUIDE.format(metric=self.metric, profile=name))
        self.chosen_ = np.array([done.feature for done in rounds], dtype=np.int64)
        self.round_weights_ = np.array([done.weight for done in rounds])
        self.performance_ = np.array([done.performance for done in rounds])
        self.objective_ = rounds[-1].loss if rounds else loss_at_zero
        self.gap_, self.n_iter_ = np.nan, len(rounds)

    def _measured(self) -> dict[str, float]:
        metric = self._learned_with["metric"]
        return {f"train {metric}": float(self.performance_[-1])} if self.n_iter_ else {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(frozen=True, eq=False)
class WeakRankers:
    """The features of a data set and the metric of each on each query (features × queries).

    A feature that is constant within every query ranks nothing: it counts 0.
    """

    data: Dataset
    evaluator: Evaluator
    metric: MetricSpec
    values: FloatArray

    @classmethod
    def of(cls, data: Dataset, profile: str | Profile, metric: MetricSpec) -> WeakRankers:
        evaluator = Evaluator(data, profile, empty=0.0)
        values = np.zeros((data.n_features, data.n_queries))
        varies = varying_columns(data)
        for j, column in enumerate(dense_columns(data.X)):
            if varies[j]:
                (values[j],) = evaluator.per_query(column, [metric])
        return cls(data, evaluator, metric, values)

    def best(self, P: FloatArray, barred: int | None) -> tuple[int, float]:
        """The feature with the largest r = Σ_q P(q) E(q, x_j), other than ``barred``, and r."""
        r = self.values @ P
        if barred is not None:
            r[barred] = 0.0
        feature = int(np.argmax(r))
        return feature, float(r[feature])

    def measure(self, coef: FloatArray) -> FloatArray:
        """The metric of each query ranked with these weights."""
        used = np.flatnonzero(coef)
        return self.evaluator.per_query(linear_scores(self.data.X, used, coef[used]), [self.metric])[0]


@dataclass(frozen=True)
class Round:
    """The feature a round added, its weight, and the training metric and loss it led to."""

    feature: int
    weight: float
    performance: float
    loss: float


def boost(
    weak: WeakRankers, query_weight: FloatArray, n_rounds: int, tol: float, repeat: bool
) -> Iterator[Round]:
    """The rounds of AdaRank, until one would fall back by more than ``tol`` or no feature helps."""
    losses, coef = query_weight, np.zeros(weak.data.n_features)
    reached, last = -np.inf, None
    for _ in range(n_rounds):
        feature, r = weak.best(losses / losses.sum(), last)
        if not r > 0:
            return
        weight = float(np.arctanh(min(r, PERFECT)))
        coef[feature] += weight
        values = weak.measure(coef)
        performance = float(np.average(values, weights=query_weight))
        if performance < reached - tol:
            return
        losses = query_weight * np.exp(-values)
        yield Round(feature, weight, performance, float(losses.sum()))
        reached, last = performance, None if repeat else feature
