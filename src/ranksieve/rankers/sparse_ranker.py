"""SparseRanker: families of sparse models, and the one that ranks unseen queries best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray, PathLike
from ranksieve._util.messages import lookup, warn_caller
from ranksieve.choice.budget import RULES, Confidence
from ranksieve.choice.candidates import (
    Candidates,
    beyond_budget,
    families_by_cost,
    plain_families,
    warn_if_blind,
)
from ranksieve.choice.families import (
    DEFAULT_FAMILIES,
    FAMILIES,
    PATH,
    RIDGED,
    SIZED,
    ProgressCount,
    Task,
    l1_family,
)
from ranksieve.choice.forward import Rules
from ranksieve.choice.held_out import (
    ENOUGH_QUERIES,
    HeldOut,
    Validation,
    number_of_folds,
    warn_of_shared_queries,
)
from ranksieve.choice.leave_out import Folds
from ranksieve.choice.update import (
    AS_BEFORE,
    Changes,
    as_model,
    before,
    find_changes,
    first_candidates,
    short_name,
)
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu.matrix import on_device
from ranksieve.metrics import Profile, profile_for
from ranksieve.model.linear import FittedRanker, LinearModel
from ranksieve.objective import make_objective
from ranksieve.path import Progress, SparsePath, as_penalty
from ranksieve.penalties import ElasticNet, SlopedPenalty
from ranksieve.penalties.base import Constraints, Features, Signs
from ranksieve.rankers.base import ValidData, all_or_nothing, as_valid
from ranksieve.rankers.parameters import (
    Count,
    CountAtOnce,
    Device,
    FoldCount,
    Interval,
    Normalise,
    Positive,
    Seed,
    Share,
    one_of,
)
from ranksieve.rankers.within_budget import WithinBudget
from ranksieve.solvers import Problem, ProxNewton
from ranksieve.subset import Found

REPEATS = 6  # ways to deal the folds
WIDE = 2000  # features: beyond, the models of six dealings would take too much memory
CHOSEN_ON_TRAIN = (
    "only one query has documents of different labels, so none can be held out: the model is chosen by how "
    "it ranks the query it was fitted on; give validation data"
)


@dataclass(eq=False, repr=False)
class SparseRanker(WithinBudget):
    """The best linear ranker with few features: of several families of models the one that ranks best.

    The ℓ1 path: min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j|w_j| for a grid of α, each
    point with a duality gap of at most ``tol`` times its objective. Beside it the log penalty, which shrinks
    large weights less, and forward selection with swaps, which does not shrink at all. All their models are
    measured on the same held-out queries: those of ``valid``, and by cross-validation those of the training
    data. Values are averaged over neighbouring models, and the best average within the budget is chosen.

    Parameters
    ----------
    max_features : int, optional
        Choose among models with at most this many features.
    metric : str
        What the choice maximises, such as "ndcg@10" or "map".
    profile : str or Profile, optional
        Metric conventions: "letor", "mslr" or "standard". Default: those that the validation data (else the
        training data) come with ("letor" for LETOR's folds), else "standard".
    feature_costs : file, mapping, sequence or FeatureCosts, optional
        What each feature costs, alone or in groups that are paid once; see :func:`ranksieve.read_costs`.
    max_cost : float, optional
        Choose among models that cost at most this much.
    must_have, must_not, signs
        Features that are free of ℓ1, features that are never used, and signs that weights must have; as in
        :func:`ranksieve.sparse_path`.
    rule : "best" or "one_standard_error"
        The best model, or the one with the fewest features (with costs: the cheapest) within a standard error
        (over queries) of it.
    families : sequence of str
        The models to choose from: "l1" (the path), "log", "forward", "refitted" (the path's features, fitted
        again without ℓ1), "subset" (the best set of each number of features, as in
        :class:`ranksieve.BestSubset`, with the bound that a short search proves).
    smoothing : int
        Neighbouring points of a path over which held-out values are averaged; 1: none.
    refit_on : "train" or "all"
        With "all" the weights of the chosen features are fitted again on training and validation data.
    penalty, weights, l1_ratio, alphas, min_ratio, tol
        As in :func:`ranksieve.sparse_path`. A grid whose best point is near its end goes on to smaller α, a
        thousandfold at most.
    n_alphas : int
        Points of the path.
    cv : "auto" or int
        Folds of training queries that are held out in turn, dealt in six ways, or in one if 1,000 queries
        have pairs; 0: ``valid`` alone is held out. "auto": 5, or 0 where ``valid`` has 1,000 such queries.
    random_state : int
        Deals queries into folds.
    normalise : "auto", "none", "z", "within_z", "min_max", "query_min_max" or "query_z"
        How features are scaled, learned on the training data or within each query; part of the ranker. "auto"
        leaves features of [0, 1] as they are and scales others by their deviation within queries.
    missing : "auto", "error", "zero", "query_min", "column_mean" or "indicator"
        What takes the place of a missing feature, here and in ``predict``: "auto" puts the training mean and
        says so, "indicator" puts it and learns a weight for its being missing.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.

    Attributes
    ----------
    coef_, support_, alpha_, objective_, gap_, n_iter_
        The chosen ranker; objective and gap of the problem that its weights solve: ``family_`` at ``alpha_``,
        the strength of its ℓ1 (of its ridge for "forward" and "refitted", which have no ℓ1).
    family_ : str
        The family that it comes from, such as "l1", "forward" or "l1 × cost^0.5".
    path_ : SparsePath
        All models of that family.
    validation_ : Validation
        How they rank the held-out queries.
    candidates_ : Candidates
        All families.
    n_folds_ : int
        Folds of training queries that were held out in turn; 0 if none were.
    confidence_ : Confidence
        Interval of the metric, tied models, how often resampled held-out queries choose each feature, and
        what the budget costs.
    costs_ : FeatureCosts or None
        What features cost.
    found_ : Found or None
        What is proven of the chosen set of features, if it comes from the family "subset".
    changes_ : Changes or None
        What changed from the model of ``warm_start`` to this one.
    """

    family_: str = field(init=False)
    path_: SparsePath = field(init=False)
    validation_: Validation = field(init=False)
    confidence_: Confidence = field(init=False)
    candidates_: Candidates = field(init=False)
    n_folds_: int = field(init=False)
    found_: Found | None = field(init=False)
    changes_: Changes | None = field(init=False)

    uses_valid: ClassVar[bool] = True
    works_in_parts: ClassVar[bool] = True
    max_features: Count | None = None
    metric: str = "ndcg@10"
    _: KW_ONLY
    feature_costs: Any = None
    max_cost: Annotated[float, Interval(Real, 0, np.inf, closed="both")] | None = None
    must_have: Features = ()
    must_not: Features = ()
    signs: Signs | None = None
    profile: str | Profile | None = None
    rule: Annotated[str, one_of(RULES)] = "best"
    families: Sequence[str] = DEFAULT_FAMILIES
    smoothing: Count = 5
    refit_on: Annotated[str, one_of(("train", "all"))] = "train"
    penalty: str | SlopedPenalty = "l1"
    weights: Any = None
    l1_ratio: float | None = None
    n_alphas: CountAtOnce = 25
    alphas: Any = None
    min_ratio: Share = 1e-2
    tol: Positive = 1e-6
    cv: FoldCount = "auto"
    random_state: Seed = 0
    normalise: Normalise = "auto"
    device: Device = "cpu"

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        valid: ValidData = None,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        warm_start: LinearModel | FittedRanker | PathLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the families on the data and choose the model that ranks held-out queries best.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset or (X, y, qid), optional
            Further held-out queries for the choice; see ``cv``.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or the weights of some (others weigh 1): with
            2 a query counts as two, with 0 as none.
        document_weight : array, optional
            One weight per row, unless X is a Dataset: with 2 a document counts as two copies of it, with 0 as
            absent.
        warm_start : LinearModel, its file or a fitted ranker, optional
            The model before: its features, with new weights, are kept unless another candidate is better by
            more than chance. ``changes_`` then says what changed.
        progress : callable, optional
            Called with (points done, points in all).
        """
        valid, old = as_valid(valid), None if warm_start is None else as_model(warm_start)
        given, weight = self._given_data(X, y, qid, query_weight, valid, document_weight)
        if old is not None:
            self._learned_from = {**self._learned_from, "warm_start": short_name(old)}
        self._adopt(self._candidates(given, valid, weight, progress, previous=old))
        if self.refit_on == "all" and valid is not None:
            self._refit(given, valid, weight)
        self.changes_ = None if old is None else self._changes(old, given, valid)
        if valid is None and self.n_folds_ == 0 and (isinstance(X, Dataset) or qid is not None):
            warn_caller(CHOSEN_ON_TRAIN)  # without query ids another warning has been given
        return self

    def candidates(
        self,
        data: Dataset,
        valid: ValidData = None,
        *,
        query_weight: QueryWeight | None = None,
        progress: Progress | None = None,
    ) -> Candidates:
        """The models that ``fit`` chooses from, each measured on held-out queries."""
        valid = as_valid(valid)
        trial = self._twin()  # the ranker itself learns nothing
        given, weight = trial._given_data(data, None, None, query_weight, valid)
        with single_threaded_blas():
            return trial._candidates(given, valid, weight, progress)

    def refit_on_part(self, data: Dataset, tol: float) -> FloatArray:
        """The weights that the chosen family gives other data, prepared already, at the chosen point."""
        constraints = self._constraints(data)
        task = replace(
            self._task(data, constraints, None, None, ProgressCount(None, 1)),
            alphas=self.path_.alphas[[self.chosen_]], most=None, window=1, tol=tol,
        )  # fmt: skip
        kind = self.family_.partition(" ")[0]
        if kind in SIZED:
            task = replace(task, alphas=None, n_alphas=1, most=len(self.support_))
        fitted = FAMILIES[kind](task, l1_family(task))
        if fitted is None:
            raise DataError(None, None, f"the {kind} family has no model of these data")
        largest = min(len(fitted.models), len(self.support_)) - 1
        return np.asarray(fitted.models.coefs[largest if kind in SIZED else 0])

    def _candidates(
        self,
        given: Dataset,
        valid: Dataset | None,
        query_weight: FloatArray | None,
        progress: Progress | None,
        previous: LinearModel | None = None,
    ) -> Candidates:
        data = self._prepared_for_learning(given, query_weight)
        held = None if valid is None else self._checked_valid(given, valid)
        constraints = self._constraints(data)
        budget = self._budget(data)
        budget.check_must_have(constraints.unpenalised)
        folds = self._folds(data, valid, query_weight)
        profile = profile_for(self.profile, given if valid is None else valid)
        held_out = HeldOut(self._scores_with, self.metric, profile, given, folds, held)
        task = self._task(
            data, constraints, folds, query_weight, ProgressCount(progress, len(self.families) + 1)
        )
        begin = None if previous is None else before(previous, task)
        if begin is not None and (first := first_candidates(task, held_out, budget, begin)) is not None:
            return first
        if budget.costs is None:
            path, families = plain_families(task, held_out, self._families())
        else:
            path, families = families_by_cost(task, held_out, self._families(), budget, budget.costs)
        warn_if_blind(families)
        return Candidates(families, budget, beyond_budget(task, path, held_out))

    def _families(self) -> Sequence[str]:
        names = [self.families] if isinstance(self.families, str) else list(self.families)
        for name in names:
            lookup(FAMILIES, name, "families")
        if not names:
            raise ParameterError("families", self.families, f"name at least one of {', '.join(FAMILIES)}")
        return names

    def _checked_valid(self, given: Dataset, valid: Dataset) -> Dataset:
        if valid.n_features != given.n_features:
            reason = f"the training data have {given.n_features} features but `valid` has {valid.n_features}"
            raise DataError(None, None, reason)
        held = self._held_out(valid)
        warn_of_shared_queries(given, held)
        return held

    def _folds(self, data: Dataset, valid: Dataset | None, query_weight: FloatArray | None) -> Folds | None:
        """Folds of the training queries; none of too few queries, or if there are enough to choose on."""
        if self.cv == 0 and valid is None:
            raise ParameterError("cv", 0, "leaves no query to choose on; give `valid`, or 2 or more folds")
        self.n_folds_ = number_of_folds(self.cv, data, valid)
        if self.n_folds_ == 0:
            return None
        few_queries = np.count_nonzero(data.pairs_per_query) < ENOUGH_QUERIES
        repeats = REPEATS if few_queries and data.n_features <= WIDE else 1
        return Folds(data, self.n_folds_, repeats, self.random_state, query_weight)

    def _task(
        self,
        data: Dataset,
        constraints: Constraints,
        folds: Folds | None,
        query_weight: FloatArray | None,
        progress: ProgressCount,
    ) -> Task:
        objective = make_objective(data, query_weight=query_weight) if folds is None else folds.objective
        weights = constraints.weights(self.weights)
        penalty = as_penalty(self.penalty, weights, self.l1_ratio, constraints.signs)
        slopes = penalty.slopes(objective.n_features)
        never_up, never_down = np.isinf(slopes.up), np.isinf(slopes.down)
        usable = objective.varies & ~(never_up & never_down)
        fixed = np.flatnonzero(constraints.unpenalised & usable)
        signs = never_down.astype(np.float64) - never_up
        rules = Rules(usable, tuple(fixed.tolist()), signs if signs.any() else None)
        return Task(
            objective, data.feature_names, penalty, rules, folds, self.n_alphas, self.alphas, self.min_ratio,
            self.tol, self.max_features, self.smoothing, progress,
        )  # fmt: skip

    def _adopt(self, candidates: Candidates) -> None:
        row = candidates.choose(RULES[self.rule])
        family, self.chosen_ = candidates.place(row)
        models = family.models
        self.family_, self.path_, self.validation_ = family.label, models, family.validation
        self.candidates_, self._penalty = candidates, family.fitted.penalties[self.chosen_]
        self.confidence_ = candidates.confidence(row, self.random_state)
        self.alpha_ = float(self._penalty.alpha)
        self.coef_ = models.coefs[self.chosen_].copy()
        self.objective_ = float(models.objectives[self.chosen_])
        self.gap_ = float(models.gaps[self.chosen_])
        self.n_iter_ = int(sum(part.models.n_iter.sum() for part in candidates.families))
        self.trace_ = models.trace
        found = family.fitted.found
        self.found_ = replace(found[self.chosen_], max_cost=self.max_cost) if found else None

    def _changes(self, old: LinearModel, given: Dataset, valid: Dataset | None) -> Changes:
        held = [given] if self.n_folds_ or valid is None else []
        held += [] if valid is None else [valid]
        seen = old.fingerprint == self._learned_from["train"]
        return find_changes(old, self._linear_model(), held, self.validation_, self.chosen_, seen)

    def _refit(self, given: Dataset, valid: Dataset, query_weight: FloatArray | None) -> None:
        """The chosen features, with the weights that training and validation data give them together."""
        both = given.joined(self._held_out(valid))
        both = on_device(self._prepared(both), self.device, given)
        weight = None
        if query_weight is not None:
            weight = np.concatenate([query_weight, np.ones(valid.n_queries)])
        problem = Problem(make_objective(both, query_weight=weight), self._penalty, usable=self.coef_ != 0)
        result = ProxNewton(self.tol).solve(problem, self.coef_)
        self.coef_, self.objective_, self.gap_ = result.w, float(result.objective), float(result.gap)
        self.n_iter_ += result.n_iter
        self.found_ = None  # what was proven is about the training data alone

    def _certificate(self) -> dict[str, Any]:
        """With what states the problem: the family, its strength, the features and their ℓ1 weights."""
        if self.found_ is not None:
            return {**self.found_.certificate(), "family": self.family_}
        ridged, names = self.family_.partition(" ")[0] in RIDGED, self._names()
        proof = {
            **super()._certificate(),
            "family": self.family_,
            "ridge" if ridged else "alpha": self.alpha_,
        }
        columns = np.arange(len(names))
        refitted = self._learned_with["refit_on"] == "all" and "valid" in self._learned_from
        if ridged or refitted or self.family_.endswith(AS_BEFORE):
            columns = np.flatnonzero(self.path_.coefs[self.chosen_])
            proof["features"] = [names[j] for j in columns]
        weights = getattr(self._penalty, "weights", None)
        if weights is not None:
            proof["weights"] = {names[j]: float(weights[j]) for j in columns if weights[j] != 1.0}
        return proof

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """That of one of our own families; None for others."""
        if certificate.get("family", "").partition(" ")[0] not in (PATH, "log", *RIDGED):
            return None
        names, signs, weights = data.feature_names, None, None
        if isinstance(self.signs, Mapping):
            signs = np.array([float(self.signs.get(name, 0.0)) for name in names])
        if "weights" in certificate:
            weights = np.array([float(certificate["weights"].get(name, 1.0)) for name in names])
        if "ridge" in certificate:
            penalty: SlopedPenalty = ElasticNet(certificate["ridge"], signs=signs, l1_ratio=0.0)
        else:
            penalty = as_penalty(self.penalty, weights, self.l1_ratio, signs).scaled(certificate["alpha"])
        return Problem(make_objective(data, query_weight=query_weight), penalty)

    def _chosen_by(self) -> dict[str, str] | None:
        return self.validation_.criterion

    def _measured(self) -> dict[str, float]:
        return {self.validation_.title: self.confidence_.mean, **super()._measured()}
