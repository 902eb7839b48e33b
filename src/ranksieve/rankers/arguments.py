"""Arguments of ``fit`` that other libraries' rankers have: used where they mean the same, else explained."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ranksieve._types import AnyArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.inputs import frame_names, is_frame
from ranksieve.errors import DataError, ParameterError
from ranksieve.show.progress import visible_progress

ROUNDS = ("max_iter", "n_rounds", "n_epochs")  # parameters with the maximum number of iterations
VALID = "pass `valid=(X, y, qid)`: it selects the model on these queries, as early stopping does"
NO_VALID = "{} has no selection on validation data; pass `valid=(X, y, qid)` to SparseRanker or GridRanker"
ROWS = "pass `qid`, with one query id per row, or `group`, with the number of rows of each query"
EXPLAINED = {
    "sample_weight": "weights are of documents or of queries: pass `document_weight`, with one number per "
    "row, or `query_weight`, with one per query",
    "groups": ROWS,
    "eval_metric": "pass `metric` to the constructor",
    "early_stopping_rounds": "the number of features is selected on held-out queries; leave it out",
}
EVAL_SETS = ("eval_set", "eval_group", "eval_qid", "eval_sample_weight")
QID_AND_LABEL = ("qid", "label")


def usual_arguments(
    ranker: Any, X: Any, y: Any, qid: Any, options: Mapping[str, Any]
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """(X, y, qid, options of the ranker's ``fit``) of a call as other libraries write it.

    ``group`` are the numbers of rows of each query, as LightGBM and XGBoost take them; a frame with columns
    qid and label needs no other arguments.
    """
    known = inspect.signature(ranker.fit).parameters
    options = dict(options)
    for name in [name for name in options if name not in known]:
        value = options.pop(name)
        if name == "group":
            qid = _ids_of_sizes(value, X, qid)
        elif name in ("verbose", "progress"):
            options["progress"] = options.get("progress") or value
        elif value is not None:
            raise _explained(ranker, name)
    if y is None and not isinstance(X, Dataset) and is_frame(X):
        X, y, qid, options = _from_frame(type(ranker).__name__, X, qid, options)
    return X, y, qid, options


def _explained(ranker: Any, name: str) -> Exception:
    if name in EVAL_SETS:
        reason = VALID if ranker.can("valid") else NO_VALID.format(type(ranker).__name__)
        return DataError(None, None, f"`{name}`: {reason}")
    if name in EXPLAINED:
        return DataError(None, None, f"`{name}`: {EXPLAINED[name]}")
    return TypeError(f"{type(ranker).__name__}.fit() got an unexpected keyword argument {name!r}")


def _ids_of_sizes(group: Any, X: Any, qid: Any) -> AnyArray | None:
    """Query ids 1, 2, … of consecutive rows."""
    if group is None:
        return None if qid is None else np.asarray(qid)
    if qid is not None or isinstance(X, Dataset):
        raise ParameterError("group", group, "must be None, because `qid` has the queries")
    sizes = np.asarray(group)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != n_rows:
        reason = f"must be the number of rows of each query, which add up to the {n_rows} rows of X"
        if sizes.ndim == 1 and len(sizes) == n_rows:
            reason += "; pass one id per row as `qid`"
        raise ParameterError("group", group, reason)
    return np.repeat(np.arange(1, len(sizes) + 1), sizes)


def _from_frame(
    name: str, frame: Any, qid: Any, options: dict[str, Any]
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """The data set of a frame with columns qid and label."""
    absent = [name for name in QID_AND_LABEL if name not in frame_names(frame)]
    if absent or qid is not None or options.get("document_weight") is not None:
        what = f"the frame has no column {absent[0]}" if absent else "the frame has the columns qid and label"
        reason = (
            f"{what}; pass `y` and `qid`, or rs.from_frame(frame, qid=…, label=…), "
            "which names the columns that are not features"
        )
        required = f"{name} requires y to be passed, but the target y is None"
        raise ParameterError("y", None, f"{required}: {reason}")
    from ranksieve.io.frames import from_frame

    return from_frame(frame), None, None, options


@contextmanager
def reported(ranker: Any, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options, with ``progress=True`` replaced by a function that shows the progress."""
    progress = options.pop("progress", None)
    if not progress:
        yield options
    elif callable(progress):
        yield {**options, **_as_option(ranker, progress, options)}
    else:
        with visible_progress(f"fitting {type(ranker).__name__}") as show:
            yield {**options, **_as_option(ranker, show, options)}
            show(1, 1)


def _as_option(ranker: Any, progress: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """As ``progress`` of a ranker that selects models, else as ``callback`` after iterations."""
    if ranker.can("valid"):
        return {"progress": progress}
    parameters, callback = ranker.get_params(deep=False), options.get("callback")
    total = next((parameters[name] for name in ROUNDS if name in parameters), None)
    if total is None or "callback" not in inspect.signature(ranker.fit).parameters:
        return {}

    def report(iteration: int, w: Any, objective: float, gap: float) -> None:
        progress(iteration, total)
        if callback is not None:
            callback(iteration, w, objective, gap)

    return {"callback": report}


# scikit-learn's callbacks, such as its progress bar, if its version has them (from 1.9 on)


def has_callbacks(ranker: Any) -> bool:
    """Whether the installed scikit-learn has callbacks."""
    try:
        import sklearn.callback  # noqa: F401
    except ImportError:
        return False
    return True


def learn_with_callbacks(ranker: Any, learn: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Call ``learn``, whose ``progress`` reports each candidate or iteration as a task of the fit."""
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    def fit(estimator: Any) -> None:
        context = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)
        shown = options.get("progress")

        def progress(done: int, total: int) -> None:
            task = context.subcontext(task_name="candidate")
            task.call_on_fit_task_begin(estimator=estimator)
            task.call_on_fit_task_end(estimator=estimator)
            if shown is not None:
                shown(done, total)

        learn(**{**options, "progress": progress})
        context.call_on_fit_task_end(estimator=estimator)

    with_callbacks(fit)(ranker)
