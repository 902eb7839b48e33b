"""Features and labels given as arrays or frames, checked as scikit-learn does, in words of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksieve._types import AnyArray, IntArray, Matrix
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import as_matrix, frame_columns, frame_names, is_frame, numbered_names, refuse_text
from ranksieve.errors import DataError, ParameterError
from ranksieve.gpu.matrix import from_gpu, is_on_gpu

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
