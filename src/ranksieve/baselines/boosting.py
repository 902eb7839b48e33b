"""AdaRank, RankBoost and LambdaMART: rankers that sum features, step functions or trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib import import_module
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranksieve._parallel import available_threads, map_blocks, split_blocks
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve.baselines.kernels import pair_potentials, threshold_margins
from ranksieve.data.dataset import Dataset, checked_query_weight
from ranksieve.data.describe import varying_columns
from ranksieve.data.features import dense_columns
from ranksieve.data.inputs import numbered_names
from ranksieve.data.matrix import as_plain
from ranksieve.data.queries import local_levels
from ranksieve.errors import DataError, ParameterError, how_to_install, warn_caller
from ranksieve.losses.base import NO_PAIRS, grouped_weights
from ranksieve.metrics import METRICS, Evaluator, MetricSpec, Profile, parse
from ranksieve.metrics.profiles import as_profile
from ranksieve.model.boosted import BoostedModel, Feature, Steps, Trees
from ranksieve.model.linear import LinearModel, linear_scores
from ranksieve.prepare import Preparation
from ranksieve.rankers.base import Attributes, Ranker, Task, as_dataset
from ranksieve.rankers.parameters import Count, Interval, NotNegative, Positive, Seed
from ranksieve.solvers import Callback, Trace


def query_weight_with_pairs(data: Dataset, query_weight: FloatArray | None) -> FloatArray:
    """Return one weight per query; raise an error if no query with pairs has a positive weight."""
    weight = checked_query_weight(query_weight, data.n_queries)
    if not data.pairs_per_query @ weight > 0:
        raise DataError(None, None, NO_PAIRS)
    return weight


class BoostedRanker(Ranker):
    """A ranker whose score is a sum of step functions or trees on the columns ``support_``."""

    @property
    @abstractmethod
    def support_(self) -> IntArray:
        """Columns in use, ascending."""

    def _prepare(
        self, source: Dataset, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        """Store fill values in the precision of the data (float32 for float32 data), as used in learning.

        A fill value that differs in the last bit may send a document to the other side of a split.
        """
        preparation, filled = Preparation.learn_and_fill(source, self.normalise, self.missing, query_weight)
        means = np.array(preparation.missing.means).astype(source.X.dtype)
        missing = replace(preparation.missing, means=tuple(means.tolist()))
        return replace(preparation, missing=missing), preparation.normalisation.apply(filled)

    def _scores(self, X: Matrix, qid: Any) -> FloatArray:
        if self.preparation_.per_query and qid is None:
            reason = f"{type(self).__name__} prepares features within each query"
            raise ParameterError("qid", None, f"{reason}; pass a Dataset to predict, or one query id per row")
        if self.preparation_.changes_features:
            ids = qid if self.preparation_.per_query else None
            rows = as_dataset(X, np.zeros(X.shape[0]), ids, self._origin.names)
            X = self.preparation_.apply(rows).X
        return self._prepared_scores(X)

    @abstractmethod
    def _prepared_scores(self, X: Matrix) -> FloatArray:
        """Return the scores of prepared features."""

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        return self.predict

    def _columns_read(self) -> IntArray:
        return np.unique(self._input_model().columns).astype(np.int64)

    def _input_model(self) -> LinearModel:
        """Return a model with the features in use and their columns; its weights are dummies."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return LinearModel.of(names, self.support_, np.ones(len(self.support_)), self.preparation_)

    @abstractmethod
    def _ensemble(self) -> Steps | Trees:
        """Return the step functions or trees, as functions of the columns in use."""

    def to_model(self) -> BoostedModel:
        """Return the fitted ranker as a model that can be saved."""
        check_is_fitted(self, "n_features_in_")
        inputs = self._input_model()
        return BoostedModel(
            features=tuple(map(Feature, inputs.names, inputs.columns)),
            n_features=self.n_features_in_,
            ensemble=self._ensemble(),
            preparation=inputs.preparation,
            method=type(self).__name__,
            parameters=self._fit_parameters,
            data=self._origin.fingerprints,
        )


MARGIN_TIE = 1e-12  # margins that differ by less are ties, so that rounding does not break them
MAX_THRESHOLDS = 2**16 - 1


@dataclass(eq=False, repr=False)
class RankBoost(BoostedRanker):
    """Greedily minimise (1/p) Σ_{pairs} exp(−(s_i − s_j)), s(x) = Σ_t α_t 1[x_{j_t} > θ_t].

    Pairs (i, j) are documents of one query with y_i > y_j. Each round weights them by
    D_ij ∝ exp(−(s_i − s_j)), takes the weak ranker h(x) = 1[x_f > θ] with the largest |r|,
    r = Σ D_ij (h(x_i) − h(x_j)), and adds it with the weight α = ½ ln((1 + r)/(1 − r)), which may be
    negative. It stops early when no weak ranker helps, or when one orders all pairs. Pairs are never
    enumerated: as D_ij is a product, r = Σ_i π_i h(x_i) with potentials π from sums over label levels, and a
    round costs O(n·d) for n documents and d features.

    Parameters
    ----------
    n_rounds : int
        Maximum number of rounds. LETOR's baselines select it on validation data.
    n_thresholds : int
        Maximum number of thresholds per feature, at most 65,535. Thresholds are midpoints between
        neighbouring values: all of them if there are not more, else those nearest to evenly spaced quantiles
        of the documents, weighted by document and query weights.

    Attributes
    ----------
    chosen_, thresholds_, round_weights_ : arrays
        Feature j, threshold θ and weight α of each round.
    objective_ : float
        Mean exponential loss; ``trace_`` has it for each round, with the number of features in use.
    n_iter_ : int
        Number of rounds.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An Efficient Boosting Algorithm for Combining Preferences,
    Journal of Machine Learning Research 4, 2003. Here all pairs start with the same weight, whatever their
    labels.
    """

    chosen_: IntArray = field(init=False)
    thresholds_: FloatArray = field(init=False)
    round_weights_: FloatArray = field(init=False)

    n_rounds: Count = 300
    _: KW_ONLY
    n_thresholds: Annotated[int, Interval(Integral, 1, MAX_THRESHOLDS, closed="both")] = 255

    def _abilities(self) -> Collection[str]:
        return ("document_weight",)

    def _fit(self, task: Task) -> Attributes:
        weight = checked_query_weight(task.query_weight, task.data.n_queries)
        pairs, weak_rankers = (
            WeightedPairs(task.data, weight),
            WeakRankers.of(task.data, weight, self.n_thresholds),
        )
        scores, used = np.zeros(weak_rankers.codes.shape[1]), np.zeros(len(weak_rankers.codes))
        rounds, trace = list[tuple[int, float, float]](), Trace()
        potential, objective = pairs.potentials(scores)
        for _ in range(self.n_rounds):
            feature, cut, r = weak_rankers.best(potential)
            if abs(r) <= MARGIN_TIE:
                break
            alpha = float(np.arctanh(np.clip(r, MARGIN_TIE - 1.0, 1.0 - MARGIN_TIE)))
            scores += alpha * (weak_rankers.codes[feature] > cut)
            rounds.append((feature, weak_rankers.thresholds[feature][cut], alpha))
            used[feature] = 1.0
            potential, objective = pairs.potentials(scores)
            trace.record(objective, np.nan, used)
            if task.callback is not None:
                task.callback(len(rounds), np.array([a for _, _, a in rounds]), objective, np.nan)
            if abs(r) >= 1.0 - MARGIN_TIE:
                break
        return {
            "chosen_": np.array([j for j, _, _ in rounds], dtype=np.int64),
            "thresholds_": np.array([theta for _, theta, _ in rounds], dtype=np.float64),
            "round_weights_": np.array([a for _, _, a in rounds], dtype=np.float64),
            "objective_": objective,
            "n_iter_": len(rounds),
            "trace_": trace,
        }

    @property
    def support_(self) -> IntArray:
        """Columns in use, ascending."""
        return np.unique(self.chosen_)

    def _prepared_scores(self, X: Matrix) -> FloatArray:
        return self._ensemble().scores_of_columns(dense_columns(X[:, self.support_]), X.shape[0])

    def _ensemble(self) -> Steps:
        inputs = np.searchsorted(self.support_, self.chosen_)
        parts = (inputs, self.thresholds_, self.round_weights_)
        return Steps(*(tuple(part.tolist()) for part in parts))


class WeightedPairs:
    """The pairs of a data set with weights D_ij ∝ weight_q v_i v_j e^{s_j − s_i}, v the document weights.

    Arrays are in input order.
    """

    def __init__(self, data: Dataset, weight: FloatArray) -> None:
        self.queries, self._weight = data.queries, weight
        self._level = local_levels(data.queries.group(data.y), data.queries)
        self._document_weight = grouped_weights(data.document_weight, data.queries)
        self._count = float(data.pair_weights @ weight)
        if self._count <= 0:
            raise DataError(None, None, NO_PAIRS)

    def potentials(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """π_i = Σ_j D_ij − Σ_j D_ji, and the mean of e^{s_j − s_i} before D is normalised."""
        s, potential, loss = self.queries.group(scores), np.empty(len(scores)), np.empty(len(self._weight))

        def work(first: int, last: int) -> None:
            weights = self._weight, self._document_weight
            pair_potentials(s, self._level, self.queries.offsets, *weights, first, last, potential, loss)

        map_blocks(work, split_blocks(self.queries.offsets))
        total = float(loss.sum())
        return self.queries.restore(potential / total), total / self._count


@dataclass(frozen=True, eq=False)
class WeakRankers:
    """The weak rankers 1[x_f > thresholds[f][b]]; ``codes[f, i]`` is the number of thresholds below x_if."""

    codes: AnyArray
    thresholds: list[FloatArray]

    @classmethod
    def of(cls, data: Dataset, query_weight: FloatArray, n_thresholds: int) -> WeakRankers:
        codes = np.empty((data.n_features, data.n_docs), dtype=np.uint16)
        thresholds, rows = [], data.row_weights(query_weight)
        for code, column in zip(codes, dense_columns(data.X), strict=True):
            thresholds.append(feature_thresholds(column, rows, n_thresholds))
            code[:] = np.searchsorted(thresholds[-1], column, side="left")
        return cls(codes, thresholds)

    def best(self, potential: FloatArray) -> tuple[int, int, float]:
        """Return feature, threshold index and r of the largest |r|; ties go to the first."""
        n_features, n_docs = self.codes.shape
        width = max(1, *map(len, self.thresholds))
        r, blocks = np.empty((n_features, width)), split_blocks(np.arange(n_features + 1) * n_docs)
        map_blocks(lambda a, b: threshold_margins(self.codes, potential, a, b, r), blocks)
        size = np.abs(r).ravel()
        feature, cut = divmod(int(np.argmax(size >= size.max() - MARGIN_TIE)), width)
        return feature, cut, float(r[feature, cut])


def feature_thresholds(column: FloatArray, weight: FloatArray, n_thresholds: int) -> FloatArray:
    """Return at most ``n_thresholds`` midpoints between neighbouring values, ascending, at quantiles.

    Documents have the given weights in the quantiles.
    """
    values, index = np.unique(column, return_inverse=True)
    cuts = np.arange(len(values) - 1)
    if len(cuts) > n_thresholds:
        below = np.cumsum(np.bincount(index, weight))
        quantiles = np.arange(1, n_thresholds + 1) * (below[-1] / (n_thresholds + 1))
        cuts = np.unique(np.searchsorted(below, quantiles))
        cuts = cuts[cuts < len(values) - 1]
    low, high = values[cuts], values[cuts + 1]
    middle = 0.5 * low + 0.5 * high
    return np.where(middle < high, middle, low)  # the midpoint of adjacent floats may round to the larger one


LAMBDARANK = "lambdarank"
MAX_LIGHTGBM_DOCUMENTS = 10_000  # LightGBM's limit per query
DOCS_PER_THREAD = 4096  # with fewer, LightGBM's threads spend more time waiting than working


def import_lightgbm(method: str) -> Any:
    """Import lightgbm; the error message names the method that needs it."""
    try:
        return import_module("lightgbm")
    except ImportError:
        raise ImportError(f"{method} needs lightgbm: {how_to_install('baselines')}") from None


@dataclass(eq=False, repr=False)
class LambdaMART(BoostedRanker):
    """Regression trees, each fitted to the lambdas |ΔNDCG_ij| / (1 + e^{s_i − s_j}) of pairs with y_i > y_j.

    ΔNDCG_ij is the NDCG lost by swapping i and j in the current ranking. The fit is done by LightGBM
    (objective ``lambdarank``), without output, and does not depend on the number of threads or the order of
    the rows. The gain of a label is 2^y − 1. LightGBM needs integer labels and a table of gains; it gets the
    index of each distinct label and its gain, so that labels may be any numbers ≥ 0.

    Parameters
    ----------
    n_rounds : int
        Number of trees.
    learning_rate : float
        Shrinkage of each tree.
    n_leaves : int
        Maximum number of leaves per tree.
    min_leaf_docs : int
        Minimum number of documents per leaf.
    l2 : float
        ℓ2 penalty on leaf values.
    truncation : int
        Only pairs with a document among the first ``truncation`` ranks count.
    options : mapping, optional
        Further LightGBM parameters, by their LightGBM names; they override the parameters above.
    n_jobs : int, optional
        Number of threads; by default that of ranksieve (RANKSIEVE_THREADS or all cores), fewer for small
        data.
    random_state : int
        Seed of LightGBM's random sampling, if ``options`` turn it on.

    Attributes
    ----------
    booster_ : lightgbm.Booster
    n_iter_ : int
        Number of trees; fewer than ``n_rounds`` if no further split is possible.

    References
    ----------
    Q. Wu, C. J. C. Burges, K. M. Svore, J. Gao: Adapting boosting for information retrieval measures,
    Information Retrieval 13(3), 2010. G. Ke et al.: LightGBM, NIPS 2017.
    """

    booster_: Any = field(init=False)

    n_rounds: Count = 200
    _: KW_ONLY
    learning_rate: Positive = 0.05
    n_leaves: Annotated[int, Interval(Integral, 2, None, closed="left")] = 31
    min_leaf_docs: Count = 20
    l2: NotNegative = 0.0
    truncation: Count = 30
    options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    random_state: Seed = 0

    def _abilities(self) -> Collection[str]:
        return ("grades",)

    def _fit(self, task: Task) -> Attributes:
        lightgbm, data = import_lightgbm("LambdaMART"), task.data
        weight = query_weight_with_pairs(data, task.query_weight)
        parameters = self._parameters(data.n_docs)
        if parameters["objective"] == LAMBDARANK:
            _check_query_sizes(data)
        label_gain, label = _gain_levels(data)
        rows = _neutral_order(data)
        train = lightgbm.Dataset(
            as_plain(data.X[rows]),
            label[rows],
            group=data.queries.sizes,
            weight=None if task.query_weight is None else np.repeat(weight, data.queries.sizes),
        )
        parameters = {"label_gain": label_gain.tolist(), **parameters}
        booster = lightgbm.train(parameters, train, self.n_rounds, callbacks=_callbacks(task.callback))
        return {"booster_": booster, "n_iter_": int(booster.num_trees())}

    def _parameters(self, n_docs: int) -> dict[str, Any]:
        return {
            "objective": LAMBDARANK,
            "learning_rate": self.learning_rate,
            "num_leaves": self.n_leaves,
            "min_data_in_leaf": self.min_leaf_docs,
            "lambda_l2": self.l2,
            "lambdarank_truncation_level": self.truncation,
            "num_threads": self._threads(n_docs),
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
            **(self.options or {}),
        }

    def _threads(self, n_docs: int) -> int:
        return min(available_threads(), 1 + n_docs // DOCS_PER_THREAD) if self.n_jobs is None else self.n_jobs

    @property
    def support_(self) -> IntArray:
        """Columns used in splits, ascending."""
        return np.flatnonzero(self.booster_.feature_importance("split"))

    def _prepared_scores(self, X: Matrix) -> FloatArray:
        n_threads = self._threads(X.shape[0])
        return np.asarray(self.booster_.predict(as_plain(X), raw_score=True, num_threads=n_threads))

    def _ensemble(self) -> Trees:
        return Trees.of(self.booster_, self.support_)


def _check_query_sizes(data: Dataset) -> None:
    longest, size = data.queries.longest
    if size > MAX_LIGHTGBM_DOCUMENTS:
        reason = (
            f"query {longest} has {size} documents, but LightGBM accepts at most {MAX_LIGHTGBM_DOCUMENTS}"
        )
        advice = "keep the best documents of a first ranking, or use another method than LambdaMART"
        raise DataError(None, None, f"{reason}; {advice}")


def _gain_levels(data: Dataset) -> tuple[FloatArray, IntArray]:
    """Return the distinct gains 2^y − 1, ascending, and the index of each document's gain among them."""
    evaluator = Evaluator(data, "standard")
    gains = data.queries.restore(evaluator.judged.gains(evaluator.profile))
    levels, codes = np.unique(gains, return_inverse=True)
    return levels, codes


def _neutral_order(data: Dataset) -> IntArray:
    """Return the rows grouped by query, in an order within the query that depends only on the features.

    All scores are equal before the first tree, so LightGBM ranks by row: if rows were sorted by label, the
    labels would leak into the first lambdas.
    """
    projection = np.random.default_rng(0).normal(size=data.n_features)
    grouped = data.queries.group(np.asarray(data.X @ projection))
    return data.queries.order[np.lexsort((grouped, data.queries.query_of_grouped))]


def _callbacks(callback: Callback | None) -> list[Any]:
    if callback is None:
        return []
    return [lambda env: callback(env.iteration + 1, np.empty(0), np.nan, np.nan)]


MAX_PERFORMANCE = 1.0 - 1e-15  # a feature that ranks every query perfectly would get an infinite weight
METRIC_ALWAYS_ZERO = (
    "{metric} ({profile} profile) is 0 for every feature, so it cannot guide the choice of features and all "
    "weights are 0; use another `metric` or `profile` (in the letor profile, NDCG@k is 0 for lists shorter "
    "than k)"
)


@dataclass(eq=False, repr=False)
class AdaRank(Ranker):
    """Greedily reduce Σ_q exp(−E(q, f)), E the metric of query q ranked by f = Σ_t α_t x_{j_t}.

    Each round weights the queries by P(q) ∝ exp(−E(q, f)), so that badly ranked ones count more, takes the
    feature j with the largest r = Σ_q P(q) E(q, x_j) and adds it with the weight
    α = ½ ln[Σ_q P(q)(1 + E(q, x_j)) / Σ_q P(q)(1 − E(q, x_j))] = artanh r. The model is linear and sparse.
    As in the paper, higher feature values always rank first: negate a feature that decreases with relevance.

    Parameters
    ----------
    metric : str
        E, a metric in [0, 1], such as "ndcg@10" or "map". A query without a relevant document has E = 0.
    n_rounds : int
        Maximum number of rounds. LETOR's baselines select it on validation data.
    tol : float
        Stop before a round that would lower the mean metric by more than ``tol`` (RankLib uses 0.002);
        infinity: run all rounds.
    profile : "letor", "mslr", "standard" or Profile
        Metric conventions for labels, ranks and short lists.
    repeat : bool
        Whether a feature may be chosen twice in a row, as in the paper. If the second round chooses the same
        feature as the first, neither the ranking nor P changes, and every later round chooses it too.

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
        NaN: there is no bound on the distance from the minimum of the objective.

    References
    ----------
    J. Xu, H. Li: AdaRank: A Boosting Algorithm for Information Retrieval, SIGIR 2007.
    """

    chosen_: IntArray = field(init=False)
    round_weights_: FloatArray = field(init=False)
    performance_: FloatArray = field(init=False)

    metric: str = "ndcg@10"
    n_rounds: Count = 100
    _: KW_ONLY
    tol: Annotated[float, Interval(Real, 0, np.inf, closed="both")] = 0.002
    profile: str | Profile = "letor"
    repeat: bool = False

    def _abilities(self) -> Collection[str]:
        return ("linear", "grades")

    def _fit(self, task: Task) -> Attributes:
        data, spec = task.data, parse(self.metric)
        if not METRICS[spec.name].at_most_one:
            reason = "AdaRank needs a metric between 0 and 1, for example ndcg@10"
            raise ParameterError("metric", self.metric, reason)
        weight = query_weight_with_pairs(data, task.query_weight)
        evaluator = Evaluator(data, self.profile, empty=0.0)
        feature_metrics = _metric_of_features(data, evaluator, spec)
        coef, trace, losses = np.zeros(data.n_features), Trace(), weight
        chosen, round_weights, performance = list[int](), list[float](), list[float]()
        for _ in range(self.n_rounds):
            r = feature_metrics @ (losses / losses.sum())
            if chosen and not self.repeat:
                r[chosen[-1]] = 0.0
            feature = int(np.argmax(r))
            if not r[feature] > 0:
                break
            alpha, next_coef = float(np.arctanh(min(r[feature], MAX_PERFORMANCE))), coef.copy()
            next_coef[feature] += alpha
            used = np.flatnonzero(next_coef)
            (values,) = evaluator.per_query(linear_scores(data.X, used, next_coef[used]), [spec])
            mean = float(np.average(values, weights=weight))
            if performance and mean < performance[-1] - self.tol:
                break
            chosen.append(feature)
            round_weights.append(alpha)
            performance.append(mean)
            coef, losses = next_coef, weight * np.exp(-values)
            trace.record(float(losses.sum()), np.nan, coef)
            if task.callback is not None:
                task.callback(len(chosen), coef.copy(), float(losses.sum()), np.nan)
        if not chosen:
            warn_caller(METRIC_ALWAYS_ZERO.format(metric=self.metric, profile=as_profile(self.profile).name))
        return {
            "coef_": coef,
            "chosen_": np.array(chosen, dtype=np.int64),
            "round_weights_": np.array(round_weights),
            "performance_": np.array(performance),
            "objective_": float(losses.sum()),
            "gap_": np.nan,
            "n_iter_": len(chosen),
            "trace_": trace,
        }

    def _metrics(self) -> dict[str, float]:
        metric = self._fit_parameters["metric"]
        return {f"train {metric}": float(self.performance_[-1])} if self.n_iter_ else {}


def _metric_of_features(data: Dataset, evaluator: Evaluator, metric: MetricSpec) -> FloatArray:
    """Return E(q, x_j) (features × queries); 0 for features that are constant within every query."""
    values, varies = np.zeros((data.n_features, data.n_queries)), varying_columns(data)
    for j, column in enumerate(dense_columns(data.X)):
        if varies[j]:
            (values[j],) = evaluator.per_query(column, [metric])
    return values
