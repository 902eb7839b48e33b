"""Base class of rankers: checks of the input, fitting, scoring and models."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix, PathLike
from ranksieve._util.files import to_plain
from ranksieve.data.dataset import (
    Dataset,
    QueryWeight,
    check_finite,
    drop_zero_weight,
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
from ranksieve.data.matrix import is_streamed
from ranksieve.data.parts import NEEDS_MEMORY, RemoteData
from ranksieve.errors import DataError, ParameterError, warn_caller
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import from_gpu, is_on_gpu, on_device
from ranksieve.losses.base import NO_PAIRS, Loss
from ranksieve.metrics.evaluate import evaluate_quietly
from ranksieve.model.linear import LinearModel
from ranksieve.objective import Objective, make_objective
from ranksieve.path import Progress
from ranksieve.penalties import Penalty
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from ranksieve.prepare.scaling import warn_of_scales
from ranksieve.rankers.arguments import has_callbacks, learn_with_callbacks, reported, usual_arguments
from ranksieve.rankers.parameters import Missing, Normalise, check_parameters
from ranksieve.show.card import model_card
from ranksieve.show.fit import feature_columns, ranker_parts
from ranksieve.show.result import Summary
from ranksieve.show.upwards import Drawn, report_function
from ranksieve.solvers.base import Callback, Problem, Result, Solver, Trace, relative, warn_not_converged

MAX_VARIANCE_CELLS = 4_000_000  # values of the sample that importances are measured on
STANDARDISED_TOL = 1e-5  # error of means and deviations: above the rounding of float32
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
    "{what} was fitted with query ids; NDCG@10 over all rows as one query would be meaningless: pass a "
    "Dataset to score, or " + PASS_QID
)


@dataclass(frozen=True, eq=False)
class Origin:
    """Metadata of the training data, kept by a fitted ranker.

    ``names`` are the feature names, None for an array without names; ``fingerprints`` are hashes of the data
    by role. ``standardised``: the features already had mean 0 and standard deviation 1. ``has_qid``: query
    ids were passed.
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
    """The input of a fit, checked.

    ``source`` is the training data without queries and documents of weight 0; ``data`` is ``source`` filled
    and normalised, on the ranker's device. ``valid`` is not prepared. ``previous`` is the model to refit
    from. ``callback`` is called after iterations, ``progress`` after fits.
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
class Ranker(Drawn, BaseEstimator):  # type: ignore[misc]
    """Base class of rankers: score(x) = ⟨coef_, x⟩, unless a method overrides ``_scores``.

    Missing values of x are filled according to ``missing``, and x is normalised according to ``normalise``;
    ``preparation_`` holds the fitted statistics and becomes part of the model. Parameters are dataclass
    fields, checked by their types (:mod:`ranksieve.rankers.parameters`).

    A method that minimises a loss plus a penalty defines ``_loss``, ``_penalty`` and ``_solver``; any other
    defines ``_fit``, which returns the fitted attributes and does not modify the ranker.
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
    _importances: FloatArray | None = field(init=False)
    _uncounted: str = field(init=False)  # sentence about held-out lists that are too short

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
        progress: bool | Progress | None = None,
        **others: Any,
    ) -> Self:
        """Learn to rank.

        Parameters
        ----------
        X : Dataset, array, CSR matrix or frame
        y, qid : arrays
            Labels and query ids, unless X is a Dataset.
        query_weight : array or mapping of query id to number, optional
            One weight per query, in order of first appearance, or a mapping for some queries (default 1). A
            query of weight 2 counts twice, one of weight 0 is ignored.
        document_weight : array, optional
            One weight per row, unless X is a Dataset. A document of weight 2 counts as two copies, one of
            weight 0 is ignored.
        callback : callable, optional
            Called after each iteration, round or tree with (its number, weights, objective, gap); number 0 is
            a solver's starting point.
        progress : bool or callable, optional
            True: show the progress of iterations; a function is called with (number of iterations, most).
        **others
            ``group``, the number of rows of each query as in LightGBM and XGBoost, in place of ``qid``;
            ``verbose`` is the same as ``progress``.
        """
        weights = {"query_weight": query_weight, "document_weight": document_weight}
        return self._learn(X, y, qid, **weights, callback=callback, progress=progress, **others)

    @available_if(has_callbacks)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Use scikit-learn's callbacks in ``fit``, such as ``sklearn.callback.ProgressBar()``."""
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self

    def _learn(self, X: Any, y: Any, qid: Any, **options: Any) -> Self:
        """Check and prepare the data, fit, and set the fitted attributes; on an error none is set."""
        check_parameters(self)
        X, y, qid, options = usual_arguments(self, X, y, qid, options)
        if getattr(self, "_skl_callbacks", ()):
            learn_with_callbacks(self, partial(self._learn_from, X, y, qid), options)
        else:
            self._learn_from(X, y, qid, **options)
        return self

    def _learn_from(self, X: Any, y: Any, qid: Any, **options: Any) -> None:
        with reported(self, options) as options, single_threaded_blas():
            task = self._task(X, y, qid, **options)
            fitted = self._fit(task)
        self._set(task.origin, fitted)
        self._importances = share_of_variance(self, task.source)
        self._uncounted = _uncounted(self, task)

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
        """Check, fingerprint and prepare the data."""
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
        source, source_weight = drop_zero_weight(data, weight, warn=True)
        weight = None if weight is None else source_weight
        preparation, prepared = self._prepare(source, weight)
        has_qid = isinstance(X, Dataset) or qid is not None
        origin = Origin(source.n_features, names, preparation, fingerprints, scaled, has_qid)
        return Task(origin, source, prepared, weight, valid, callback, progress)

    def _prepare(
        self, source: Dataset, query_weight: FloatArray | None = None
    ) -> tuple[Preparation, Dataset]:
        """Fit the preparation to the training data and apply it."""
        preparation, filled = Preparation.learn_and_fill(source, self.normalise, self.missing, query_weight)
        if self.can("scale") and self.normalise == "none":
            warn_of_scales(filled)
        normalised = preparation.normalisation.for_learning(filled)
        return preparation, on_device(normalised, self.device_, source)

    def _fit(self, task: Task) -> Attributes:
        """Solve the problem and return the fitted attributes."""
        problem = self._problem(task.data, task.query_weight)
        assert problem is not None
        solver = self._solver(problem, task.data)
        result = solver.solve(problem, self._start(task.data.feature_names), task.callback)
        if not (result.converged or solver.stops_early):
            self._warn_not_converged(result)
        return self._solution(problem, result)

    def _set(self, origin: Origin, fitted: Attributes) -> None:
        """Replace all fitted attributes.

        Other attributes, such as scikit-learn's for ``set_output``, are kept.
        """
        for name in getattr(self, "_fitted", ()):
            delattr(self, name)
        attributes = {**origin.attributes, **fitted}
        self.__dict__.update(attributes, _fitted=tuple(attributes))
        self._fit_parameters = self._stated_parameters()
        self._importances, self._uncounted = None, ""

    def _loss(self) -> Loss | None:
        """The loss; None for a method that does not minimise loss + penalty."""
        return None

    def _penalty(self, objective: Objective) -> Penalty:
        raise NotImplementedError

    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem | None:
        """The problem to minimise; None without a loss."""
        loss = self._loss()
        if loss is None:
            return None
        objective = make_objective(data, loss, query_weight)
        return Problem(objective, self._penalty(objective))

    def _solver(self, problem: Problem, data: Dataset) -> Solver:
        raise NotImplementedError

    def _solution(self, problem: Problem, result: Result) -> Attributes:
        return {
            "coef_": result.w,
            "objective_": float(result.objective),
            "gap_": float(result.gap),
            "n_iter_": result.n_iter,
            "converged_": result.converged,
            "trace_": result.trace,
        }

    def _start(self, names: Sequence[str]) -> FloatArray | None:
        """Weights of the previous fit in the order of ``names``; None without ``warm_start``."""
        previous = getattr(self, "coef_", None)
        if not getattr(self, "warm_start", False) or previous is None:
            return None
        index = {name: j for j, name in enumerate(self.coef_names_)}
        if len(previous) != len(names) or not index.keys() >= set(names):
            return None
        return np.array([previous[index[name]] for name in names])

    def _warn_not_converged(self, result: Result) -> None:
        warn_not_converged(
            f"{type(self).__name__} did not reach `tol={self.tol:g}` in {result.n_iter} "  # type: ignore[attr-defined]
            f"iterations (gap {result.gap:.2g} of the objective {result.objective:.4g}); raise "
            "`max_iter` or `tol`, or normalise the features"
        )

    def can(self, what: str) -> bool:
        """Whether the method has an ability or property.

        "budget": it has limits on the number of features and the cost. "distributed": it can be fitted on
        distributed data. "document_weight": it supports document weights. "grades": it needs nonnegative
        labels. "linear": its model is linear. "scale": it depends on the scale of the features. "stream": it
        can be fitted while a file is read. "valid": its ``fit`` uses validation data to select a model.
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
        """Device to fit and score on: the parameter ``device`` if the method has it, else "cpu"."""
        return getattr(self, "device", "cpu")

    @property
    def normalisation_(self) -> Normalisation:
        """Fitted normalisation."""
        return self.preparation_.normalisation

    @property
    def missing_(self) -> MissingPolicy:
        """Fitted replacements of missing values."""
        return self.preparation_.missing

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the variance of the scores of training documents within their queries.

        The variance of w_j·x_j, or of the curve of the feature, within queries, divided by the sum over
        features: covariances are left out. Measured on at most the first 4 million values of the training
        data, if these are in memory.
        """
        check_is_fitted(self, "n_features_in_")
        if self._importances is None:
            raise AttributeError(
                f"feature_importances_ of {type(self).__name__} needs a linear model that was fitted on data "
                "in memory; rs.feature_importance(model, data) measures the loss without each feature"
            )
        return self._importances

    @property
    def support_(self) -> IntArray:
        """Columns with a nonzero weight, ascending."""
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any, qid: Any = None) -> FloatArray:
        """Scores in row order; a higher score ranks first.

        ``qid`` is needed only if features are normalised or filled within each query; a Dataset contains it.
        Columns of a frame are matched by name, in any order; columns that the scores do not depend on may be
        absent. Scores are computed on the GPU if the features are there or ``device`` is one.
        """
        check_is_fitted(self, "n_features_in_")
        if isinstance(X, RemoteData):
            return X.predict_parts(self._scorer())  # type: ignore[no-any-return]
        features = self._checked_features(X, self._columns_read())
        return _finite(self._scores(features, X.qid if isinstance(X, Dataset) else qid))

    def _scores(self, X: Matrix, qid: Any) -> FloatArray:
        return self._linear_model().predict(X, qid, device=self.device_)

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        """Function that scores a part of distributed data; it is sent to the workers."""
        return self._linear_model().predict

    def _columns_read(self) -> IntArray:
        """Columns that the scores depend on."""
        return np.unique(self._linear_model().columns).astype(np.int64)

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 (standard profile), each query weighted by the mean ``sample_weight`` of its rows.

        Without query ids, all rows are one query, with a warning; if the ranker was fitted with query ids,
        this is an error.
        """
        check_is_fitted(self, "n_features_in_")
        data = X if isinstance(X, Dataset) else self._data_to_score(X, y, qid)
        evaluation = evaluate_quietly(self.predict(X, qid), data, "ndcg@10", "standard")
        return float(np.average(evaluation.per_query["ndcg@10"], weights=_query_means(sample_weight, data)))

    def _data_to_score(self, X: Any, y: Any, qid: Any) -> Dataset:
        if qid is None and self._origin.has_qid:
            raise ParameterError("qid", None, SCORE_NEEDS_QUERIES.format(what=type(self).__name__))
        matrix = self._checked_features(X, self._columns_read())
        if qid is None:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return as_dataset(matrix, y, qid, getattr(self, "feature_names_in_", None))

    def to_model(self) -> Any:  # a LinearModel, or a BoostedModel if the ranker is not linear
        """The fitted ranker as a model that can be saved, exported and explained."""
        check_is_fitted(self, "n_features_in_")
        if self._origin.standardised:
            warn_caller(STANDARDISED, StandardisedWarning)
        return replace(
            self._linear_model(),
            method=self._model_name,
            parameters=self._fit_parameters,
            certificate={k: v for k, v in self._certificate().items() if not _is_not_finite(v)},
            metrics=self._metrics(),
            chosen_by=self._chosen_by(),
            data=self._origin.fingerprints,
        )

    @property
    def _model_name(self) -> str:
        """Name of the method in the model file."""
        return type(self).__name__

    def summary(self, scaled: bool = False) -> Summary:
        """What ``ranksieve fit`` prints: held-out metric, features with their weights, and the proof.

        Weights are per unit of the data; ``scaled=True`` shows those of the scaled features. It prints
        itself at the prompt and in notebooks; ``to_frame()`` makes a data frame of the features.
        """
        with warnings.catch_warnings():  # to_model() shows it
            warnings.simplefilter("ignore", StandardisedWarning)
            model = self.to_model()
        return Summary(list(ranker_parts(self, model, self._uncounted, scaled)), feature_columns(self, model))

    def model_card(self, test: Dataset | None = None) -> str:
        """Markdown for a model registry: data, metric with its interval, features, proof and limits.

        ``test`` data, used neither for fitting nor for selection, add their metric with its interval.
        """
        model = self.to_model()
        tested = (
            ""
            if test is None
            else report_function("calls.evaluate_test")("the test data", test, model).sentence
        )
        return model_card(model, self, tested)

    def report(self, path: PathLike, **shown: Any) -> None:
        """Write the page of the fit, one HTML file: what ``ranksieve fit --report`` writes.

        Parameters
        ----------
        path : path
            The file.
        **shown
            ``train`` (Dataset): the metric of each feature alone, and histograms beneath curves. ``valid``
            (Dataset): more metrics. ``test`` (Dataset), used neither for fitting nor for selection: shown
            first. ``title`` (str): heading of the page.
        """
        report_function("calls.report_fit")(self, path, **shown)

    def __str__(self) -> str:
        return str(self.summary()) if hasattr(self, "n_features_in_") else repr(self)

    def _repr_html_inner(self) -> str:
        return self._with_summary(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return {kind: self._with_summary(text) if "html" in kind else text for kind, text in bundle.items()}

    def _with_summary(self, html: str) -> str:
        """scikit-learn's diagram, followed by the summary after a fit."""
        if not hasattr(self, "n_features_in_"):
            return html
        summary = self.summary()
        diagram = html.replace(escape(str(summary)), escape(repr(self)))  # which shows `str` without styles
        return f"{diagram}\n{summary._repr_html_()}"

    def _linear_model(self) -> LinearModel:
        """A model without provenance, to score with."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return LinearModel.of(names, self.support_, self.coef_[self.support_], self.preparation_)

    def _stated_parameters(self) -> dict[str, Any]:
        """The parameters as plain data, for the model file."""
        return {name: to_plain(value) for name, value in self.get_params(deep=False).items()}

    def _certificate(self) -> dict[str, Any]:
        gap = relative(self.gap_, self.objective_)
        return {"objective": float(self.objective_), "gap": float(self.gap_), "relative_gap": float(gap)}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """The problem that a certificate is about; None if it cannot be rebuilt.

        ``data`` is prepared and has the features of the certificate.
        """
        return self._problem(data, query_weight)

    def _metrics(self) -> dict[str, float]:
        """Metrics on held-out queries, and costs, for the model file."""
        return {}

    def _chosen_by(self) -> dict[str, str] | None:
        """Metric and profile of the model selection; None if there was none."""
        return None

    @property
    def coef_names_(self) -> list[str]:
        """Names of features, then of indicators of missing values: those of the weights, unless of curves."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return [*(str(name) for name in names), *self.missing_.indicators]

    def _checked_data(
        self, X: Any, y: Any, qid: Any, document_weight: Any = None
    ) -> tuple[Dataset, AnyArray | None, bool]:
        """(training data, feature names or None, whether the features are standardised)."""
        if isinstance(X, Dataset):
            for name, value in (("y", y), ("qid", qid), ("document_weight", document_weight)):
                if value is not None:
                    raise ParameterError(name, value, "must be None, because the Dataset contains it")
            self._check_document_weight(X.document_weight)
            if isinstance(X, RemoteData) and not self.can("distributed"):
                raise DataError(None, None, NEEDS_MEMORY.format(what=type(self).__name__))
            return X, np.array(X.feature_names, dtype=object), False
        self._check_document_weight(document_weight)
        matrix, names = self._checked_matrix(X)
        if y is None:
            reason = f"{type(self).__name__} requires y to be passed, but the target y is None"
            raise ParameterError("y", None, reason)
        labels = one_dimensional(y, warn=True)
        if qid is None:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return as_dataset(matrix, labels, qid, names, document_weight), names, is_standardised(matrix)

    def _check_document_weight(self, weight: Any) -> None:
        if weight is not None and not self.can("document_weight"):
            reason = f"{type(self).__name__} does not support document weights"
            advice = "omit them, or use a ranker that does, such as SparseRanker"
            raise ParameterError("document_weight", weight, f"{reason}; {advice}")

    def _checked_matrix(self, X: Any) -> tuple[Matrix, AnyArray | None]:
        """Training features as float32, float64 or CSR, not necessarily finite, and their names or None."""
        if is_on_gpu(X):
            return from_gpu(X), None
        if is_frame(X):
            refuse_text(X)
        unfitted = clone(self)  # validate_data sets feature_names_in_ on it
        try:
            matrix = validate_data(unfitted, X, ensure_min_samples=2, **MATRIX)
        except (TypeError, ValueError):
            if is_frame(X):
                as_matrix(X)  # its error names the column
            raise
        return matrix, getattr(unfitted, "feature_names_in_", None)

    def _checked_features(self, X: Any, used: IntArray | None = None) -> Matrix:
        """Features in the order of the training data; the ``used`` ones (default: all) must be finite."""
        if isinstance(X, Dataset):
            data = self._in_training_order(X)
        else:
            matrix = self._matrix_to_score(X, used)
            zeros = np.zeros(matrix.shape[0])
            data = as_dataset(matrix, zeros, None, getattr(self, "feature_names_in_", None))
        if used is None or len(used):
            used_data = data if used is None else data.select_features(used)
            check_finite(used_data, allow_missing=self.preparation_.accepts_missing)
        return data.X

    def _matrix_to_score(self, X: Any, used: IntArray | None) -> Matrix:
        """Features to score as float32, float64 or CSR.

        If the ranker has feature names, columns of a frame are matched by name: the ``used`` ones (default:
        all) must be present, others become 0 if they are absent.
        """
        if is_on_gpu(X):
            return self._check_width(from_gpu(X))
        names = tuple(getattr(self, "feature_names_in_", ()))
        try:
            if is_frame(X) and names:
                return check_array(self._columns_by_name(X, names, used), **MATRIX)
            if is_frame(X):
                refuse_text(X)
            elif names and names == numbered_names(len(names)):  # default names: nothing to compare
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
        """Columns of the training data, matched by name; by position if either has default names f1, f2, …"""
        present = frame_names(frame)
        index = {name: j for j, name in enumerate(present)}
        needed = list(range(len(names))) if used is None else used.tolist()
        absent = [names[j] for j in needed if names[j] not in index]
        if not absent:
            X = np.zeros((len(frame), len(names)))
            X[:, needed] = frame_columns(frame, [index[names[j]] for j in needed])
            return X
        if len(present) == len(names) and numbered_names(len(names)) in (tuple(names), present):
            return frame_columns(frame, range(len(names)))
        raise self._absent_features(absent, "the frame")

    def _in_training_order(self, data: Dataset) -> Dataset:
        """Reorder columns to match the training data, by name; by position if either has names f1, f2, …"""
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
        reason = f"{where} lacks {len(absent)} features of the training data: {', '.join(absent[:10])}"
        return DataError(None, None, f"{reason}; use the names that {type(self).__name__} was fitted with")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.positive_only = self.can("grades")
        return tags


def share_of_variance(ranker: Ranker, data: Any) -> FloatArray | None:
    """Share of each column of a ranker in the variance of scores; None unless linear, on data in memory."""
    in_memory = isinstance(data, Dataset) and not isinstance(data, RemoteData)
    if not in_memory or not ranker.can("linear") or is_streamed(data.X) or is_on_gpu(data.X):
        return None
    names, model = ranker.coef_names_, ranker._linear_model()
    shares = np.zeros(len(names))
    if model.terms:
        most = max(MAX_VARIANCE_CELLS // len(model.terms), 1)
        last = int(np.searchsorted(data.queries.offsets, most, side="right")) - 1
        part = data.select_queries(np.arange(max(last, 1)))
        added = part.queries.group(model.inputs(part) * model.weights)
        starts, sizes = part.queries.offsets[:-1], part.queries.sizes
        added -= np.repeat(np.add.reduceat(added, starts, axis=0) / sizes[:, None], sizes, axis=0)
        variance = np.einsum("ij,ij->j", added, added)
        index = {name: j for j, name in enumerate(names)}
        total = variance.sum()
        shares[[index[name] for name in model.names]] = variance / total if total > 0 else 0.0
    return shares


def _uncounted(ranker: Any, task: Task) -> str:
    """Sentence about held-out lists that are too short for the metric, if its profile has a rule for them."""
    in_memory = not (isinstance(task.source, RemoteData) or is_streamed(task.source.X))
    choice = ranker.choice_ if ranker.can("valid") else None
    if not (choice and in_memory and choice.validation.profile.short_list_is_zero):
        return ""
    from ranksieve.rankers.measures import too_short_to_count

    return too_short_to_count(ranker, task.source, task.valid)


def in_column_order(data: Dataset, names: tuple[str, ...], ranker: Ranker) -> Dataset:
    """Reorder columns to ``names``; match them by position if either has only default names f1, f2, …"""
    if names == data.feature_names:
        return data
    index = {name: column for column, name in enumerate(data.feature_names)}
    absent = [name for name in names if name not in index]
    if not absent:
        return data.select_features(np.array([index[name] for name in names]))
    if numbered_names(data.n_features) in (names, data.feature_names):
        return data.replace_features(data.X, names)
    raise ranker._absent_features(absent, "the data set")


def as_dataset(
    matrix: Matrix, y: Any, qid: Any, names: AnyArray | None = None, document_weight: Any = None
) -> Dataset:
    ids = np.zeros(matrix.shape[0], dtype=np.int64) if qid is None else qid
    columns = None if names is None else list(names)
    return Dataset(matrix, one_dimensional(y), ids, columns, document_weight=document_weight)


def start_from(ranker: Ranker, coef: FloatArray, names: Sequence[str]) -> Ranker:
    """Make the next fit of ``ranker`` start from these weights."""
    origin = Origin(len(names), np.array(names, dtype=object), Preparation(MissingPolicy("error")))
    ranker.set_params(warm_start=True)._set(origin, {"coef_": coef})
    return ranker


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


def is_standardised(X: Matrix) -> bool:
    """Whether every column has mean 0 and standard deviation 1 (as after StandardScaler) or is constant."""
    if not isinstance(X, np.ndarray):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > 0
    return bool(
        varies.any()
        and (np.abs(mean) <= STANDARDISED_TOL).all()
        and (np.abs(deviation[varies] - 1.0) <= STANDARDISED_TOL).all()
    )


def one_dimensional(y: Any, warn: bool = False) -> AnyArray:
    """``y`` as a 1-d array; a single column is flattened."""
    if isinstance(y, np.ndarray) and y.ndim == 1:
        return y
    return np.asarray(column_or_1d(y, warn=warn))


def as_valid(valid: ValidData) -> Dataset | None:
    """Validation data as a Dataset in which at least one query has different labels; or None."""
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
            "no query of the validation data has documents with different labels, so all models rank them "
            "equally well; use other validation data, or none for cross-validation",
        )
    return valid


def _finite(scores: FloatArray) -> FloatArray:
    """``scores``; an infinite one is an error."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        raise DataError(
            None,
            None,
            f"the score of row {row} overflows; scale the features as in the training data",
        )
    return scores


def _query_means(sample_weight: Any, data: Dataset) -> AnyArray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    sums = np.add.reduceat(data.queries.group(weight), data.queries.offsets[:-1])
    return np.asarray(sums / data.queries.sizes)


STANDARDISED = (
    "the features of the fit had mean 0 and standard deviation 1, so this model expects scaled features; "
    "ranksieve.to_model(pipeline) makes a model of the whole pipeline, for unscaled features"
)


class StandardisedWarning(UserWarning):
    """A model expects features that were standardised before the fit."""
