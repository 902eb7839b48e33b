"""SparseRanker: the certified path, and the point on it that ranks unseen queries best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.features import as_sign
from ranksieve.estimators.base import LinearRanker, all_or_nothing
from ranksieve.estimators.candidates import REFITS, Candidates, Family, ProgressCount, Recipe, Search
from ranksieve.estimators.choice import RULES, Budget, warn_if_blind
from ranksieve.estimators.cost_candidates import families_by_cost
from ranksieve.estimators.parameters import Count, Folds, Normalise, Positive, Seed, Share, one_of
from ranksieve.formats.feature_tables import as_costs
from ranksieve.metrics import Profile
from ranksieve.metrics.profiles import as_profile
from ranksieve.path import Progress
from ranksieve.penalties import SlopedPenalty
from ranksieve.penalties.constraints import Constraints, Features, Signs, make_constraints

PATH_OPTIONS = ("penalty", "l1_ratio", "n_alphas", "alphas", "min_ratio", "tol", "max_features")


@dataclass(eq=False, repr=False)
class SparseRanker(LinearRanker):
    """The best sparse linear ranker: fit the certified path, choose a point on held-out queries.

    min_w (1/p) Σ_{pairs} max(0, 1 − ⟨w, x_i − x_j⟩)² + α Σ_j v_j|w_j| for a grid of α; each point carries a
    duality gap of at most ``tol`` times its objective. With ``feature_costs`` there are several paths: plain,
    with v_j = cost_j^γ, and over the features that ``max_cost`` buys; the choice is among all their points.

    Parameters
    ----------
    max_features : int, optional
        Choose among the points with at most this many features.
    metric : str
        What the choice maximises, such as "ndcg@10" or "map".
    profile : str or Profile
        Metric conventions: "letor", "mslr" or "standard".
    feature_costs : file, mapping, sequence or FeatureCosts, optional
        What each feature costs, alone or in groups that are paid once; see :func:`ranksieve.read_costs`.
    max_cost : float, optional
        Choose among the models that cost at most this much.
    must_have, must_not, signs
        Features that are free of ℓ1, features that are never used, and signs that weights must have; as in
        :func:`ranksieve.sparse_path`.
    rule : "best" or "one_standard_error"
        The best point, or the one with the fewest features (with costs: the cheapest) within a standard error
        (over queries) of it.
    refit : "shrunk" or "unshrunk"
        Keep the weights of the path, or refit the chosen features without ℓ1 (ridge of α/1000).
    penalty, weights, l1_ratio, n_alphas, alphas, min_ratio, tol
        As in :func:`ranksieve.sparse_path`.
    cv : int
        Query-level folds used when ``fit`` gets no validation set.
    random_state : int
        Shuffles queries into folds.
    normalise : "z", "within_z", "min_max", "query_min_max", "query_z" or "none"
        How features are scaled, learned on the training data or within each query; part of the ranker.
    missing : "auto", "error", "zero", "query_min", "column_mean" or "indicator"
        What takes the place of a missing feature, here and in ``predict``: "auto" puts the training mean and
        says so, "indicator" puts it and learns a weight for its being missing.

    Attributes
    ----------
    coef_, support_, alpha_, objective_, gap_, n_iter_
        The chosen ranker and its certificate.
    path_ : Path
        All points of the path that the ranker was chosen from.
    validation_ : Validation
        Held-out metric of each point, per query.
    costs_ : FeatureCosts or None
        What features cost.
    """

    uses_valid: ClassVar[bool] = True
    max_features: Count | None = None
    metric: str = "ndcg@10"
    _: KW_ONLY
    feature_costs: Any = None
    max_cost: Annotated[float, Interval(Real, 0, np.inf, closed="both")] | None = None
    must_have: Features = ()
    must_not: Features = ()
    signs: Signs | None = None
    profile: str | Profile = "letor"
    rule: Annotated[str, one_of(RULES)] = "best"
    refit: Annotated[str, one_of(REFITS)] = "shrunk"
    penalty: str | SlopedPenalty = "l1"
    weights: Any = None
    l1_ratio: float | None = None
    n_alphas: Count = 100
    alphas: Any = None
    min_ratio: Share = 1e-3
    tol: Positive = 1e-6
    cv: Folds = 5
    random_state: Seed = 0
    normalise: Normalise = "z"

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        valid: Dataset | None = None,
        query_weight: FloatArray | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the path on the data and choose its point on ``valid``, or by query-level cross-validation.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        valid : Dataset, optional
            Held-out queries for the choice.
        query_weight : array, optional
            One weight per query, in order of first appearance: with 2 a query counts as two, with 0 as none.
        progress : callable, optional
            Called with (points done, points in all).
        """
        check_valid(valid)
        given, weight = self._given_data(X, y, qid, query_weight, valid)
        candidates = self._candidates(given, valid, weight, progress)
        self._adopt(*candidates.choose(RULES[self.rule]))
        return self

    def candidates(
        self,
        data: Dataset,
        valid: Dataset | None = None,
        *,
        n_budgets: int = 1,
        query_weight: FloatArray | None = None,
        progress: Progress | None = None,
    ) -> Candidates:
        """The models that ``fit`` chooses from, each measured on held-out queries.

        With costs and ``n_budgets`` above 1, features are bought for that many budgets up to ``max_cost`` (or
        the cost of all features) instead of for ``max_cost`` alone.
        """
        check_valid(valid)
        trial = self._twin()  # the ranker itself learns nothing
        given, weight = trial._given_data(data, None, None, query_weight, valid)
        return trial._candidates(given, valid, weight, progress, n_budgets)

    def path_options(self) -> dict[str, Any]:
        """Arguments of :func:`ranksieve.sparse_path` that say what is minimised, less those of the grid."""
        names = ("penalty", "weights", "l1_ratio", "signs", "must_have", "must_not")
        return {name: getattr(self, name) for name in names}

    def _candidates(
        self,
        given: Dataset,
        valid: Dataset | None,
        query_weight: FloatArray | None,
        progress: Progress | None,
        n_budgets: int = 1,
    ) -> Candidates:
        data = self._prepared_for_learning(given, query_weight)
        if valid is not None and valid.n_features != given.n_features:
            raise ValueError(
                f"training data have {given.n_features} features but valid has {valid.n_features}"
            )
        constraints = make_constraints(data.feature_names, self.must_have, self.must_not, self.signs)
        recipe, budget = self._recipe(constraints), self._budget(data)
        budget.check_must_have(constraints.unpenalised)
        n_folds = 0 if valid is not None else _folds(self.cv, data.n_queries)
        # one query cannot be held out from itself: it is its own validation set
        measured = given if valid is None else self._held_out(valid)
        search = self._search(data, measured, n_folds, query_weight, progress)
        families = (
            (search.family(recipe),)
            if budget.costs is None
            else families_by_cost(search, recipe, budget, budget.costs, constraints.unpenalised, n_budgets)
        )
        warn_if_blind([family.validation for family in families])
        return Candidates(families, budget)

    def _recipe(self, constraints: Constraints) -> Recipe:
        options = {name: getattr(self, name) for name in PATH_OPTIONS}
        options |= {"weights": constraints.weights(self.weights), "signs": constraints.signs}
        label = self.penalty if isinstance(self.penalty, str) else self.penalty.name
        return Recipe(label, options, REFITS[self.refit])

    def _budget(self, data: Dataset) -> Budget:
        names, indicators = data.feature_names, self.missing_.indicators
        given = [name for name in names if name not in indicators]
        self.costs_ = None
        if self.feature_costs is not None:
            self.costs_ = as_costs(self.feature_costs, given).with_indicators(indicators)
        costs = None if self.costs_ is None else self.costs_.columns(names)
        return Budget(self.max_features, self.max_cost, costs)

    def _search(
        self,
        data: Dataset,
        measured: Dataset,
        n_folds: int,
        query_weight: FloatArray | None,
        progress: Progress | None,
    ) -> Search:
        return Search(
            data, measured, self._scores_with, query_weight, self.metric, self.profile, n_folds,
            self.random_state, self.max_features, ProgressCount(progress, 1 + n_folds),
        )  # fmt: skip

    def _adopt(self, family: Family, chosen: int) -> None:
        models = family.models
        self.path_, self.validation_ = family.path, family.validation
        self.chosen_ = chosen
        self.alpha_ = float(models.alphas[chosen])
        self.coef_ = models.coefs[chosen].copy()
        self.objective_ = float(models.objectives[chosen])
        self.gap_ = float(models.gaps[chosen])
        self.n_iter_ = int(models.n_iter.sum())
        self.trace_ = models.trace

    def _plain_parameters(self) -> dict[str, Any]:
        """With the costs of a file, and signs by the names of the features."""
        held = super()._plain_parameters()
        if self.costs_ is not None:
            held["feature_costs"] = self.costs_.to_dict()
        if isinstance(self.signs, Mapping):
            names = self._names()
            held["signs"] = {
                feature if isinstance(feature, str) else names[feature]: as_sign(sign, feature)
                for feature, sign in self.signs.items()
            }
        return held

    def _certificate(self) -> dict[str, float]:
        return {**super()._certificate(), "alpha": self.alpha_}

    def _measured(self) -> dict[str, float]:
        names, told = self._names(), self.validation_
        measured = {
            f"validation {told.metric} ({as_profile(told.profile).name})": float(told.mean[self.chosen_])
        }
        if self.costs_ is not None:
            measured["cost"] = self.costs_.of(names[j] for j in self.support_)
        return measured


def check_valid(valid: Any) -> None:
    """Validation data are a Dataset in which some ranking is better than another, or None."""
    if valid is None:
        return
    if not isinstance(valid, Dataset):
        raise ValueError(f"valid must be a Dataset, got {type(valid).__name__}; give Dataset(X, y, qid)")
    if not valid.pairs_per_query.any():
        raise ValueError(
            "no query of the validation data has documents of different labels, so all models rank them "
            "equally well; give other validation data, or none for cross-validation"
        )


def _folds(cv: int, n_queries: int) -> int:
    return min(cv, n_queries) if n_queries > 1 else 0
