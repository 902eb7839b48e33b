"""HybridRanker: the weights of the clauses of a hybrid search, selected on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np

from ranksieve._types import AnyArray, BoolArray, FloatArray, PathLike
from ranksieve.choice.decide import RULES, Choice, interval
from ranksieve.choice.families import PATH
from ranksieve.choice.held_out import HeldOut, Validation, number_of_folds, tied, warn_of_shared_queries
from ranksieve.choice.update import Changes, as_model, model_digest
from ranksieve.data.budget import Budget, Features
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import (
    Dataset,
    QueryWeight,
    drop_zero_weight,
    fingerprint,
    fingerprint_of_weights,
    query_weights,
)
from ranksieve.data.matrix import dense_block
from ranksieve.data.result_lists import RRF_K, list_scaling, rank_constant
from ranksieve.errors import DataError, ParameterError, printable, short_list, warn_caller
from ranksieve.losses import SquaredHinge
from ranksieve.metrics import Profile, profile_for
from ranksieve.model.linear import FittedRanker, LinearModel
from ranksieve.path import Progress
from ranksieve.prepare import NO_PREPARATION, MissingPolicy, Normalisation, Preparation
from ranksieve.prepare.scaling import learn_normalisation
from ranksieve.rankers.base import Attributes, Origin, Ranker, Task, ValidData, as_valid, in_column_order
from ranksieve.rankers.parameters import (
    Count,
    FoldCount,
    Interval,
    PairWeighting,
    Seed,
    cost_of,
    one_of,
    plain_budget,
    stated_budget,
    stated_costs,
)
from ranksieve.rankers.sparse_ranker import SparseRanker
from ranksieve.solvers import Problem
from ranksieve.solvers.base import Trace

VALUES = ("scores", "ranks")
RANK_CONSTANTS = (10, RRF_K)
QDRANT_K = 1  # its default 2 counts ranks from 0
KINDS: dict[str, tuple[str, ...]] = {
    "scores": (
        "none", "list_min_max", "list_l2", "list_z", *(f"reciprocal_rank@{k}" for k in RANK_CONSTANTS),
    ),
    "ranks": tuple(f"reciprocal@{k}" for k in RANK_CONSTANTS),
}  # fmt: skip
BY_RANK = tuple(f"reciprocal_rank@{k}" for k in RANK_CONSTANTS)
ENGINES: dict[str, tuple[str, ...]] = {  # what each engine computes, in its own arithmetic
    "elasticsearch": ("none", "list_min_max@elasticsearch", "list_l2", *BY_RANK),
    "opensearch": ("list_min_max@opensearch", "list_l2", "list_z@opensearch", *BY_RANK),
    "qdrant": ("none",),
    "vespa": ("none", *BY_RANK),
    "sql": KINDS["scores"],
}
ENGINE_CLAUSES = {"opensearch": 5}  # at most
FAMILIES = (PATH, "forward")
COARSE = {"n_alphas": 8, "smoothing": 1}  # to compare normalisations
LUCENE = ("elasticsearch", "opensearch")
RRF = f"RRF (k = {RRF_K})"
EQUAL = "equal weights"
SHARE_DIGITS = 2
MAP_STEPS = {2: 20, 3: 10}  # by number of clauses
FEW_QUERIES = (
    "fewer than two queries have documents with different grades, so weights cannot be chosen on held-out "
    f"queries: the result is {RRF} with equal weights; judge more queries"
)


@dataclass(frozen=True, eq=False)
class Fusion:
    """A way to combine clauses: ``weights`` of the clauses in use, which sum to 1, under a normalisation.

    ``values`` is its metric on each held-out query. ``tuned``: the weights were fitted, and each query was
    ranked by weights fitted without it; other weights do not depend on the queries.
    """

    name: str
    normalise: str
    weights: Mapping[str, float]
    values: FloatArray
    tuned: bool = False
    cost: float | None = None

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def formula(self) -> str:
        """ "0.7 dense + 0.3 bm25", the largest weight first."""
        ordered = sorted(self.weights.items(), key=lambda item: -item[1])
        return " + ".join(f"{share:.{SHARE_DIGITS}g} {printable(name)}" for name, share in ordered)

    def to_dict(self) -> dict[str, Any]:
        mean, low, high = interval(self.values)
        return {
            "name": self.name, "normalise": self.normalise, "weights": dict(self.weights),
            "tuned": self.tuned, "mean": mean, "low": low, "high": high, "cost": self.cost,
        }  # fmt: skip


@dataclass(frozen=True)
class ClauseWorth:
    """Loss of the metric without a clause, with a 95 % interval, and the cost that this saves."""

    clause: str
    loss: float
    low: float
    high: float
    cost: float | None = None

    @property
    def sentence(self) -> str:
        saves = "" if not self.cost else f" and saves {self.cost:g}"
        costs = f"costs {self.loss:.4f}" if self.loss >= 0 else f"gains {-self.loss:.4f}"
        return f"Dropping {printable(self.clause)} {costs} (CI {self.low:+.4f} to {self.high:+.4f}){saves}."


@dataclass(frozen=True, eq=False)
class HybridChoice:
    """All combinations that were measured on the same held-out queries, and the chosen one.

    Attributes
    ----------
    fusions : tuple of Fusion
        Tuned weights under each normalisation, equal weights under each, RRF with equal weights, and each
        clause alone.
    row : int
        Index of the chosen one.
    metric, profile : str, Profile
        The metric and its conventions; documents with equal scores: the mean over their orders.
    query_ids : array
        The held-out queries.
    returned : mapping
        For each clause: share of the documents that it returned, and the longest of its lists.
    """

    fusions: tuple[Fusion, ...]
    row: int
    metric: str
    profile: Profile
    query_ids: AnyArray
    returned: Mapping[str, tuple[float, int]]

    @property
    def chosen(self) -> Fusion:
        return self.fusions[self.row]

    def __getitem__(self, name: str) -> Fusion:
        """The first combination with this name, such as "RRF (k = 60)"."""
        found = next((one for one in self.fusions if one.name == name), None)
        if found is None:
            reason = f"must be one of {', '.join(dict.fromkeys(one.name for one in self.fusions))}"
            raise ParameterError("name", name, reason)
        return found

    @cached_property
    def rrf(self) -> Fusion:
        """RRF with k = 60 and equal weights, the default of most engines."""
        return self[RRF]

    @cached_property
    def best_equal(self) -> Fusion:
        """The best combination with equal weights."""
        return max((one for one in self.fusions if one.name in (EQUAL, RRF)), key=lambda one: one.mean)

    @cached_property
    def best_single(self) -> Fusion:
        """The best clause alone."""
        return max((one for one in self.fusions if one.name.endswith(" alone")), key=lambda one: one.mean)

    def gain(self, other: Fusion) -> tuple[float, float, float]:
        """(mean, low, high): metric of the chosen combination minus the other, 95 % interval over queries."""
        return interval(self.chosen.values - other.values)

    def tied_with(self, other: Fusion) -> bool:
        """Whether the mean difference over held-out queries is at most 1.96 standard errors."""
        return bool(tied((self.chosen.values - other.values)[None])[0])

    def compared(self, other: Fusion) -> tuple[int, int]:
        """(queries won, queries lost) by the chosen combination."""
        difference = self.chosen.values - other.values
        return int(np.count_nonzero(difference > 1e-9)), int(np.count_nonzero(difference < -1e-9))

    @property
    def sentences(self) -> list[str]:
        """The result in words."""
        chosen, metric = self.chosen, self.metric.upper()
        if not len(chosen.values):
            return [f"{chosen.formula} ({chosen.normalise}): {RRF}, because {FEW_QUERIES.partition(':')[0]}."]
        mean, low, high = interval(chosen.values)
        lines = [
            f"{chosen.formula} ({chosen.normalise}): {metric} {mean:.4f}, 95 % CI {low:.4f} to {high:.4f}, "
            f"on {len(chosen.values)} held-out queries."
        ]
        if not chosen.tuned:
            lines.append(f"No tuned weights were better than {chosen.name}, which are used.")
        seen: list[Fusion] = []
        for other in (self.rrf, self.best_equal, self.best_single):
            if other is chosen or other in seen:
                continue
            seen.append(other)
            gain, least, most = self.gain(other)
            won, lost = self.compared(other)
            name = other.name if other.name != EQUAL else f"{EQUAL} ({other.normalise})"
            verdict = "; tied" if self.tied_with(other) else ""
            lines.append(
                f"{gain:+.4f} over {name} (CI {least:+.4f} to {most:+.4f}{verdict}); "
                f"{won} queries won, {lost} lost."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        others = {"rrf": self.rrf, "best_equal": self.best_equal, "best_single": self.best_single}
        return {
            "metric": self.metric,
            "profile": self.profile.name,
            "n_queries": len(self.query_ids),
            "chosen": self.chosen.to_dict(),
            "fusions": [one.to_dict() for one in self.fusions],
            "gains": {
                name: {
                    **dict(zip(("mean", "low", "high"), self.gain(other), strict=True)),
                    "over": other.name, "normalise": other.normalise, "tied": self.tied_with(other),
                    **dict(zip(("won", "lost"), self.compared(other), strict=True)),
                }
                for name, other in others.items()
            },
            "clauses": {
                name: {"returned": share, "depth": depth} for name, (share, depth) in self.returned.items()
            },
        }  # fmt: skip


class CoarseRanker(SparseRanker):
    """Compares normalisations with fewer splits into folds."""

    _cv_repeats = 2


@dataclass(eq=False, repr=False)
class HybridRanker(Ranker):
    """Weights ≥ 0 of the clauses of a hybrid search, selected on held-out queries.

    A feature is a clause: its score for each document that it returned, NaN for the others, which get 0 after
    normalisation, as in the engines (:func:`ranksieve.fuse_runs` makes such data). For each normalisation a
    :class:`ranksieve.SparseRanker` with weights ≥ 0 is fitted. All are measured on the same held-out queries,
    together with what people use by default: each clause alone, equal weights, reciprocal rank fusion (RRF)
    with k = 60. The best one within the budget is selected.

    Parameters
    ----------
    max_features : int, optional
        Maximum number of clauses.
    metric : str
        Metric to maximise, such as "ndcg@10" or "map".
    normalise : "auto", str or sequence of str
        Normalisations to try: "none", "list_min_max", "list_l2", "list_z" (over the documents that the clause
        returned for the query) and "reciprocal_rank@k", which is 1/(k + rank). "auto": all of them, with
        k = 10 and 60, or those of ``engine``. "list_min_max@elasticsearch", "list_min_max@opensearch" and
        "list_z@opensearch" are the same in the arithmetic of the engine.
    engine : "elasticsearch", "opensearch", "qdrant", "vespa" or "sql", optional
        Try only what this engine computes, in its arithmetic, with at most as many clauses as it accepts.
    values : "scores" or "ranks"
        What the values are. With ranks, from 1, only weighted RRF is possible: "reciprocal@k", 1/(k + value).
    feature_costs, max_cost
        Cost of each clause, for example in milliseconds, and the maximum cost; see
        :func:`ranksieve.io.read_costs`.
    must_have, must_not
        Clauses without an ℓ1 penalty, and clauses that are never used.
    profile, rule, cv, random_state, pair_weighting
        As in :class:`ranksieve.SparseRanker`.

    Attributes
    ----------
    coef_, support_, objective_, gap_, n_iter_
        The selected weights; objective and gap of the problem that they solve, NaN for equal weights.
    weights_ : dict
        Weights of the clauses in use, which sum to 1.
    hybrid_ : HybridChoice
        Everything that was measured, and the result in words: ``print(*ranker.hybrid_.sentences)``.
    choice_ : Choice or None
        Candidates under the normalisation of the best tuned weights.
    n_folds_ : int
        Number of folds of cross-validation; 0 without cross-validation.
    costs_ : FeatureCosts or None
        Costs of the clauses.
    changes_ : Changes or None
        Changes from the ``previous`` model to this one.
    """

    hybrid_: HybridChoice = field(init=False)
    weights_: dict[str, float] = field(init=False)
    choice_: Choice | None = field(init=False)
    n_folds_: int = field(init=False)
    costs_: FeatureCosts | None = field(init=False)
    changes_: Changes | None = field(init=False)
    _proof: dict[str, Any] = field(init=False)

    max_features: Count | None = None
    metric: str = "ndcg@10"
    _: KW_ONLY
    normalise: Any = "auto"
    engine: Annotated[str, one_of(ENGINES)] | None = None
    values: Annotated[str, one_of(VALUES)] = "scores"
    feature_costs: Any = None
    max_cost: Annotated[float, Interval(Real, 0, np.inf, closed="both")] | None = None
    must_have: Features = ()
    must_not: Features = ()
    profile: str | Profile | None = None
    rule: Annotated[str, one_of(RULES)] = "best"
    cv: FoldCount = "auto"
    random_state: Seed = 0
    pair_weighting: PairWeighting = "sqrt"
    missing: Annotated[str, one_of(("auto",))] = "auto"

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        valid: ValidData = None,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        previous: LinearModel | FittedRanker | PathLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the weights under each normalisation and select the best combination on held-out queries.

        Parameters
        ----------
        X : Dataset, array or frame
            Scores of the clauses, NaN where a clause did not return the document.
        y, qid : arrays
            Grades and query ids, unless X is a Dataset.
        valid : Dataset or (X, y, qid), optional
            Validation data for the selection; see ``cv``.
        query_weight : array or mapping of query id to number, optional
            One weight per query, as in :class:`ranksieve.SparseRanker`.
        document_weight : array, optional
            One weight per row, unless X is a Dataset. A document of weight 0 counts in the statistics of its
            list and is otherwise ignored.
        previous : LinearModel, its file or a fitted ranker, optional
            Update a model with new logs: keep its normalisation and its clauses, with new weights, unless
            other clauses are significantly better.
        progress : callable, optional
            Called with (points done, total) of each fit.
        """
        model = None if previous is None else as_model(previous)
        return self._learn(
            X, y, qid, query_weight=query_weight, document_weight=document_weight, valid=valid,
            progress=progress, previous=model,
        )  # fmt: skip

    def _task(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        valid: ValidData = None,
        progress: Progress | None = None,
        previous: LinearModel | None = None,
    ) -> Task:
        """Check and fingerprint the data; documents of weight 0 stay, because they are part of their list."""
        valid = as_valid(valid)
        stored, names, _ = self._checked_data(X, y, qid, document_weight)
        data = _dense(stored)
        self._check_clauses(data)
        weight = query_weights(query_weight, data)
        fingerprints = {"train": fingerprint(stored)}
        if valid is not None:
            if valid.n_features != data.n_features:
                reason = (
                    f"the training data have {data.n_features} clauses, but `valid` has {valid.n_features}"
                )
                raise DataError(None, None, reason)
            valid = in_column_order(valid, data.feature_names, self)
            fingerprints["valid"] = fingerprint(valid)
            valid = _dense(valid)
            warn_of_shared_queries(data, valid)
        if weight is not None:
            fingerprints["query_weight"] = fingerprint_of_weights(weight)
        if previous is not None:
            fingerprints["previous"] = model_digest(previous)
        has_qid = isinstance(X, Dataset) or qid is not None
        origin = Origin(data.n_features, names, NO_PREPARATION, fingerprints, False, has_qid)
        return Task(origin, data, data, weight, valid, progress=progress, previous=previous)

    def _check_clauses(self, data: Dataset) -> None:
        """Refuse clauses without results and ranks below 1; warn about clauses with constant scores."""
        X = np.asarray(data.X)
        if np.isinf(X).any():
            row, column = np.argwhere(np.isinf(X))[0]
            reason = f"the score of clause {data.feature_names[column]} in row {row} is {X[row, column]}"
            raise DataError(data.source, None, f"{reason}; expected a finite number, or NaN if not returned")
        empty = [name for name, column in zip(data.feature_names, X.T, strict=True) if np.isnan(column).all()]
        if empty:
            reason = f"the clause {empty[0]} returned no document; leave it out"
            raise DataError(data.source, None, reason)
        if data.n_features < 2:
            reason = f"there is only one clause, {data.feature_names[0]}, so there are no weights to choose"
            raise DataError(data.source, None, f"{reason}; pass at least two columns")
        if self.engine in LUCENE and self.values == "scores" and np.nanmin(X) < 0:
            column = int(np.argmax(np.nanmin(X, axis=0) < 0))
            reason = f"the clause {data.feature_names[column]} has the score {np.nanmin(X[:, column]):g}"
            raise DataError(
                data.source, None, f"{reason}, but {self.engine} has no negative scores; log its own scores"
            )
        if self.values == "ranks" and np.nanmin(X) < 1:
            reason = f"a rank is {np.nanmin(X):g}; with `values='ranks'` the values count from 1"
            raise DataError(data.source, None, reason)
        constant = [
            name
            for name, column in zip(data.feature_names, X.T, strict=True)
            if np.nanmin(column) == np.nanmax(column)
        ]
        if constant:
            warn_caller(
                f"all scores of {short_list(constant, 5)} are equal, so only whether the clause returned a "
                "document can matter; if you have its ranks, use them with `values='ranks'`"
            )

    def _kinds(self) -> tuple[str, ...]:
        """The normalisations to try."""
        if self.normalise == "auto":
            if self.values == "ranks":
                if self.engine is not None and not any(rank_constant(one) for one in ENGINES[self.engine]):
                    reason = f"{self.engine} does not compute weighted reciprocal ranks; use scores"
                    raise ParameterError("engine", self.engine, reason)
                return KINDS["ranks"]
            return KINDS[self.values] if self.engine is None else ENGINES[self.engine]
        kinds = (self.normalise,) if isinstance(self.normalise, str) else tuple(self.normalise)
        for kind in kinds:
            known = isinstance(kind, str) and (kind == "none" or list_scaling(kind) is not None)
            by_value = known and kind.startswith("reciprocal@")
            if not known or by_value != (self.values == "ranks"):
                expected = ", ".join(KINDS[self.values])
                reason = f"with `values={self.values!r}` choose from {expected} (or another k)"
                raise ParameterError("normalise", kind, reason)
        if not kinds:
            raise ParameterError("normalise", self.normalise, "must name at least one normalisation")
        return kinds

    def _most(self) -> int | None:
        """Largest number of clauses."""
        most = ENGINE_CLAUSES.get(self.engine or "")
        limits = [limit for limit in (self.max_features, most) if limit is not None]
        return min(limits, default=None)

    def _sparse(self, names: Sequence[str], coarse: bool = False, **options: Any) -> SparseRanker:
        """The ranker of normalised scores."""
        limited = self._most() is not None or self.max_cost is not None
        effort: dict[str, Any] = {"families": FAMILIES if limited else (PATH,), **(COARSE if coarse else {})}
        ranker = (CoarseRanker if coarse else SparseRanker)(
            self._most(), self.metric, feature_costs=self.feature_costs, max_cost=self.max_cost,
            must_have=self.must_have, must_not=self.must_not, signs=dict.fromkeys(names, 1.0),
            profile=self.profile, rule=self.rule, cv=self.cv, random_state=self.random_state,
            pair_weighting=self.pair_weighting, normalise="none", missing="error", shape="linear", **effort,
        )  # fmt: skip
        ranker.set_params(**options)
        return ranker

    def _tuned(self, task: Task, kind: str, coarse: bool = False, **options: Any) -> SparseRanker:
        """Weights under a normalisation; the penalty does not depend on the scale of the scores."""
        preparation = preparation_of(kind)
        present, weight = drop_zero_weight(preparation.apply(task.source), task.query_weight)
        valid = None if task.valid is None else drop_zero_weight(preparation.apply(task.valid), None)[0]
        spread = np.array(learn_normalisation(present, "within_z", weight).scale)
        varies = np.ptp(present.X, axis=0) > 0
        spread /= np.exp(np.log(spread[varies]).mean()) if varies.any() else 1.0
        ranker = self._sparse(task.source.feature_names, coarse, l1_weights=spread.tolist(), **options)
        previous = None if task.previous is None else replace(task.previous, preparation=NO_PREPARATION)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about scales, which the penalty allows for, and grids of α
            ranker.fit(
                present, valid=valid, query_weight=None if task.query_weight is None else weight,
                previous=previous, progress=task.progress,
            )  # fmt: skip
        return ranker

    def _fit(self, task: Task) -> Attributes:
        kinds = self._kinds()
        if task.previous is not None:
            kind = kind_of(task.previous)
            if kind not in kinds:
                reason = f"has the normalisation {kind}, which `normalise` excludes"
                raise ParameterError("previous", task.previous, reason)
            kinds = (kind,)
        present, _ = drop_zero_weight(task.source, task.query_weight)
        self._sparse(present.feature_names)  # checks the parameters
        if number_of_folds(self.cv, present, task.valid) == 0 and task.valid is None:
            return self._without_choice(task)
        tuned = {kind: self._tuned(task, kind, coarse=len(kinds) > 1) for kind in kinds}
        fine = set(kinds) if len(kinds) == 1 else set[str]()
        while (best := max(kinds, key=lambda kind: _criterion(tuned[kind]))) not in fine:
            tuned[best] = self._tuned(task, best)
            fine.add(best)
        return self._chosen(task, kinds, tuned, best)

    def _chosen(
        self, task: Task, kinds: Sequence[str], tuned: Mapping[str, SparseRanker], best: str
    ) -> Attributes:
        """The best of the tuned and the usual weights."""
        names, first = task.source.feature_names, tuned[best]
        costs = stated_costs(self.feature_costs, names, {})
        criterion, fusions, coefs = [], [], []
        for kind in kinds:
            choice = tuned[kind].choice_
            values = choice.validation.values[choice.index]
            weights = shares(names, tuned[kind].coef_)
            fusions.append(Fusion("tuned", kind, weights, values, True, _cost(costs, weights)))
            criterion.append(_criterion(tuned[kind]))
            coefs.append(tuned[kind].coef_)
        measure, usual = _Measure(task, first.choice_.validation, first.n_folds_), self._usual(names, kinds)
        for kind in dict.fromkeys(kind for _, kind, _ in usual):
            same = [(name, coef) for name, other, coef in usual if other == kind]
            rows = measure(kind, np.array([coef for _, coef in same]))
            for (name, coef), values in zip(same, rows, strict=True):
                weights = shares(names, coef)
                fusions.append(Fusion(name, kind, weights, values, False, _cost(costs, weights)))
                criterion.append(float(values.mean()))
                coefs.append(coef)
        budget = stated_budget(first, names, {}, costs)
        if np.ptp([one.mean for one in fusions]) == 0:
            warn_caller(
                f"{self.metric} is {fusions[0].mean:.4g} for every combination, so it cannot guide the "
                "choice; use another `metric` or `profile`"
            )
        within = _within(budget, np.array(coefs))
        selectable = within & np.array([one.normalise in kinds for one in fusions])
        if task.previous is not None:
            selectable &= np.array([one.tuned for one in fusions])
        row = int(np.argmax(np.where(selectable, criterion, -np.inf)))
        choice = first.choice_
        hybrid = HybridChoice(
            tuple(fusions), row, self.metric, choice.validation.profile, choice.validation.query_ids,
            _returned(task.source),
        )  # fmt: skip
        fitted = self._attributes(fusions[row].normalise, coefs[row], hybrid, costs)
        fitted |= {"choice_": choice, "n_folds_": first.n_folds_, "changes_": first.changes_}
        if fusions[row].tuned:
            ranker = tuned[fusions[row].normalise]
            fitted |= {"choice_": ranker.choice_, "_proof": ranker._certificate()}
            fitted |= {"objective_": ranker.objective_, "gap_": ranker.gap_, "trace_": ranker.trace_}
            fitted["n_iter_"] = sum(one.n_iter_ for one in tuned.values())
        return fitted

    def _usual(self, names: Sequence[str], kinds: Sequence[str]) -> list[tuple[str, str, FloatArray]]:
        """(name, normalisation, weights) of what people use without tuning."""
        by_rank = "reciprocal" if self.values == "ranks" else "reciprocal_rank"
        equal = np.full(len(names), 1.0 / len(names))
        rows = [(RRF, f"{by_rank}@{RRF_K}", equal), (f"RRF (k = {QDRANT_K})", f"{by_rank}@{QDRANT_K}", equal)]
        usual = [kind for kind in KINDS[self.values] if rank_constant(kind) is None]
        equal_kinds = dict.fromkeys([*(kind for kind in kinds if kind != rows[0][1]), *usual])
        rows += [(EQUAL, kind, equal) for kind in equal_kinds]
        single = kinds[0]
        rows += [(f"{name} alone", single, one) for name, one in zip(names, np.eye(len(names)), strict=True)]
        return rows

    def _without_choice(self, task: Task) -> Attributes:
        """RRF with equal weights, because there are no queries to choose by."""
        warn_caller(FEW_QUERIES)
        names = task.source.feature_names
        kind = "reciprocal@" if self.values == "ranks" else "reciprocal_rank@"
        coef = np.full(len(names), 1.0 / len(names))
        costs = stated_costs(self.feature_costs, names, {})
        if not _within(stated_budget(self._sparse(names), names, {}, costs), coef[None])[0]:
            reason = "equal weights exceed the budget, and one judged query cannot choose; judge more queries"
            raise DataError(task.source.source, None, reason)
        present, _ = drop_zero_weight(task.source, task.query_weight)
        profile = profile_for(self.profile, present)
        fusion = Fusion(RRF, f"{kind}{RRF_K}", shares(names, coef), np.empty(0))
        hybrid = HybridChoice(
            (fusion,), 0, self.metric, profile, present.query_ids[:0], _returned(task.source)
        )
        fitted = self._attributes(fusion.normalise, coef, hybrid, costs)
        return {**fitted, "choice_": None, "n_folds_": 0, "changes_": None}

    def _attributes(
        self, kind: str, coef: FloatArray, hybrid: HybridChoice, costs: FeatureCosts | None
    ) -> Attributes:
        nothing = Trace([], [], [], [])
        return {
            "preparation_": preparation_of(kind), "coef_": np.array(coef), "hybrid_": hybrid,
            "weights_": dict(hybrid.chosen.weights), "costs_": costs, "_proof": {}, "objective_": np.nan,
            "gap_": np.nan, "n_iter_": 0, "trace_": nothing,
        }  # fmt: skip

    def clause_worth(
        self, X: Dataset, *, valid: Dataset | None = None, query_weight: QueryWeight | None = None
    ) -> list[ClauseWorth]:
        """Loss of the held-out metric if a clause is dropped and the others are fitted again, largest first.

        ``X`` and ``valid`` are the data of the fit.
        """
        task = self._task(X, query_weight=query_weight, valid=valid)
        if self.choice_ is None:
            return []
        kind, rows = self.preparation_kind_, []
        for name in self.weights_:
            excluded = [*_as_list(self.must_not), name]
            others = [one for one in _as_list(self.must_have) if one != name]
            values = np.zeros(len(self.hybrid_.query_ids))
            if len(X.feature_names) > len(excluded):
                ranker = self._tuned(task, kind, must_not=excluded, must_have=others)
                values = ranker.choice_.validation.values[ranker.choice_.index]
            loss, low, high = interval(self.hybrid_.chosen.values - values)
            saved = None
            if self.costs_ is not None:
                saved = self.costs_.of(self.weights_) - self.costs_.of(
                    one for one in self.weights_ if one != name
                )
            rows.append(ClauseWorth(name, loss, low, high, saved))
        return sorted(rows, key=lambda row: -row.loss)

    def weight_map(
        self, X: Dataset, *, valid: Dataset | None = None, query_weight: QueryWeight | None = None
    ) -> list[dict[str, Any]]:
        """Held-out metric of fixed weights of two or three clauses in use, in steps of 0.05 or 0.1.

        Each entry has ``weights``, which sum to 1, ``mean``, ``low`` and ``high``. Empty for other numbers of
        clauses. ``X`` and ``valid`` are the data of the fit.
        """
        used = list(self.weights_)
        if self.choice_ is None or len(used) not in MAP_STEPS:
            return []
        task = self._task(X, query_weight=query_weight, valid=valid)
        steps, columns = MAP_STEPS[len(used)], [task.source.feature_names.index(name) for name in used]
        first = range(steps + 1)
        points = [(a, steps - a) for a in first] if len(used) == 2 else [
            (a, b, steps - a - b) for a in first for b in range(steps + 1 - a)
        ]  # fmt: skip
        coefs = np.zeros((len(points), task.source.n_features))
        coefs[:, columns] = np.array(points) / steps
        measure = _Measure(task, self.choice_.validation, self.n_folds_)
        rows = []
        for point, values in zip(points, measure(self.preparation_kind_, coefs), strict=True):
            mean, low, high = interval(values)
            weights = {name: part / steps for name, part in zip(used, point, strict=True)}
            rows.append({"weights": weights, "mean": mean, "low": low, "high": high})
        return rows

    @property
    def preparation_kind_(self) -> str:
        """Name of the normalisation of the selected combination."""
        return self.preparation_.normalisation.kind

    def _loss(self) -> SquaredHinge:
        return SquaredHinge(pair_weighting=self.pair_weighting)

    def _certificate(self) -> dict[str, Any]:
        return dict(self._proof)

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        if not certificate:
            return None
        return self._sparse(data.feature_names).stated_problem(data, query_weight, certificate)

    def _chosen_by(self) -> dict[str, str] | None:
        return None if self.choice_ is None else self.choice_.validation.criterion

    def _stated_parameters(self) -> dict[str, Any]:
        return plain_budget(self, super()._stated_parameters())

    def _metrics(self) -> dict[str, float]:
        cost = cost_of(self.costs_, self.coef_names_, self.support_)
        if self.choice_ is None:
            return cost
        title = self.choice_.validation.title
        others = {
            with_normalisation(title, one.normalise): one.mean
            for one in self.hybrid_.fusions
            if one.tuned and one is not self.hybrid_.chosen
        }
        return {title: self.hybrid_.chosen.mean, **others, **cost}


def with_normalisation(title: str, kind: str) -> str:
    """Name of the metric of the weights tuned under a normalisation, in model files."""
    return f"{title} with {kind}"


def preparation_of(kind: str) -> Preparation:
    """Preparation of scores under a normalisation; a document that a clause did not return gets 0."""
    if kind == "none":
        return Preparation(MissingPolicy("zero"))
    return Preparation(normalisation=Normalisation(kind))


def kind_of(model: LinearModel) -> str:
    """Normalisation of a model of hybrid search."""
    return model.preparation.normalisation.kind


def shares(names: Sequence[str], coef: FloatArray) -> dict[str, float]:
    """Weights of the clauses in use, divided by their sum."""
    total = float(np.sum(coef)) or 1.0
    return {names[j]: float(coef[j] / total) for j in np.flatnonzero(coef).tolist()}


def _within(budget: Budget, coefs: FloatArray) -> BoolArray:
    """Mask of the weights that the budget allows, with the clauses that must and must not be used."""
    used, limits = coefs != 0, budget.among(np.ones(coefs.shape[1], dtype=bool))
    required = used[:, limits.fixed].all(axis=1) & ~used[:, ~limits.usable].any(axis=1)
    return np.asarray(budget.allows(coefs) & required)


def _criterion(ranker: SparseRanker) -> float:
    return float(ranker.choice_.chosen_values.mean())


def _cost(costs: FeatureCosts | None, weights: Mapping[str, float]) -> float | None:
    return None if costs is None else costs.of(weights)


def _dense(data: Dataset) -> Dataset:
    """The data in memory, as a dense array."""
    if isinstance(data.X, np.ndarray):
        return data
    columns = np.arange(data.n_features)
    return data.replace_features(dense_block(data.X, slice(None), columns))


def _as_list(features: Any) -> list[Any]:
    return [features] if isinstance(features, str) else list(features)


def _returned(data: Dataset) -> dict[str, tuple[float, int]]:
    """For each clause (share of the documents that it returned, the longest of its lists)."""
    returned = ~np.isnan(np.asarray(data.X))
    depth = np.add.reduceat(data.queries.group(returned), data.queries.offsets[:-1], dtype=np.int64).max(
        axis=0
    )
    share = returned.mean(axis=0)
    return {name: (float(share[j]), int(depth[j])) for j, name in enumerate(data.feature_names)}


class _Measure:
    """Metric of fixed weights on the held-out queries of a fit."""

    def __init__(self, task: Task, validation: Validation, n_folds: int) -> None:
        self._validation, self._weight = validation, task.query_weight
        self._train = task.source if n_folds or task.valid is None else None
        self._valid = task.valid

    def __call__(self, kind: str, coefs: FloatArray) -> FloatArray:
        """Values (models × queries) of weights under a normalisation."""
        values, preparation = [], preparation_of(kind)
        for part, weight in ((self._train, self._weight), (self._valid, None)):
            if part is not None:
                present, _ = drop_zero_weight(preparation.apply(part), weight)
                validation = self._validation
                held_out = HeldOut(NO_PREPARATION, validation.metric, validation.profile, present)
                values.append(held_out.measure(coefs).values)
        return np.concatenate(values, axis=1)
