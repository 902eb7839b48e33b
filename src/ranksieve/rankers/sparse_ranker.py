"""SparseRanker: fits several families of sparse models and selects the best on held-out queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ranksieve._types import FloatArray, IntArray, PathLike
from ranksieve.choice.candidates import find_candidates
from ranksieve.choice.decide import RULES, Choice, choose, interval, warn_if_metric_constant
from ranksieve.choice.families import (
    CURVE_FAMILIES,
    DEFAULT_FAMILIES,
    FAMILIES,
    REFIT_RIDGE_SHARE,
    RIDGE_FAMILIES,
    SIZE_FAMILIES,
    Candidate,
    FamilyTask,
    ProgressCount,
    l1_family,
)
from ranksieve.choice.folds import Folds
from ranksieve.choice.held_out import (
    ENOUGH_QUERIES,
    HeldOut,
    number_of_folds,
    standard_error,
    warn_of_shared_queries,
)
from ranksieve.choice.update import (
    PREVIOUS_SUFFIX,
    Changes,
    as_model,
    find_changes,
    first_families,
    model_digest,
    previous_features,
)
from ranksieve.data.budget import Budget, Features, NoCandidateError, Signs
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset, QueryWeight
from ranksieve.data.matrix import is_sparse, is_streamed
from ranksieve.data.parts import RemoteData
from ranksieve.data.steps import StepMatrix
from ranksieve.errors import DataError, ParameterError, lookup, recorded_warnings, warn_caller
from ranksieve.gpu.matrix import on_device
from ranksieve.losses import SquaredHinge
from ranksieve.metrics import Profile, profile_for
from ranksieve.model.linear import FittedRanker, LinearModel
from ranksieve.objective import make_objective
from ranksieve.path import Progress, as_penalty, check_shape, column_limits
from ranksieve.penalties import ElasticNet, SlopedPenalty
from ranksieve.prepare import Preparation
from ranksieve.prepare.steps import AUTO, CURVES, LINES, SHAPES
from ranksieve.rankers.base import Attributes, Ranker, Task, ValidData, in_column_order
from ranksieve.rankers.parameters import (
    BoundedCount,
    Count,
    Device,
    FoldCount,
    Interval,
    Normalise,
    PairWeighting,
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

CV_REPEATS, CURVE_CV_REPEATS = 6, 2  # splits into folds
MAX_CURVE_FEATURES = 1000  # with more, "auto" does not fit curves
MAX_REPEATED_FEATURES = 2000  # with more, the models of all splits would take too much memory
SELECTED_ON_TRAIN = (
    "only one query has documents with different labels, so it cannot be held out: the model is selected on "
    "the query it was fitted on; use validation data"
)


@dataclass(eq=False, repr=False)
class SparseRanker(Ranker):
    """Sparse linear ranker, selected on held-out queries from several families of models.

    The ℓ1 path minimises (1/Σω) Σ_{pairs} ω_ij max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j|w_j| for a grid of α,
    with ω_ij by ``pair_weighting``, with a relative duality gap of at most ``tol`` at each point. The other
    default families are the log penalty, which shrinks large weights less, and forward selection with swaps,
    which does not shrink weights. All models are evaluated on the same held-out queries: those of ``valid``,
    and those of the training data by cross-validation. Values are averaged over neighbouring models, and the
    model with the best average within the budget is selected.

    Parameters
    ----------
    max_features : int, optional
        Maximum number of features.
    metric : str
        Metric to maximise, such as "ndcg@10" or "map".
    profile : str or Profile, optional
        Metric conventions: "letor", "mslr", "standard" or "trec". Default: the profile of the validation data
        (without them, of the training data) if they have one ("letor" for LETOR's folds), else "standard".
    feature_costs : file, mapping, sequence or FeatureCosts, optional
        Cost of each feature, or of groups of features that are paid once; see
        :func:`ranksieve.io.read_costs`.
    max_cost : float, optional
        Maximum cost of the features in use.
    must_have, must_not, signs
        Features without an ℓ1 penalty, features that are never used, and required signs of weights; as in
        :func:`ranksieve.sparse_path`.
    rule : "best" or "one_standard_error"
        Select the best model, or the model with the fewest features (with costs: the cheapest) within one
        standard error (over queries) of the best.
    families : sequence of str
        The families of candidates: "l1" (the path), "log", "kept" (a path over the features that the log
        penalty keeps, and with curves over those that contribute most to the best model beyond the budget),
        "forward", "refitted" (the features of the path, refitted without ℓ1), "subset" (the best set of each
        size, as in :class:`ranksieve.BestSubset`, with the bound proven by a short search).
    smoothing : int
        Number of neighbouring points of a path over which held-out values are averaged; 1: no averaging.
        Curves use half as many, rounded up, as their grid is coarser.
    refit_on : "train" or "all"
        "all": refit the weights of the selected features on training and validation data.
    penalty, l1_weights, l1_ratio, alphas, min_ratio, tol
        As in :func:`ranksieve.sparse_path`. If the best point is near the end of the grid, the grid is
        extended to smaller α, at most by a factor of 1,000 (curves: 100).
    n_alphas : int
        Number of points of the path; curves use half as many, rounded up.
    cv : "auto" or int
        Number of folds of the training queries, repeated with six splits, curves with two (one split if at
        least 1,000 queries have pairs); 0: only ``valid`` is held out. "auto": 5, or 0 if at least 1,000
        queries of ``valid`` have pairs.
    random_state : int
        Seed of the splits.
    pair_weighting : "pairs", "sqrt" or "queries"
        Weight of a query in the loss: with P pairs (the total weight of its pairs), each pair counts 1, 1/√P
        or 1/P. "pairs" lets long lists dominate; with "queries" each query counts equally, as in the metric,
        but short lists are noisy. "sqrt" is best on average over real data sets (docs/quality.md).
    normalise : "auto", "none", "z", "within_z", "min_max", "query_min_max" or "query_z"
        Scaling of features, with statistics of the training data or within each query; part of the model.
        "auto": "none" if all features are in [0, 1] and their ranges differ at most by a factor of 1,000,
        else "within_z", which divides by the standard deviation within queries.
    missing : "auto", "error", "zero", "query_min", "column_mean" or "indicator"
        Replacement of missing values, here and in ``predict``. "auto": the mean of the training data, with a
        warning; "indicator": the same mean, and a weight for a 0/1 indicator of missing values.
    device : "cpu" or "cuda"
        Where to fit and score; a GPU needs the extra gpu, see docs/gpu.md.
    shape : "linear", "curves" or "auto"
        "curves": a step function of each feature, as in :func:`ranksieve.sparse_path`. Limits, costs and
        signs are about features; ``families`` are "l1", "log" and, by default with ``max_features``, "kept";
        ``normalise`` and ``missing`` must be "auto". "auto": fit both, and select curves if they are better
        on the held-out queries by more than one standard error of the difference; with ``previous`` the shape
        of that model. Lines alone on a GPU, on data that are distributed, on disk, sparse or have more than
        1,000 features, with a penalty object, and with values of ``families``, ``normalise`` or ``missing``
        that curves do not have.

    Attributes
    ----------
    coef_, support_, objective_, gap_, n_iter_
        The selected model; objective and gap of the problem that its weights solve. With curves ``support_``
        has the features in use, and ``coef_`` the weights of the steps ``preparation_.steps.names``.
    choice_ : Choice
        The selected candidate, its family, all candidates with their held-out metrics, and the confidence of
        the selection (``choice_.confidence``).
    n_folds_ : int
        Number of folds of cross-validation; 0 without cross-validation.
    costs_ : FeatureCosts or None
        Feature costs.
    subset_ : SubsetResult or None
        Proof about the selected set of features, if it comes from the family "subset".
    changes_ : Changes or None
        Changes from the ``previous`` model to this one.
    curves_gain_ : (mean, low, high) or None
        With ``shape="auto"``, the held-out metric of curves minus that of lines with its 95 % confidence
        interval over queries; None if only one of them was fitted.
    """

    _cv_repeats: ClassVar[int] = CV_REPEATS
    choice_: Choice = field(init=False)
    n_folds_: int = field(init=False)
    costs_: FeatureCosts | None = field(init=False)
    subset_: SubsetResult | None = field(init=False)
    changes_: Changes | None = field(init=False)
    curves_gain_: tuple[float, float, float] | None = field(init=False)

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
    n_alphas: BoundedCount = 25
    alphas: Any = None
    min_ratio: Share = 1e-2
    tol: Positive = 1e-6
    cv: FoldCount = "auto"
    random_state: Seed = 0
    pair_weighting: PairWeighting = "sqrt"
    normalise: Normalise = "auto"
    device: Device = "cpu"
    shape: Annotated[str, one_of((*SHAPES, AUTO))] = AUTO

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
        progress: bool | Progress | None = None,
        **others: Any,
    ) -> Self:
        """Fit the families and select the model that ranks held-out queries best.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset or (X, y, qid), optional
            Validation data for the selection; see ``cv``.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or a mapping for some queries (default 1). A
            query of weight 2 counts twice, one of weight 0 is ignored.
        document_weight : array, optional
            One weight per row, unless X is a Dataset. A document of weight 2 counts as two copies, one of
            weight 0 is ignored.
        previous : LinearModel, its file or a fitted ranker, optional
            Refit from this model: keep its features, with new weights, unless another candidate is
            significantly better. ``changes_`` describes the changes.
        progress : bool or callable, optional
            True: show the progress; a function is called with (points done, total).
        **others
            ``group``, the number of rows of each query as in LightGBM and XGBoost, in place of ``qid``;
            ``verbose`` is the same as ``progress``.
        """
        model = None if previous is None else as_model(previous)
        return self._learn(
            X, y, qid, query_weight=query_weight, document_weight=document_weight, valid=valid,
            progress=progress, previous=model, **others,
        )  # fmt: skip

    def _task(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Task:
        previous = options.pop("previous", None)
        if previous is not None and self.shape == (LINES if previous.has_curves else CURVES):
            kind = "has curves" if previous.has_curves else "is linear"
            raise ParameterError("shape", self.shape, f"`previous` {kind}; use `shape='auto'`")
        task = super()._task(X, y, qid, **options)
        if previous is None:
            return task
        names = {**task.origin.fingerprints, "previous": model_digest(previous)}
        return replace(task, origin=replace(task.origin, fingerprints=names), previous=previous)

    def _prepare(
        self, source: Dataset, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        if self.shape == AUTO:  # its warnings are about lines, which may not be selected
            with recorded_warnings():
                return super()._prepare(source, query_weight)
        if self.shape == LINES:
            return super()._prepare(source, query_weight)
        check_shape(self.shape, self.device, source)
        preparation = Preparation.learn_curves(source, self.normalise, self.missing, query_weight)
        return preparation, preparation.for_learning(source)

    def _fit(self, task: Task) -> Attributes:
        if self.shape == AUTO and task.previous is not None and task.previous.has_curves:
            check_shape(CURVES, self.device, task.source)
            return self._fit_curves(task)
        if self.shape != AUTO:
            return self._fit_shape(task)
        if not self._curves_possible(task):
            super()._prepare(task.source, task.query_weight)  # warns
            return self._fit_shape(task)
        first, second = _halves(task.progress)
        with recorded_warnings() as warned:
            fitted = self._fit_shape(replace(task, progress=first))
        gain, better = None, False
        with recorded_warnings() as of_curves, suppress(NoCandidateError, DataError):  # lines are possible
            curves = self._fit_curves(replace(task, progress=second))
            gain = curves["choice_"].chosen_values - fitted["choice_"].chosen_values
            better = bool(gain.mean() > standard_error(gain[None])[0])
        if better:
            fitted, warned = curves, of_curves
        else:
            super()._prepare(task.source, task.query_weight)  # warns
        for text, category in warned:
            warn_caller(text, category)
        return {**fitted, "curves_gain_": None if gain is None else interval(gain)}

    def _fit_curves(self, task: Task) -> Attributes:
        """Fit curves to a task whose data are not prepared for them."""
        preparation = Preparation.learn_curves(task.source, self.normalise, self.missing, task.query_weight)
        origin = replace(task.origin, preparation=preparation)
        data = preparation.for_learning(task.source)
        return origin.attributes | self._fit_shape(replace(task, origin=origin, data=data))

    def _curves_possible(self, task: Task) -> bool:
        """Whether "auto" also fits curves: if data and parameters allow them."""
        source, names = task.source, tuple(self._family_names(curves=False))
        return (
            task.previous is None
            and self.device == "cpu"
            and not isinstance(source, RemoteData)
            and not (is_streamed(source.X) or is_sparse(source.X))
            and source.n_features <= MAX_CURVE_FEATURES
            and self.normalise in ("auto", "none")
            and self.missing == "auto"
            and isinstance(self.penalty, str)
            and (names == DEFAULT_FAMILIES or set(names) <= set(CURVE_FAMILIES))
        )

    def _fit_shape(self, task: Task) -> Attributes:
        """Fit lines, or curves if the task has steps."""
        valid, previous, curves = self._checked_valid(task), task.previous, task.preparation.steps is not None
        indicators = task.preparation.missing.indicators
        costs = stated_costs(self.feature_costs, task.source.feature_names, indicators)
        names = task.source.feature_names if curves else task.data.feature_names
        budget = stated_budget(self, names, indicators, costs)
        l1_weights, budget = column_limits(budget, self.l1_weights, task.preparation)
        folds = self._folds(task)
        profile = profile_for(self.profile, task.source if valid is None else valid)
        splits = [] if folds is None else [folds.fold_of_queries(one) for one in folds.splits]
        ranked = valid
        if curves and valid is not None:
            ranked = task.preparation.for_learning(valid)
        measured = task.data if curves else task.source
        held_out = HeldOut(task.preparation, self.metric, profile, measured, splits, ranked)
        progress = ProgressCount(task.progress, len(self.families) + 1)
        fits = self._family_task(task.data, names, task.query_weight, budget, l1_weights, folds, progress)
        choice = self._choose(fits, held_out, budget, previous)
        candidate, n_folds = choice.candidate, 0 if folds is None else len(folds.splits[0])
        fitted: Attributes = {
            "choice_": choice,
            "n_folds_": n_folds,
            "costs_": costs,
            "coef_": candidate.coef.copy(),
            "objective_": candidate.objective,
            "gap_": candidate.gap,
            "n_iter_": sum(one.n_iter for family in choice.families for one in family.candidates),
            "trace_": choice.family.trace,
            "curves_gain_": None,
            "subset_": None
            if candidate.subset is None
            else replace(candidate.subset, max_cost=self.max_cost),
        }
        if self.refit_on == "all" and valid is not None:
            fitted |= self._refitted(task, valid, candidate, fitted["n_iter_"])
        fitted["changes_"] = None
        if previous is not None:
            names = task.source.feature_names
            used, steps = np.flatnonzero(fitted["coef_"]), task.preparation.steps
            if steps is None:
                model = LinearModel.of(names, used, fitted["coef_"][used], task.preparation)
            else:
                model = LinearModel.of_curves(steps, fitted["coef_"])
            fitted["changes_"] = _changes(previous, model, task, choice, n_folds)
        if valid is None and n_folds == 0 and task.origin.has_qid:
            warn_caller(SELECTED_ON_TRAIN)  # without query ids there was another warning
        return fitted

    def _choose(
        self, fits: FamilyTask, held_out: HeldOut, budget: Budget, previous: LinearModel | None
    ) -> Choice:
        """Fit candidates and select one; previous features are kept unless others are better."""
        options: dict[str, Any] = {"random_state": self.random_state}
        start = None if previous is None else previous_features(previous, fits)
        if start is not None and (first := first_families(fits, held_out, budget, start)) is not None:
            return choose(first, budget, fits.names, row=0, **options)
        names = self._family_names(curves=fits.budget.columns is not None)
        families, beyond = find_candidates(fits, held_out, names, budget)
        warn_if_metric_constant(families)
        return choose(families, budget, fits.names, RULES[self.rule], beyond=beyond, **options)

    def refit_on_sample(self, data: Dataset, tol: float) -> FloatArray:
        """Weights of the selected family at the selected point, fitted to other, prepared data."""
        names = data.feature_names if self.preparation_.steps is None else tuple(self.coef_names_)
        budget = stated_budget(self, names, self.missing_.indicators, None)
        l1_weights, budget = column_limits(budget, self.l1_weights, self.preparation_)
        family, candidate = self.choice_.family, self.choice_.candidate
        fits = self._family_task(data, names, None, budget, l1_weights, None, ProgressCount(None, 1))
        kind, size = family.label.partition(" ")[0], len(self.support_)
        alpha = candidate.strength / (REFIT_RIDGE_SHARE if kind == "refitted" else 1.0)  # of the path
        fits = replace(fits.without_limit(), alphas=np.array([alpha]), tol=tol)
        if kind in SIZE_FAMILIES:
            sized = replace(fits.budget, max_features=size)
            fits = replace(fits, alphas=None, n_alphas=1, budget=sized)
        fitted = FAMILIES[kind](fits, l1_family(fits))
        if fitted is None:
            raise DataError(None, None, f"the {kind} family has no model for these data")
        return fitted.candidates[min(len(fitted), size) - 1 if kind in SIZE_FAMILIES else 0].coef

    def _family_names(self, curves: bool) -> Sequence[str]:
        names = [self.families] if isinstance(self.families, str) else list(self.families)
        if curves and tuple(names) == DEFAULT_FAMILIES:
            names = [name for name in CURVE_FAMILIES if name != "kept" or self.max_features is not None]
        for name in names:
            lookup(FAMILIES, name, "families")
            if curves and name not in CURVE_FAMILIES:
                reason = f"has no curves; choose from {', '.join(CURVE_FAMILIES)}, or use `shape='linear'`"
                raise ParameterError("families", name, reason)
        if not names:
            raise ParameterError("families", self.families, f"must name one or more of {', '.join(FAMILIES)}")
        return names

    @property
    def support_(self) -> IntArray:
        """Features in use, ascending: columns with a nonzero weight, or with curves a nonzero step."""
        steps = self.preparation_.steps
        return super().support_ if steps is None else steps.used(self.coef_)

    def _linear_model(self) -> LinearModel:
        steps = self.preparation_.steps
        return super()._linear_model() if steps is None else LinearModel.of_curves(steps, self.coef_)

    def _loss(self) -> SquaredHinge:
        return SquaredHinge(pair_weighting=self.pair_weighting)

    def _abilities(self) -> Collection[str]:
        return (*super()._abilities(), "budget")

    def _checked_valid(self, task: Task) -> Dataset | None:
        """The validation data, checked, with columns in the order of the training data."""
        if task.valid is None:
            return None
        n_features, width = task.source.n_features, task.valid.n_features
        if width != n_features:
            reason = f"the training data have {n_features} features, but `valid` has {width}"
            raise DataError(None, None, reason)
        valid = in_column_order(task.valid, task.source.feature_names, self)
        task.preparation.filled(valid)
        warn_of_shared_queries(task.source, valid)
        return valid

    def _folds(self, task: Task) -> Folds | None:
        """Folds of the training queries; None without cross-validation."""
        if self.cv == 0 and task.valid is None:
            raise ParameterError("cv", 0, "leaves no held-out query; pass `valid`, or use at least 2 folds")
        n_folds = number_of_folds(self.cv, task.data, task.valid)
        if n_folds == 0:
            return None
        few_queries = np.count_nonzero(task.data.pairs_per_query) < ENOUGH_QUERIES
        repeats = self._cv_repeats if task.preparation.steps is None else CURVE_CV_REPEATS
        if not few_queries or task.data.n_features > MAX_REPEATED_FEATURES:
            repeats = 1
        return Folds(task.data, n_folds, repeats, self.random_state, task.query_weight, self._loss())

    def _family_task(
        self,
        data: Dataset,
        names: tuple[str, ...],
        query_weight: FloatArray | None,
        budget: Budget,
        l1_weights: FloatArray | None,
        folds: Folds | None,
        progress: ProgressCount,
    ) -> FamilyTask:
        objective = make_objective(data, self._loss(), query_weight) if folds is None else folds.objective
        penalty = as_penalty(self.penalty, l1_weights, self.l1_ratio, budget.signs)
        slopes = penalty.slopes(objective.n_features)
        never_up, never_down = np.isinf(slopes.up), np.isinf(slopes.down)
        signs = never_down.astype(np.float64) - never_up
        limits = budget.without_costs().among(objective.varies & ~(never_up & never_down))
        limits = replace(limits, signs=signs if signs.any() else None)
        n_alphas, window = self.n_alphas, self.smoothing
        if limits.columns is not None and self.alphas is None:  # a coarser grid, because curves take longer
            n_alphas, window = (n_alphas + 1) // 2, (window + 1) // 2
        return FamilyTask(
            objective, names, penalty, limits, folds, n_alphas, self.alphas,
            self.min_ratio, self.tol, window, progress,
        )  # fmt: skip

    def _refitted(self, task: Task, valid: Dataset, candidate: Candidate, n_iter: int) -> Attributes:
        """Refit the weights of the selected features on training and validation data."""
        both = task.preparation.for_learning(task.source.joined(valid))
        both = on_device(both, self.device, task.source)
        weight = None
        if task.query_weight is not None:
            weight = np.concatenate([task.query_weight, np.ones(valid.n_queries)])
        objective = make_objective(both, self._loss(), weight)
        usable, steps = candidate.coef != 0, task.preparation.steps
        if steps is not None:
            usable = np.isin(steps.columns.feature, steps.used(candidate.coef))
        problem = Problem(objective, candidate.penalty, usable=usable)
        result = ProxNewton(self.tol).solve(problem, candidate.coef)
        return {
            "coef_": result.w,
            "objective_": float(result.objective),
            "gap_": float(result.gap),
            "n_iter_": n_iter + result.n_iter,
            "subset_": None,  # the proof is about the training data alone
        }

    def _certificate(self) -> dict[str, Any]:
        """With the definition of the problem: family, strength, features and their ℓ1 weights."""
        label, candidate = self.choice_.family.label, self.choice_.candidate
        if self.subset_ is not None:
            return {**self.subset_.certificate(), "family": label}
        ridged, names = label.partition(" ")[0] in RIDGE_FAMILIES, self.coef_names_
        proof = {
            **super()._certificate(),
            "family": label,
            "ridge" if ridged else "alpha": candidate.strength,
        }
        weights, steps = getattr(candidate.penalty, "weights", None), self.preparation_.steps
        if steps is not None:
            proof["shape"] = CURVES
        refitted = self._fit_parameters["refit_on"] == "all" and "valid" in self._origin.fingerprints
        if ridged or refitted or label.endswith(PREVIOUS_SUFFIX):
            columns = np.flatnonzero(candidate.coef) if steps is None else steps.used(candidate.coef)
            proof["features"] = [names[j] for j in columns]
        if weights is not None:
            if steps is None:
                of_features = dict(zip(names, weights, strict=True))
                stated = {name: of_features[name] for name in proof.get("features", names)}
            else:
                stated = steps.stated_weights(weights)
            proof["weights"] = {name: float(weight) for name, weight in stated.items() if weight != 1.0}
        return proof

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        if certificate.get("family", "").partition(" ")[0] not in (*CURVE_FAMILIES, *RIDGE_FAMILIES):
            return None
        names, signs, weights = data.feature_names, None, None
        columns = data.X.columns if isinstance(data.X, StepMatrix) else None
        if columns is not None:
            names = tuple(columns.features[j] for j in columns.feature)
        if isinstance(self.signs, Mapping):
            signs = np.array([float(self.signs.get(name, 0.0)) for name in names])
            signs = signs if columns is None else np.where(columns.is_missing, 0.0, signs)
        if "weights" in certificate:
            stated = certificate["weights"]
            own = zip(names, data.feature_names, strict=True)
            weights = np.array([float(stated.get(column, stated.get(name, 1.0))) for name, column in own])
        if "ridge" in certificate:
            penalty: SlopedPenalty = ElasticNet(certificate["ridge"], signs=signs, l1_ratio=0.0)
        else:
            penalty = as_penalty(self.penalty, weights, self.l1_ratio, signs).scaled(certificate["alpha"])
        return Problem(make_objective(data, self._loss(), query_weight), penalty)

    def _chosen_by(self) -> dict[str, str] | None:
        return self.choice_.validation.criterion

    def _stated_parameters(self) -> dict[str, Any]:
        return plain_budget(self, super()._stated_parameters())

    def _metrics(self) -> dict[str, float]:
        cost = cost_of(self.costs_, self.coef_names_, self.support_)
        return {self.choice_.validation.title: self.choice_.confidence.mean, **cost}


def model_of_candidate(ranker: SparseRanker, coef: FloatArray) -> LinearModel:
    """A model to score with, from the weights of a candidate of ``ranker.choice_``."""
    if (steps := ranker.preparation_.steps) is not None:
        return LinearModel.of_curves(steps, coef)
    names = ranker.coef_names_[: ranker.n_features_in_]
    return LinearModel.of(names, np.flatnonzero(coef), coef[coef != 0], ranker.preparation_)


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Progress of two fits in a row as that of one."""
    if progress is None:
        return None, None
    report = progress
    return (
        lambda done, total: report(done, 2 * total),
        lambda done, total: report(total + done, 2 * total),
    )


def _changes(previous: LinearModel, model: LinearModel, task: Task, choice: Choice, n_folds: int) -> Changes:
    measured = [task.source] if n_folds or task.valid is None else []
    measured += [] if task.valid is None else [task.valid]
    same_data = previous.fingerprint == task.origin.fingerprints["train"]
    return find_changes(previous, model, measured, choice.validation, choice.index, same_data)
