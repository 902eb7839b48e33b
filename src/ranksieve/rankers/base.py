"""The base classes of rankers: checked data, preparation, fit, scores, models."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import AnyArray, FloatArray, IntArray, Matrix
from ranksieve._util.files import plain
from ranksieve._util.messages import warn_caller
from ranksieve._util.program import is_program
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
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu import check_device
from ranksieve.gpu.matrix import from_gpu, is_on_gpu, on_device
from ranksieve.losses.base import NO_PAIRS
from ranksieve.metrics import evaluate
from ranksieve.model.boosted import BoostedModel
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import MissingPolicy, Normalisation, Preparation
from ranksieve.prepare.scaling import warn_of_scales
from ranksieve.rankers.parameters import Missing, Normalise, check_parameters
from ranksieve.solvers.base import Callback, Problem, Result, Solver, Trace, relative, warn_of_tolerance

STANDARD = 1e-5  # of means and deviations: rounding, also in float32
ValidData = Dataset | tuple[Any, Any, Any] | None


def checked_matrix(ranker: Any, X: Any, *, learning: bool, used: IntArray | None = None) -> Matrix:
    """Features as float32, float64 or CSR, perhaps not finite; names and number are kept, or compared.

    A ranker that has names finds the columns of a frame by name: those ``used`` (default: all) must be there,
    and others are 0 if they are not.
    """
    if is_on_gpu(X):
        return _matrix_on_gpu(ranker, from_gpu(X), learning)
    names = () if learning else tuple(getattr(ranker, "feature_names_in_", ()))
    if is_frame(X) and names:
        X, ranker = _found_by_name(ranker, X, names, used), _without_names(ranker)
    elif is_frame(X):
        refuse_text(X)
    elif names and names == numbered_names(len(names)):
        ranker = _without_names(ranker)
    from sklearn.utils.validation import validate_data  # takes long to load, and a Dataset does without

    least = {"ensure_min_samples": 2} if learning else {}
    try:
        return validate_data(
            ranker,
            X,
            reset=learning,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            **least,
        )
    except (TypeError, ValueError):
        if is_frame(X):
            as_matrix(X)  # it names the column at fault
        raise


def _found_by_name(ranker: Any, frame: Any, names: Sequence[str], used: IntArray | None) -> AnyArray:
    """The columns of the training data; by position if either has no names of its own but f1, f2, …"""
    present = frame_names(frame)
    place = {name: j for j, name in enumerate(present)}
    needed = list(range(len(names))) if used is None else used.tolist()
    lacking = [names[j] for j in needed if names[j] not in place]
    if not lacking:
        X = np.zeros((len(frame), len(names)))
        X[:, needed] = frame_columns(frame, [place[names[j]] for j in needed])
        return X
    if len(present) == len(names) and numbered_names(len(names)) in (tuple(names), present):
        return frame_columns(frame, range(len(names)))
    raise lacking_features(ranker, lacking, "the frame")


def lacking_features(ranker: Any, lacking: Sequence[str], where: str) -> DataError:
    reason = f"{where} lacks {len(lacking)} features of the fit: {', '.join(lacking[:10])}"
    return DataError(None, None, f"{reason}; give {type(ranker).__name__} the same feature names")


def _without_names(ranker: Any) -> Any:
    """A copy for scikit-learn, which need not compare names: they have been, or are but f1, f2, …"""
    twin = ranker._twin()
    twin.__dict__.pop("feature_names_in_", None)
    return twin


def _matrix_on_gpu(ranker: Any, X: Matrix, learning: bool) -> Matrix:
    """Features on a GPU, where scikit-learn does not look; their number is kept, or compared."""
    if learning:
        ranker.n_features_in_ = int(X.shape[1])
        ranker.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != ranker.n_features_in_:
        fitted_on = f"{type(ranker).__name__} was fitted on {ranker.n_features_in_}"
        raise DataError(None, None, f"X has {X.shape[1]} features, but {fitted_on}")
    return X


def checked_labels(ranker: Any, y: Any) -> AnyArray:
    """One label per row; the data set checks that they are finite numbers."""
    if y is None:
        reason = f"{type(ranker).__name__} requires y to be passed, but the target y is None"
        raise ParameterError("y", None, reason)
    return one_dimensional(y, warn=True)


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
    from sklearn.utils.validation import column_or_1d

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


class WithParameters:
    """An estimator whose parameters are the arguments of its constructor."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        known = inspect.signature(type(self)).parameters
        changed = (f"{k}={v!r}" for k, v in self.get_params().items() if v is not known[k].default)
        return f"{type(self).__name__}({', '.join(changed)})"


if TYPE_CHECKING or not is_program():
    from sklearn.base import BaseEstimator as BaseEstimator
else:
    BaseEstimator = WithParameters


def check_is_fitted(estimator: Any, learned: str = "n_features_in_") -> None:
    """Refuse an estimator that has not learned an attribute yet, as scikit-learn does."""
    if not hasattr(estimator, learned):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
            "arguments before using this estimator."
        )


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


P = ParamSpec("P")
R = TypeVar("R", bound="Ranker")


def all_or_nothing(learn: Callable[Concatenate[R, P], R]) -> Callable[Concatenate[R, P], R]:
    """Let a method of a ranker learn on a copy, from which the ranker takes over everything at the end.

    So a call that is refused or interrupted leaves the ranker as it was. The parameters of a call that
    succeeds are recorded: later changes do not concern what it learned.
    """

    @wraps(learn)
    def learned(self: R, /, *args: P.args, **kwargs: P.kwargs) -> R:
        check_parameters(self)
        trial = self._twin()
        with single_threaded_blas():
            learn(trial, *args, **kwargs)
        trial._learned_with = trial._plain_parameters()
        self.__dict__ = trial.__dict__
        return self

    return learned


@dataclass(eq=False, repr=False)
class Prepared(BaseEstimator):  # type: ignore[misc]
    """The parameters of every ranker: how features are normalised, and what replaces missing ones."""

    _: KW_ONLY
    normalise: Normalise = "none"
    missing: Missing = "auto"


class Ranker(Prepared):
    """An estimator that scores documents.

    Parameters are dataclass fields whose types check them (:mod:`ranksieve.rankers.parameters`).
    Subclasses define ``_scores`` and ``fit``, under :func:`all_or_nothing`; it takes its data from
    ``_given_data`` and has them prepared by ``_prepared_for_learning``.
    """

    # Metadata requests: scikit-learn's splitters and searches call query ids "groups".
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": "groups", "document_weight": True}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"qid": "groups"}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": "groups"}

    uses_valid: ClassVar[bool] = False  # whether fit takes validation data, to choose among models of its own
    works_in_parts: ClassVar[bool] = False  # whether it learns from distributed data
    weighs_documents: ClassVar[bool] = False  # whether a document of weight 2 counts as two copies of it
    device = "cpu"  # where it learns; a parameter of those that can learn elsewhere
    grades_only: ClassVar[bool] = False  # whether labels must not be negative
    scale_matters: ClassVar[bool] = True  # whether a feature in other units gives another ranker
    preparation_ = Preparation(MissingPolicy("error"))
    n_features_in_: int
    _learned_with: Mapping[str, Any]  # parameters
    _learned_from: Mapping[str, str]  # short names of the data
    _standardised = False  # whether the features had mean 0 and deviation 1 already
    _fitted_with_qid = True

    @property
    def normalisation_(self) -> Normalisation:
        """How features are normalised, as learned by ``fit``."""
        return self.preparation_.normalisation

    @property
    def missing_(self) -> MissingPolicy:
        """What replaces missing features, as learned by ``fit``."""
        return self.preparation_.missing

    def predict(self, X: Any, qid: Any = None) -> FloatArray:
        """Scores in the input's row order: higher ranks first.

        Query ids are needed only where features are normalised or filled within each query; a Dataset has
        its own. The columns of a frame are found by name, in any order; those that the scores do not depend
        on need not be there. Features that are on a GPU are scored there, as are others by a ranker with such
        a device.
        """
        check_is_fitted(self)
        if isinstance(X, RemoteRows):
            return X.predicted(self._scorer())  # type: ignore[no-any-return]
        features = self._checked_features(X, self._columns_read())
        scores = self._scores_in_queries(features, X.qid if isinstance(X, Dataset) else qid)
        return _finite(scores)

    def _scores_in_queries(self, X: Matrix, qid: Any) -> FloatArray:
        """Scores of checked features, prepared as the training data were."""
        if self.preparation_.changes_features:
            per_query = self.preparation_.per_query
            if per_query and qid is None:
                raise ParameterError(
                    "qid",
                    None,
                    f"{type(self).__name__} prepares features within each query; give predict a Dataset, or "
                    "one query id per row",
                )
            rows = self._dataset(X, np.zeros(X.shape[0]), qid if per_query else None)
            X = self._prepared(rows).X
        return self._scores(X)

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        """What gives the scores of a part of distributed data."""
        return self.predict

    @abstractmethod
    def _scores(self, X: Matrix) -> FloatArray:
        """Scores of checked features, each row on its own."""

    def score(self, X: Any, y: Any = None, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 (standard profile); a query weighs the mean of its rows' sample weights.

        Without query ids, a ranker that was fitted with them refuses; one that was not takes all rows as one
        query and warns.
        """
        check_is_fitted(self)
        data = X if isinstance(X, Dataset) else self._data_to_score(X, y, qid)
        values = evaluate(self.predict(X, qid), data, ["ndcg@10"], profile="standard").per_query["ndcg@10"]
        return float(np.average(values, weights=_query_means(sample_weight, data)))

    def _data_to_score(self, X: Any, y: Any, qid: Any) -> Dataset:
        if qid is None and self._fitted_with_qid:
            raise ParameterError("qid", None, SCORE_NEEDS_QUERIES.format(what=type(self).__name__))
        matrix = self._checked_features(X, self._columns_read())
        if qid is None:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return self._dataset(matrix, y, qid)

    @abstractmethod
    def to_model(self) -> LinearModel | BoostedModel:
        """The fitted ranker as a model that can be saved."""

    def _twin(self) -> Self:
        """Another ranker with the same attributes."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _plain_parameters(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in self.get_params(deep=False).items()}

    def _names(self) -> list[str]:
        """Of the features that are learned from: those given, then indicators of missing ones."""
        names = getattr(self, "feature_names_in_", numbered_names(self.n_features_in_))
        return [*(str(name) for name in names), *self.missing_.indicators]

    def _features_of(self, columns: IntArray) -> tuple[list[str], list[int]]:
        """Names of columns that are learned from, and the given columns that they are read from."""
        all_names, about = self._names(), self.missing_.indicators
        names = [all_names[j] for j in columns]
        place = {name: j for j, name in enumerate(all_names)} if about else {}
        pairs = zip(names, columns.tolist(), strict=True)
        return names, [place[about[name]] if name in about else j for name, j in pairs]

    def _given_data(
        self,
        X: Any,
        y: Any,
        qid: Any,
        query_weight: QueryWeight | None = None,
        valid: Dataset | None = None,
        document_weight: Any = None,
    ) -> tuple[Dataset, FloatArray | None]:
        """The training data as they came, and the weights of queries; without what has weight 0.

        ``X`` is a Dataset, or features with labels y, query ids qid and perhaps weights of documents. What
        was given is recorded.
        """
        check_device(self.device)
        data = self._checked_data(X, y, qid, document_weight)
        self._learned_from = {"train": fingerprint(data)}
        if valid is not None:
            self._learned_from["valid"] = fingerprint(valid)
        weight = query_weights(query_weight, data)
        if weight is not None:
            self._learned_from["query_weight"] = fingerprint_of_weights(weight)
        nothing = data.document_weight is not None and not data.document_weight.any()
        if nothing or (weight is not None and not weight.any()):
            raise DataError(None, None, NO_PAIRS)
        present, of_queries = counted(data, weight, warn=True)
        return present, None if weight is None else of_queries

    def _checked_data(self, X: Any, y: Any, qid: Any, document_weight: Any = None) -> Dataset:
        if isinstance(X, Dataset):
            for name, given in (("y", y), ("qid", qid), ("document_weight", document_weight)):
                if given is not None:
                    raise ParameterError(name, given, "must be None, because the Dataset has its own")
            if X.document_weight is not None:
                self._check_weighing(X.document_weight)
            if isinstance(X, RemoteRows) and not self.works_in_parts:
                raise DataError(None, None, ELSEWHERE.format(what=type(self).__name__))
            self.n_features_in_ = X.n_features
            self.feature_names_in_ = np.array(X.feature_names, dtype=object)
            self._standardised, self._fitted_with_qid = False, True
            return X
        if document_weight is not None:
            self._check_weighing(document_weight)
        matrix, labels = checked_matrix(self, X, learning=True), checked_labels(self, y)
        self._standardised, self._fitted_with_qid = standardised(matrix), qid is not None
        if not self._fitted_with_qid:
            warn_caller(ONE_QUERY.format(n=matrix.shape[0]))
        return self._dataset(matrix, labels, qid, document_weight)

    def _check_weighing(self, weight: Any) -> None:
        if not self.weighs_documents:
            raise ParameterError("document_weight", weight, UNWEIGHTED.format(what=type(self).__name__))

    def _prepared_for_learning(self, data: Dataset, query_weight: FloatArray | None = None) -> Dataset:
        """Learn from the training data how to fill and normalise, and do it."""
        self.preparation_, filled = Preparation.learn_and_fill(
            data, self.normalise, self.missing, query_weight
        )
        if self.scale_matters and self.normalise == "none":
            warn_of_scales(filled)
        return on_device(self._normalised(filled), self.device, data)

    def _prepared(self, data: Dataset) -> Dataset:
        """The data as the ranker learns from them and scores them."""
        return self._normalised(self.preparation_.filled(data))

    def _normalised(self, filled: Dataset) -> Dataset:
        return self.normalisation_.apply(filled)

    def _held_out(self, data: Dataset) -> Dataset:
        """Data to measure candidates on, with the columns of the training data, checked."""
        ordered = self._in_training_order(data)
        self.preparation_.filled(ordered)
        return ordered

    def _dataset(self, matrix: Matrix, y: Any, qid: Any, document_weight: Any = None) -> Dataset:
        ids = np.zeros(matrix.shape[0], dtype=np.int64) if qid is None else qid
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else list(names)
        return Dataset(matrix, one_dimensional(y), ids, names, document_weight=document_weight)

    def _checked_features(self, X: Any, used: IntArray | None = None) -> Matrix:
        """The features in the order of the training data; those that are ``used`` (default: all) finite."""
        if isinstance(X, Dataset):
            data = self._in_training_order(X)
        else:
            matrix = checked_matrix(self, X, learning=False, used=used)
            data = self._dataset(matrix, np.zeros(matrix.shape[0]), None)
        if used is None or len(used):
            read = data if used is None else data.select_features(used)
            check_finite(read, allow_missing=self.preparation_.fills)
        return data.X

    def _columns_read(self) -> IntArray | None:
        """The columns that scores depend on; None: all."""
        return None

    def _in_training_order(self, data: Dataset) -> Dataset:
        """The data with the columns of the training data in their order, found by name.

        Where either has no names of its own but f1, f2, …, columns go by position.
        """
        if data.n_features != self.n_features_in_:
            raise DataError(
                None,
                None,
                f"{type(self).__name__} was fitted on {self.n_features_in_} features "
                f"but the data set has {data.n_features}"
                f"{names_advice(data.feature_names, getattr(self, 'feature_names_in_', ()))}",
            )
        names = tuple(getattr(self, "feature_names_in_", data.feature_names))
        if names == data.feature_names:
            return data
        place = {name: column for column, name in enumerate(data.feature_names)}
        lacking = [name for name in names if name not in place]
        if not lacking:
            return data.select_features(np.array([place[name] for name in names]))
        if numbered_names(data.n_features) in (names, data.feature_names):
            return data
        raise lacking_features(self, lacking, "the data set")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.positive_only = self.grades_only
        return tags


class PlainFit(Ranker):
    """A ranker that learns from nothing but the data: ``fit`` checks them and calls ``_learn``."""

    @all_or_nothing
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
        data, weight = self._given_data(X, y, qid, query_weight, document_weight=document_weight)
        self._learn(self._prepared_for_learning(data, weight), weight, callback)
        return self

    @abstractmethod
    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        """Set the fitted attributes."""


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


class LinearRanker(Ranker):
    """A ranker with score(x) = ⟨coef_, x⟩. Its ``fit`` sets the attributes below.

    x is filled and normalised as ``missing`` and ``normalise`` say; ``preparation_`` holds what was learned
    for that, and the model keeps it.
    """

    coef_: FloatArray
    objective_: float
    gap_: float
    n_iter_: int
    trace_: Trace

    def _normalised(self, filled: Dataset) -> Dataset:
        """As far as differences of scores go, which are all that linear rankers learn from."""
        return self.normalisation_.for_learning(filled)

    def _columns_read(self) -> IntArray:
        return np.unique([term.index for term in self._linear_model().terms]).astype(np.int64)

    def _scores_in_queries(self, X: Matrix, qid: Any) -> FloatArray:
        return self._linear_model().predict(X, qid, device=self.device)

    def _scores(self, X: Matrix) -> FloatArray:
        return self._scores_in_queries(X, None)

    def _scorer(self) -> Callable[[Dataset], FloatArray]:
        return self._linear_model().predict  # it is sent to the workers, so it holds no more than it needs

    @property
    def support_(self) -> IntArray:
        """Columns with a nonzero weight, ascending."""
        return np.flatnonzero(self.coef_)

    def to_model(self) -> LinearModel:
        """The fitted ranker as a model that can be saved, exported and explained."""
        check_is_fitted(self)
        if self._standardised:
            warn_caller(STANDARDISED, StandardisedWarning)
        return replace(
            self._linear_model(),
            method=type(self).__name__,
            parameters=self._learned_with,
            certificate={k: v for k, v in self._certificate().items() if not _unknown(v)},
            metrics=self._measured(),
            chosen_by=self._chosen_by(),
            data=self._learned_from,
        )

    def _linear_model(self) -> LinearModel:
        """What is needed to score."""
        return self._model_of(self.support_, self.coef_[self.support_])

    def _scores_with(self, coefs: FloatArray, data: Dataset) -> FloatArray:
        """Scores (documents × models) with other weights, one row per model: the bits of ``predict``."""
        used = np.flatnonzero(coefs.any(axis=0))
        return self._model_of(used, np.ones(len(used))).predict_with(coefs[:, used], data.X, data.qid)

    def _model_of(self, columns: IntArray, weights: FloatArray) -> LinearModel:
        names, sources = self._features_of(columns)
        return LinearModel(
            terms=tuple(map(Term, names, sources, weights.tolist())),
            n_features=self.n_features_in_,
            preparation=self.preparation_.of(names),
        )

    def _certificate(self) -> dict[str, Any]:
        gap = relative(self.gap_, self.objective_)
        return {"objective": float(self.objective_), "gap": float(self.gap_), "relative_gap": float(gap)}

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        """The problem of which a certificate gives objective and gap; None if only the fit knows it.

        The data are prepared and have the features that the certificate is about.
        """
        return None

    def _measured(self) -> dict[str, float]:
        return {}

    def _chosen_by(self) -> dict[str, str] | None:
        """The metric and the profile that the ranker chose its model by, if it did."""
        return None


def _unknown(value: Any) -> bool:
    return isinstance(value, float) and not np.isfinite(value)


class IterativeRanker(PlainFit, LinearRanker):
    """A linear ranker whose weights are a solver's result.

    With a parameter ``warm_start`` the previous weights are the start of the next fit. With ``stops_early``
    an early end is part of the method, and no warning tells of it.
    """

    stops_early: ClassVar[bool] = False
    converged_: bool

    def _adopt(self, result: Result, data: Dataset) -> None:
        self.coef_, self.objective_, self.gap_ = result.w, float(result.objective), float(result.gap)
        self.n_iter_, self.converged_, self.trace_ = result.n_iter, result.converged, result.trace
        self._weight_names = data.feature_names
        if not (result.converged or self.stops_early):
            name = "tol" if "tol" in self.get_params(deep=False) else "epsilon"
            warn_of_tolerance(
                f"{type(self).__name__} did not reach `{name}={getattr(self, name):g}` in {result.n_iter} "
                f"iterations (gap {result.gap:.2g} of the objective {result.objective:.4g}); raise "
                f"`max_iter` or `{name}`, or normalise the features"
            )

    def _start(self, data: Dataset) -> FloatArray | None:
        """The weights of the previous fit, found by the names of their features."""
        previous = getattr(self, "coef_", None)
        if not getattr(self, "warm_start", False) or previous is None:
            return None
        place = {name: j for j, name in enumerate(getattr(self, "_weight_names", data.feature_names))}
        if len(previous) != data.n_features or not place.keys() >= set(data.feature_names):
            return None
        return np.array([previous[place[name]] for name in data.feature_names])


class SolvedRanker(IterativeRanker):
    """A ranker whose ``fit`` solves one problem: a declaration of loss, penalty and solver."""

    weighs_documents = True

    @abstractmethod
    def _problem(self, data: Dataset, query_weight: FloatArray | None) -> Problem:
        """What is minimised: a loss and a penalty."""

    @abstractmethod
    def _solver(self, problem: Problem) -> Solver:
        """What minimises it."""

    def stated_problem(
        self, data: Dataset, query_weight: FloatArray | None, certificate: Mapping[str, Any]
    ) -> Problem | None:
        return self._problem(data, query_weight)

    def _learn(self, data: Dataset, query_weight: FloatArray | None, callback: Callback | None) -> None:
        problem = self._problem(data, query_weight)
        self._adopt(self._solver(problem).solve(problem, self._start(data), callback), data)
