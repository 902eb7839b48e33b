"""SparseRanker: families of sparse models, and the one that ranks unseen queries best."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, Self

import numpy as np

from ranksieve._types import FloatArray, PathLike
from ranksieve.choice.candidates import find_candidates
from ranksieve.choice.decide import RULES, Choice, choose, warn_if_blind
from ranksieve.choice.families import (
    DEFAULT_FAMILIES,
    FAMILIES,
    PATH,
    RIDGE_SHARE,
    RIDGED,
    SIZED,
    Candidate,
    FamilyTask,
    ProgressCount,
    l1_family,
)
from ranksieve.choice.folds import Folds
from ranksieve.choice.held_out import ENOUGH_QUERIES, HeldOut, number_of_folds, warn_of_shared_queries
from ranksieve.choice.update import (
    AS_BEFORE,
    Changes,
    as_model,
    find_changes,
    first_families,
    previous_features,
    short_name,
)
from ranksieve.data.budget import Budget, Features, Signs
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.errors import DataError, ParameterError, lookup, warn_caller
from ranksieve.gpu.matrix import on_device
from ranksieve.losses import Loss, SquaredHinge
from ranksieve.metrics import Profile, profile_for
from ranksieve.model.linear import FittedRanker, LinearModel
from ranksieve.objective import make_objective
from ranksieve.path import Progress, as_penalty
from ranksieve.penalties import ElasticNet, SlopedPenalty
from ranksieve.rankers.base import Attributes, Ranker, Task, ValidData, in_column_order
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
    cost_of,
    one_of,
    plain_budget,
    stated_budget,
    stated_costs,
)
from ranksieve.solvers import Problem, ProxNewton
from ranksieve.subset import SubsetResult

REPEATS = 6  # ways to deal the folds
WIDE = 2000  # features: beyond, the models of six dealings would take too much memory
CHOSEN_ON_TRAIN = (
    "only one query has documents of different labels, so none can be held out: the model is chosen by how "
    "it ranks the query it was fitted on; give validation data"
)


@dataclass(eq=False, repr=False)
class SparseRanker(Ranker):
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
        What each feature costs, alone or in groups that are paid once; see :func:`ranksieve.io.read_costs`.
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
    penalty, l1_weights, l1_ratio, alphas, min_ratio, tol
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
    coef_, support_, objective_, gap_, n_iter_
        The chosen ranker; objective and gap of the problem that its weights solve.
    choice_ : Choice
        The chosen candidate, its family, all other candidates, how they rank held-out queries, and how sure
        the choice is (``choice_.confidence``).
    n_folds_ : int
        Folds of training queries that were held out in turn; 0 if none were.
    costs_ : FeatureCosts or None
        What features cost.
    subset_ : SubsetResult or None
        What is proven of the chosen set of features, if it comes from the family "subset".
    changes_ : Changes or None
        What changed from the ``previous`` model to this one.
    """

    choice_: Choice = field(init=False)
    n_folds_: int = field(init=False)
    costs_: FeatureCosts | None = field(init=False)
    subset_: SubsetResult | None = field(init=False)
    changes_: Changes | None = field(init=False)

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
    l1_weights: Any = None
    l1_ratio: float | None = None
    n_alphas: CountAtOnce = 25
    alphas: Any = None
    min_ratio: Share = 1e-2
    tol: Positive = 1e-6
    cv: FoldCount = "auto"
    random_state: Seed = 0
    normalise: Normalise = "auto"
    device: Device = "cpu"

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
        previous : LinearModel, its file or a fitted ranker, optional
            Refit from this model: its features, with new weights, are kept unless another candidate is better
            by more than chance. ``changes_`` then says what changed.
        progress : callable, optional
            Called with (points done, points in all).
        """
        model = None if previous is None else as_model(previous)
        return self._learn(
            X, y, qid, query_weight=query_weight, document_weight=document_weight, valid=valid,
            progress=progress, previous=model,
        )  # fmt: skip

    def _task(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Task:
        previous = options.pop("previous", None)
        task = super()._task(X, y, qid, **options)
        if previous is None:
            return task
        names = {**task.origin.fingerprints, "previous": short_name(previous)}
        return replace(task, origin=replace(task.origin, fingerprints=names), previous=previous)

    def _fit(self, task: Task) -> Attributes:
        valid, previous = self._checked_valid(task), task.previous
        indicators = task.preparation.missing.indicators
        costs = stated_costs(self.feature_costs, task.source.feature_names, indicators)
        budget = stated_budget(self, task.data.feature_names, indicators, costs)
        folds = self._folds(task)
        profile = profile_for(self.profile, task.source if valid is None else valid)
        dealings = [] if folds is None else [folds.fold_of_queries(one) for one in folds.dealings]
        held_out = HeldOut(task.preparation, self.metric, profile, task.source, dealings, valid)
        progress = ProgressCount(task.progress, len(self.families) + 1)
        fits = self._family_task(task.data, task.query_weight, budget, folds, progress)
        choice = self._choose(fits, held_out, budget, previous)
        candidate, n_folds = choice.candidate, 0 if folds is None else len(folds.dealings[0])
        fitted: Attributes = {
            "choice_": choice,
            "n_folds_": n_folds,
            "costs_": costs,
            "coef_": candidate.coef.copy(),
            "objective_": candidate.objective,
            "gap_": candidate.gap,
            "n_iter_": sum(one.n_iter for family in choice.families for one in family.candidates),
            "trace_": choice.family.trace,
            "subset_": None
            if candidate.subset is None
            else replace(candidate.subset, max_cost=self.max_cost),
        }
        if self.refit_on == "all" and valid is not None:
            fitted |= self._refitted(task, valid, candidate, fitted["n_iter_"])
        fitted["changes_"] = None
        if previous is not None:
            names = task.source.feature_names
            used = np.flatnonzero(fitted["coef_"])
            model = LinearModel.of(names, used, fitted["coef_"][used], task.preparation)
            fitted["changes_"] = _changes(previous, model, task, choice, n_folds)
        if valid is None and n_folds == 0 and task.origin.has_qid:
            warn_caller(CHOSEN_ON_TRAIN)  # without query ids another warning has been given
        return fitted

    def _choose(
        self, fits: FamilyTask, held_out: HeldOut, budget: Budget, previous: LinearModel | None
    ) -> Choice:
        """Fit candidates and choose one: the previous features unless others are better, if there are any."""
        options: dict[str, Any] = {"random_state": self.random_state}
        start = None if previous is None else previous_features(previous, fits)
        if start is not None and (first := first_families(fits, held_out, budget, start)) is not None:
            return choose(first, budget, fits.names, row=0, **options)
        families, beyond = find_candidates(fits, held_out, self._family_names(), budget)
        warn_if_blind(families)
        return choose(families, budget, fits.names, RULES[self.rule], beyond=beyond, **options)

    def refit_on_part(self, data: Dataset, tol: float) -> FloatArray:
        """The weights that the chosen family gives other data, prepared already, at the chosen point."""
        budget = stated_budget(self, data.feature_names, self.missing_.indicators, None)
        family, candidate = self.choice_.family, self.choice_.candidate
        fits = self._family_task(data, None, budget, None, ProgressCount(None, 1))
        kind, size = family.label.partition(" ")[0], len(self.support_)
        alpha = candidate.strength / (RIDGE_SHARE if kind == "refitted" else 1.0)  # that of the path
        fits = replace(fits.without_limit(), alphas=np.array([alpha]), tol=tol)
        if kind in SIZED:
            sized = replace(fits.budget, max_features=size)
            fits = replace(fits, alphas=None, n_alphas=1, budget=sized)
        fitted = FAMILIES[kind](fits, l1_family(fits))
        if fitted is None:
            raise DataError(None, None, f"the {kind} family has no model of these data")
        return fitted.candidates[min(len(fitted), size) - 1 if kind in SIZED else 0].coef

    def _family_names(self) -> Sequence[str]:
        names = [self.families] if isinstance(self.families, str) else list(self.families)
        for name in names:
            lookup(FAMILIES, name, "families")
        if not names:
            raise ParameterError("families", self.families, f"name at least one of {', '.join(FAMILIES)}")
        return names

    def _loss(self) -> Loss:
        return SquaredHinge()

    def _abilities(self) -> Collection[str]:
        return (*super()._abilities(), "budget")

    def _checked_valid(self, task: Task) -> Dataset | None:
        """The validation data with the columns of the training data, checked."""
        if task.valid is None:
            return None
        n_features, width = task.source.n_features, task.valid.n_features
        if width != n_features:
            reason = f"the training data have {n_features} features but `valid` has {width}"
            raise DataError(None, None, reason)
        valid = in_column_order(task.valid, task.source.feature_names, self)
        task.preparation.filled(valid)
        warn_of_shared_queries(task.source, valid)
        return valid

    def _folds(self, task: Task) -> Folds | None:
        """Folds of the training queries; none if there are too few queries, or enough validation queries."""
        if self.cv == 0 and task.valid is None:
            raise ParameterError("cv", 0, "leaves no query to choose on; give `valid`, or 2 or more folds")
        n_folds = number_of_folds(self.cv, task.data, task.valid)
        if n_folds == 0:
            return None
        few_queries = np.count_nonzero(task.data.pairs_per_query) < ENOUGH_QUERIES
        repeats = REPEATS if few_queries and task.data.n_features <= WIDE else 1
        return Folds(task.data, n_folds, repeats, self.random_state, task.query_weight)

    def _family_task(
        self,
        data: Dataset,
        query_weight: FloatArray | None,
        budget: Budget,
        folds: Folds | None,
        progress: ProgressCount,
    ) -> FamilyTask:
        objective = make_objective(data, query_weight=query_weight) if folds is None else folds.objective
        l1_weights = budget.l1_weights(self.l1_weights)
        penalty = as_penalty(self.penalty, l1_weights, self.l1_ratio, budget.signs)
        slopes = penalty.slopes(objective.n_features)
        never_up, never_down = np.isinf(slopes.up), np.isinf(slopes.down)
        signs = never_down.astype(np.float64) - never_up
        limits = budget.without_costs().among(objective.varies & ~(never_up & never_down))
        limits = replace(limits, signs=signs if signs.any() else None)
        return FamilyTask(
            objective, data.feature_names, penalty, limits, folds, self.n_alphas, self.alphas,
            self.min_ratio, self.tol, self.smoothing, progress,
        )  # fmt: skip

    def _refitted(self, task: Task, valid: Dataset, candidate: Candidate, n_iter: int) -> Attributes:
        """The chosen features, with the weights that training and validation data give them together."""
        both = task.preparation.for_learning(task.source.joined(valid))
        both = on_device(both, self.device, task.source)
        weight = None
        if task.query_weight is not None:
            weight = np.concatenate([task.query_weight, np.ones(valid.n_queries)])
        objective = make_objective(both, query_weight=weight)
        problem = Problem(objective, candidate.penalty, usable=candidate.coef != 0)
        result = ProxNewton(self.tol).solve(problem, candidate.coef)
        return {
            "coef_": result.w,
            "objective_": float(result.objective),
            "gap_": float(result.gap),
            "n_iter_": n_iter + result.n_iter,
            "subset_": None,  # what was proven is about the training data alone
        }

    def _certificate(self) -> dict[str, Any]:
        """With what states the problem: the family, its strength, the features and their ℓ1 weights."""
        label, candidate = self.choice_.family.label, self.choice_.candidate
        if self.subset_ is not None:
            return {**self.subset_.certificate(), "family": label}
        ridged, names = label.partition(" ")[0] in RIDGED, self.coef_names_
        proof = {
            **super()._certificate(),
            "family": label,
            "ridge" if ridged else "alpha": candidate.strength,
        }
        columns = np.arange(len(names))
        refitted = self._fit_parameters["refit_on"] == "all" and "valid" in self._origin.fingerprints
        if ridged or refitted or label.endswith(AS_BEFORE):
            columns = np.flatnonzero(candidate.coef)
            proof["features"] = [names[j] for j in columns]
        weights = getattr(candidate.penalty, "weights", None)
        if weights is not None:
            proof["weights"] = {names[j]: float(weights[j]) for j in columns if weights[j] != 1.0}
        return proof

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """That of one of our own families."""
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
        return self.choice_.validation.criterion

    def _stated_parameters(self) -> dict[str, Any]:
        return plain_budget(self, super()._stated_parameters())

    def _metrics(self) -> dict[str, float]:
        cost = cost_of(self.costs_, self.coef_names_, self.support_)
        return {self.choice_.validation.title: self.choice_.confidence.mean, **cost}


def _changes(previous: LinearModel, model: LinearModel, task: Task, choice: Choice, n_folds: int) -> Changes:
    measured = [task.source] if n_folds or task.valid is None else []
    measured += [] if task.valid is None else [task.valid]
    seen = previous.fingerprint == task.origin.fingerprints["train"]
    return find_changes(previous, model, measured, choice.validation, choice.index, seen)
