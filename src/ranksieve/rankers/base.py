"""The base class of rankers: what every fit, every score and every model share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.files import plain
from ranksieve.data.dataset import (
    Dataset,
    QueryWeight,
    check_finite,
    counted,
    fingerprint,
    fingerprint_of_weights,
    query_weights,
)
from ranksieve.data.inputs import (
    as_matrix,
    frame_columns,
    frame_names,
    is_frame,
    names_advice,
    numbered_names,
    refuse_text,
)
from ranksieve.data.parts import ELSEWHERE, RemoteRows
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import from_gpu, is_on_gpu, on_device
from ranksieve.losses.base import NO_PAIRS, Loss
from ranksieve.metrics import evaluate
from ranksieve.model.linear import LinearModel
from ranksieve.objective import Objective, make_objective
from ranksieve.path import Progress
from ranksieve.penalties import Penalty
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from ranksieve.prepare.scaling import warn_of_scales
from ranksieve.rankers.parameters import Missing, Normalise, check_parameters
from ranksieve.solvers.base import Callback, Problem, Result, Solver, Trace, relative, warn_of_tolerance

STANDARD = 1e-5  # of means and deviations: rounding, also in float32
ValidData = Dataset | tuple[Any, Any, Any] | None
Attributes = dict[str, Any]
"""Fitted attributes by name."""
MATRIX: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}
PASS_QID = (
    "pass `qid`; scikit-learn's searches, cross-validation and pipelines pass it on as groups=qid after "
    "sklearn.set_config(enable_metadata_routing=True)"
)
ONE_QUERY = (
    "`qid` is None, so all {n} rows count as one query and every document is compared with every other; "
    + PASS_QID
)
SCORE_NEEDS_QUERIES = (
    "{what} was fitted with query ids; NDCG@10 over all rows as one query would be meaningless: give score "
    "a Dataset, or " + PASS_QID
)
UNWEIGHTED = "{what} cannot weigh documents; leave it out, or use a ranker that can, such as SparseRanker"


@dataclass(frozen=True, eq=False)
class Origin:
    """What a ranker remembers of the data that it was fitted on.

    ``names`` are those of the features, None for an array without names; ``fingerprints`` short names for
    the exact content of the data. ``standardised`` says that the features had mean 0 and deviation 1
    already, ``has_qid`` that query ids were given.
    """

    n_features: int
    names: AnyArray | None
    preparation: Preparation
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    standardised: bool = False
    has_qid: bool = True

    @property
    def attributes(self) -> Attributes:
        """The fitted attributes that do not depend on the method."""
        named = {} if self.names is None else {"feature_names_in_": self.names}
        return {"n_features_in_": self.n_features, "preparation_": self.preparation, "_origin": self, **named}


@dataclass(frozen=True, eq=False)
class Task:
    """What a fit starts from: training data that are checked and prepared.

    ``source`` is the training data as they came, without queries and documents of weight 0, ``data`` the
    same prepared, on the ranker's device; ``valid`` is as it came, ``previous`` the model to refit from.
    ``callback`` hears of iterations, ``progress`` of fits.
    """

    origin: Origin
    source: Dataset
    data: Dataset
    query_weight: FloatArray | None = None
    valid: Dataset | None = None
    callback: Callback | None = None
    progress: Progress | None = None
    previous: LinearModel | None = None

    @property
    def preparation(self) -> Preparation:
        return self.origin.preparation


@dataclass(eq=False, repr=False)
class Ranker(BaseEstimator):  # type: ignore[misc]
    """An estimator that scores documents: score(x) = ⟨coef_, x⟩, unless a method overrides ``_scores``.

    x is filled and normalised as ``missing`` and ``normalise`` say; ``preparation_`` holds what was learned
    for that, and the model keeps it. Parameters are dataclass fields whose types check them
    (:mod:`ranksieve.rankers.parameters`).

    A method that minimises a loss plus a penalty defines ``_loss``, ``_penalty`` and ``_solver``; any other
    defines ``_fit``, which returns the fitted attributes and changes nothing.
    """

    # Metadata requests: scikit-learn's splitters and searches call query ids "groups".
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": "groups", "document_weight": True}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"qid": "groups"}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": "groups"}

    n_features_in_: int = field(init=False)
    preparation_: Preparation = field(init=False)
    coef_: FloatArray = field(init=False)
    objective_: float = field(init=False)
    gap_: float = field(init=False)
    n_iter_: int = field(init=False)
    trace_: Trace = field(init=False)
    _origin: Origin = field(init=False)
    _fit_parameters: Mapping[str, Any] = field(init=False)
    _fitted: tuple[str, ...] = field(init=False)  # names of the fitted attributes

    _: KW_ONLY
    normalise: Normalise = "none"
    missing: Missing = "auto"

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn to rank.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or the weights of some (others weigh 1): with
            2 a query counts as two, with 0 as none.
        document_weight : array, optional
            One weight per row, unless X is a Dataset: with 2 a document counts as two copies of it, with 0 as
            absent.
        callback : callable, optional
            Called once an iteration, round or tree with (its number, weights, objective, gap); the start of
            a solver is its iteration 0.
        """
        weights = {"query_weight": query_weight, "document_weight": document_weight}
        return self._learn(X, y, qid, **weights, callback=callback)

    def _learn(self, X: Any, y: Any, qid: Any, **options: Any) -> Self:
        """Check and prepare the data, fit, then set all fitted attributes; an error changes none."""
        check_parameters(self)
        with single_threaded_blas():
            task = self._task(X, y, qid, **options)
            fitted = self._fit(task)
        self._set(task.origin, fitted)
        return self

    def _task(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        query_weight: QueryWeight | None = None,
        document_weight: Any = None,
        valid: ValidData = None,
        callback: Callback | None = None,
        progress: Progress | None = None,
    ) -> Task:
        """The data, checked, prepared and recorded."""
        valid = as_valid(valid)
        check_device(self.device_)
        data, names, scaled = self._checked_data(X, y, qid, document_weight)
        weight = query_weights(query_weight, data)
        fingerprints = {"train": fingerprint(data)}
        if valid is not None:
            fingerprints["valid"] = fingerprint(valid)
        if weight is not None:
            fingerprints["query_weight"] = fingerprint_of_weights(weight)
        weightless = data.document_weight is not None and not data.document_weight.any()
        if weightless or (weight is not None and not weight.any()):
            raise DataError(None, None, NO_PAIRS)
        source, of_queries = counted(data, weight, warn=True)
        weight = None if weight is None else of_queries
        preparation, prepared = self._prepared(source, weight)
        has_qid = isinstance(X, Dataset) or qid is not None
        origin = Origin(source.n_features, names, preparation, fingerprints, scaled, has_qid)
        return Task(origin, source, prepared, weight, valid, callback, progress)

    def _prepared(
        self, source: Dataset, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        """Learn from the training data how to fill and normalise, and do it."""
        preparation, filled = Preparation.learn_and_fill(source, self.normalise, self.missing, query_weight)
        if self.can("scale") and self.normalise == "none":
            warn_of_scales(filled)
        normalised = preparation.normalisation.for_learning(filled)
        return preparation, on_device(normalised, self.device_, source)

    def _fit(self, task: Task) -> Attributes:
        """The fitted attributes: the solution of the method's problem."""
        problem = self._problem(task.data, task.query_weight)
        assert problem is not None
        solver = self._solver(problem, task.data)
        result = solver.solve(problem, self._start(task.data.feature_names), task.callback)
        if not (result.converged or solver.stops_early):
            self._warn_of_tolerance(result)
        return self._solution(problem, result)

    def _set(self, origin: Origin, fitted: Attributes) -> None:
        """Take over what was learned, in place of what was learned before.

        Attributes that others have set, such as scikit-learn's for ``set_output``, stay.
        """
        for name in getattr(self, "_fitted", ()):
            delattr(self, name)
        attributes = {**origin.attributes, **fitted}
        self.__dict__.update(attributes, _fitted=tuple(attributes))
        self._fit_parameters = self._stated_parameters()

    def _loss(self) -> Loss | None:
        """The loss that is minimised; None for a method that does not minimise loss + penalty."""
        return None

    def _penalty(self, objective: Objective) -> Penalty:
        """The penalty beside it."""
        raise NotImplementedError

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem | None:
        """What is minimised; None without a loss."""
        loss = self._loss()
        if loss is None:
            return None
        objective = make_objective(data, loss, query_weight)
        return Problem(objective, self._penalty(objective))

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        """What minimises it."""
        raise NotImplementedError

    def _solution(self, problem: Problem, result: Result) -> Attributes:
        """The fitted attributes of a solver's result."""
        return {
            "coef_": result.w,
            "objective_": float(result.objective),
            "gap_": float(result.gap),
            "n_iter_": result.n_iter,
            "converged_": result.converged,
            "trace_": result.trace,
        }

    def _start(self, names: Sequence[str]) -> FloatArray | None:
        """With ``warm_start`` the weights of the previous fit, found by the names of their features."""
        previous = getattr(self, "coef_", None)
        if not getattr(self, "warm_start", False) or previous is None:
            return None
        place = {name: j for j, name in enumerate(self.coef_names_)}
        if len(previous) != len(names) or not place.keys() >= set(names):
            return None
        return np.array([previous[place[name]] for name in names])

    def _warn_of_tolerance(self, result: Result) -> None:
        warn_of_tolerance(
            f"{type(self).__name__} did not reach `tol={self.tol:g}` in {result.n_iter} "  # type: ignore[attr-defined]
            f"iterations (gap {result.gap:.2g} of the objective {result.objective:.4g}); raise "
            "`max_iter` or `tol`, or normalise the features"
        )

    def can(self, what: str) -> bool:
        """Whether the method has an ability.

        "budget": it keeps limits of features and cost. "distributed": it learns from distributed data.
        "document_weight": a document of weight 2 counts as two copies of it. "grades": its labels must not be
        negative. "linear": its model is linear. "scale": features in other units give another ranker.
        "stream": it learns from a file while it is read. "valid": it selects among models of its own by
        validation data.
        """
        if what == "valid":
            return "valid" in inspect.signature(self.fit).parameters
        if what == "stream":
            return hasattr(self, "fit_file")
        return what in self._abilities()

    def _abilities(self) -> Collection[str]:
        loss = self._loss()
        return ("linear", "scale", *getattr(loss, "abilities", () if loss is None else ("document_weight",)))

    @property
    def device_(self) -> str:
        """Where to fit and score; a parameter of methods that can do it on a GPU."""
        return getattr(self, "device", "cpu")

    @property
    def normalisation_(self) -> Normalisation:
        """How features are normalised, as learned by ``fit``."""
        return self.preparation_.normalisation

    @property
    def missing_(self) -> MissingPolicy:
        """What replaces missing features, as learned by ``fit``."""
        return self.preparation_.missing

    @property
    def support_(self) -> IntArray:
        """Columns with a nonzero weight, ascending."""
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any, qid: Any = None) -> FloatArray:
        """Scores in the input's row order: higher ranks first.

        Query ids are needed only where features are normalised or filled within each query; a Dataset has
        its own. The columns of a frame are found by name, in any order; those that the scores do not depend
        on need not be there. Features that are on a GPU are scored there, as are others by a ranker with such
        a device.
        """
        check_is_fitted(self, "n_features_in_")
        if isinstance(X, RemoteRows):
            return X.predicted(self._scorer())  # type: ignore[no-any-return]
        features = self._checked_features(X, self._columns_read())
        return _finite(self._scores(features, X.qid if isinstance(X, Dataset) else qid))

    def _scores(self, X: Matrix, qid: Any) -> FloatArray:
        """Scores of checked features."""
        return self._linear_model().predict(X, qid, device=self.device_)

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        """What gives the scores of a part of distributed data; it is sent to the workers."""
        return self._linear_model().predict

    def _columns_read(self) -> IntArray:
        """The columns that scores depend on."""
        return np.unique(self._linear_model().columns).astype(np.int64)

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 (standard profile); a query weighs the mean of its rows' sample weights.

        Without query ids, a ranker that was fitted with them refuses; one that was not takes all rows as one
        query and warns.
        """
        check_is_fitted(self, "n_features_in_")
        data = X if isinstance(X, Dataset) else self._data_to_score(X, y, qid)
        values = evaluate(self.predict(X, qid), data, ["ndcg@10"], profile="standard").per_query["ndcg@10"]
        return float(np.average(values, weights=_query_means(sample_weight, data)))

    def _data_to_score(self, X: Any, y: Any, qid: Any) -> Dataset:
        if qid is None and self._origin.has_qid:
            raise ParameterError("qid", None, SCORE_NEEDS_QUERIES.format(what=type(self).__name__))
        matrix = self._checked_features(X, self._columns_read())
        if qid is None:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return as_dataset(matrix, y, qid, getattr(self, "feature_names_in_", None))

    def to_model(self) -> Any:  # a LinearModel, or a BoostedModel of rankers that are not linear
        """The fitted ranker as a model that can be saved, exported and explained."""
        check_is_fitted(self, "n_features_in_")
        if self._origin.standardised:
            warn_caller(STANDARDISED, StandardisedWarning)
        return replace(
            self._linear_model(),
            method=type(self).__name__,
            parameters=self._fit_parameters,
            certificate={k: v for k, v in self._certificate().items() if not _unknown(v)},
            metrics=self._metrics(),
            chosen_by=self._chosen_by(),
            data=self._origin.fingerprints,
        )

    def _linear_model(self) -> LinearModel:
        """What is needed to score."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return LinearModel.of(names, self.support_, self.coef_[self.support_], self.preparation_)

    def _stated_parameters(self) -> dict[str, Any]:
        """The parameters as plain data, which model files keep."""
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def _certificate(self) -> dict[str, Any]:
        gap = relative(self.gap_, self.objective_)
        return {"objective": float(self.objective_), "gap": float(self.gap_), "relative_gap": float(gap)}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """The problem of which a certificate gives objective and gap; None if only the fit knows it.

        The data are prepared and have the features that the certificate is about.
        """
        return self._problem(data, query_weight)

    def _metrics(self) -> dict[str, float]:
        """What was measured on held-out queries."""
        return {}

    def _chosen_by(self) -> dict[str, str] | None:
        """The metric and the profile that the ranker chose its model by, if it did."""
        return None

    @property
    def coef_names_(self) -> list[str]:
        """Names of the weights: those of the features, then indicators of missing ones."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return [*(str(name) for name in names), *self.missing_.indicators]

    def _checked_data(
        self, X: Any, y: Any, qid: Any, document_weight: Any = None
    ) -> tuple[Dataset, AnyArray | None, bool]:
        """(the training data, names of the features if there are any, whether they are standardised)."""
        if isinstance(X, Dataset):
            for name, value in (("y", y), ("qid", qid), ("document_weight", document_weight)):
                if value is not None:
                    raise ParameterError(name, value, "must be None, because the Dataset has its own")
            self._check_weighing(X.document_weight)
            if isinstance(X, RemoteRows) and not self.can("distributed"):
                raise DataError(None, None, ELSEWHERE.format(what=type(self).__name__))
            return X, np.array(X.feature_names, dtype=object), False
        self._check_weighing(document_weight)
        matrix, names = self._checked_matrix(X)
        if y is None:
            reason = f"{type(self).__name__} requires y to be passed, but the target y is None"
            raise ParameterError("y", None, reason)
        labels = one_dimensional(y, warn=True)
        if qid is None:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return as_dataset(matrix, labels, qid, names, document_weight), names, standardised(matrix)

    def _check_weighing(self, weight: Any) -> None:
        if weight is not None and not self.can("document_weight"):
            raise ParameterError("document_weight", weight, UNWEIGHTED.format(what=type(self).__name__))

    def _checked_matrix(self, X: Any) -> tuple[Matrix, AnyArray | None]:
        """Features to learn from as float32, float64 or CSR, perhaps not finite, and their names if any."""
        if is_on_gpu(X):
            return from_gpu(X), None
        if is_frame(X):
            refuse_text(X)
        unfitted = clone(self)  # scikit-learn notes the names there
        try:
            matrix = validate_data(unfitted, X, ensure_min_samples=2, **MATRIX)
        except (TypeError, ValueError):
            if is_frame(X):
                as_matrix(X)  # it names the column at fault
            raise
        return matrix, getattr(unfitted, "feature_names_in_", None)

    def _checked_features(self, X: Any, used: IntArray | None = None) -> Matrix:
        """The features in the order of the training data; those that are ``used`` (default: all) finite."""
        if isinstance(X, Dataset):
            data = self._in_training_order(X)
        else:
            matrix = self._matrix_to_score(X, used)
            zeros = np.zeros(matrix.shape[0])
            data = as_dataset(matrix, zeros, None, getattr(self, "feature_names_in_", None))
        if used is None or len(used):
            read = data if used is None else data.select_features(used)
            check_finite(read, allow_missing=self.preparation_.fills)
        return data.X

    def _matrix_to_score(self, X: Any, used: IntArray | None) -> Matrix:
        """Features to score as float32, float64 or CSR.

        A ranker that has names finds the columns of a frame by name: those ``used`` (default: all) must be
        there, and others are 0 if they are not.
        """
        if is_on_gpu(X):
            return self._check_width(from_gpu(X))
        names = tuple(getattr(self, "feature_names_in_", ()))
        try:
            if is_frame(X) and names:
                return check_array(self._columns_by_name(X, names, used), **MATRIX)
            if is_frame(X):
                refuse_text(X)
            elif names and names == numbered_names(len(names)):  # no names to compare
                return self._check_width(check_array(X, **MATRIX))
            return validate_data(self, X, reset=False, **MATRIX)
        except (TypeError, ValueError):
            if is_frame(X) and not names:
                as_matrix(X)
            raise

    def _check_width(self, X: Matrix) -> Matrix:
        if X.shape[1] != self.n_features_in_:
            fitted_on = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise DataError(None, None, f"X has {X.shape[1]} features, but {fitted_on}")
        return X

    def _columns_by_name(self, frame: Any, names: Sequence[str], used: IntArray | None) -> AnyArray:
        """The columns of the training data; by position if either has no names of its own but f1, f2, …"""
        present = frame_names(frame)
        place = {name: j for j, name in enumerate(present)}
        needed = list(range(len(names))) if used is None else used.tolist()
        absent = [names[j] for j in needed if names[j] not in place]
        if not absent:
            X = np.zeros((len(frame), len(names)))
            X[:, needed] = frame_columns(frame, [place[names[j]] for j in needed])
            return X
        if len(present) == len(names) and numbered_names(len(names)) in (tuple(names), present):
            return frame_columns(frame, range(len(names)))
        raise self._absent_features(absent, "the frame")

    def _in_training_order(self, data: Dataset) -> Dataset:
        """The data with the columns of the training data in their order, found by name.

        Where either has no names of its own but f1, f2, …, columns go by position.
        """
        names = getattr(self, "feature_names_in_", None)
        if data.n_features != self.n_features_in_:
            raise DataError(
                None,
                None,
                f"{type(self).__name__} was fitted on {self.n_features_in_} features "
                f"but the data set has {data.n_features}"
                f"{names_advice(data.feature_names, () if names is None else names)}",
            )
        return in_column_order(data, data.feature_names if names is None else tuple(names), self)

    def _absent_features(self, absent: Sequence[str], where: str) -> DataError:
        reason = f"{where} lacks {len(absent)} features of the fit: {', '.join(absent[:10])}"
        return DataError(None, None, f"{reason}; give {type(self).__name__} the same feature names")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.positive_only = self.can("grades")
        return tags


def in_column_order(data: Dataset, names: tuple[str, ...], ranker: Ranker) -> Dataset:
    """The data with columns of these names in this order; by position where either has only f1, f2, …"""
    if names == data.feature_names:
        return data
    place = {name: column for column, name in enumerate(data.feature_names)}
    absent = [name for name in names if name not in place]
    if not absent:
        return data.select_features(np.array([place[name] for name in names]))
    if numbered_names(data.n_features) in (names, data.feature_names):
        return data
    raise ranker._absent_features(absent, "the data set")


def as_dataset(
    matrix: Matrix, y: Any, qid: Any, names: AnyArray | None = None, document_weight: Any = None
) -> Dataset:
    ids = np.zeros(matrix.shape[0], dtype=np.int64) if qid is None else qid
    columns = None if names is None else list(names)
    return Dataset(matrix, one_dimensional(y), ids, columns, document_weight=document_weight)


def started_from(ranker: Ranker, coef: FloatArray, names: Sequence[str]) -> Ranker:
    """The ranker, whose next fit starts from the weights of these features."""
    origin = Origin(len(names), np.array(names, dtype=object), Preparation(MissingPolicy("error")))
    ranker.set_params(warm_start=True)._set(origin, {"coef_": coef})
    return ranker


def _unknown(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


def standardised(X: Matrix) -> bool:
    """Whether every column has mean 0 and deviation 1, as behind a StandardScaler, or is constant."""
    if not isinstance(X, np.ndarray):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > 0
    return bool(
        varies.any()
        and (np.abs(mean) <= STANDARD).all()
        and (np.abs(deviation[varies] - 1.0) <= STANDARD).all()
    )


def one_dimensional(y: Any, warn: bool = False) -> AnyArray:
    """An array of one dimension; a column is one, too."""
    if isinstance(y, np.ndarray) and y.ndim == 1:
        return y
    return np.asarray(column_or_1d(y, warn=warn))


def as_valid(valid: ValidData) -> Dataset | None:
    """Validation data: a Dataset or (X, y, qid), in which some ranking is better than another; or None."""
    if valid is None:
        return None
    if isinstance(valid, tuple | list) and len(valid) == 3:
        X, y, qid = valid
        valid = Dataset(X, one_dimensional(y), qid)
    if not isinstance(valid, Dataset):
        raise ParameterError("valid", valid, "must be a Dataset or (X, y, qid)")
    if not valid.pairs_per_query.any():
        raise DataError(
            None,
            None,
            "no query of the validation data has documents of different labels, so all models rank them "
            "equally well; give other validation data, or none for cross-validation",
        )
    return valid


def _finite(scores: FloatArray) -> FloatArray:
    """The scores, unless one is too large for a number."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        raise DataError(
            None,
            None,
            f"the score of row {row} overflows; bring the features to the scale of the training data",
        )
    return scores


def _query_means(sample_weight: Any, data: Dataset) -> AnyArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    sums = np.add.reduceat(data.queries.group(weight), data.queries.offsets[:-1])
    return np.asarray(sums / data.queries.sizes)


STANDARDISED = (
    "the features had mean 0 and deviation 1 when the ranker saw them, so its model is for features that are "
    "scaled already; the model of a pipeline, for features as they are, is ranksieve.to_model(pipeline)"
)


class StandardisedWarning(UserWarning):
    """A model is for features that were standardised before the ranker saw them."""
