"""scikit-learn's callbacks, such as its progress bar, if its version has them (from 1.9 on)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


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
