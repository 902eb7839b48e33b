"""Outcome of an extreme fit: a valid ranker, an error of one clear sentence, or a fault."""

from __future__ import annotations

import linecache
import pickle
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranksieve.errors import DataError, ParameterError
from ranksieve.metrics import evaluate
from ranksieve.model.foreign import read_model
from ranksieve.verification import verify

LONGEST = 600  # characters of a sentence


@dataclass(frozen=True)
class Outcome:
    """``what`` is "fitted", "refused" or "fault"; ``words`` are the details."""

    what: str
    words: str = ""


def judge(case) -> Outcome:
    """Fit, and check the guarantees of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for leak in (RuntimeWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("error", leak)
        try:
            data = case.data()
            weight = case.weights(data)
            ranker = case.ranker().fit(data, query_weight=weight)
            faults = list(faults_of(ranker, data, weight))
        except Exception as error:
            return refusal(error)
    return Outcome("fault", "; ".join(faults)) if faults else Outcome("fitted", shown(ranker))


def shown(ranker):
    return f"{len(ranker.support_)} features"


def refusal(error) -> Outcome:
    """ "refused" if the error was raised on purpose by this package, else "fault"."""
    message, where = str(error), traceback.extract_tb(error.__traceback__)[-1]
    raised_on_purpose = linecache.getline(where.filename, where.lineno).strip().startswith("raise")
    from_package = "ranksieve" in where.filename or "sklearn/utils/validation" in where.filename
    kind = type(error) in (ValueError, DataError, ParameterError)
    if kind and raised_on_purpose and from_package and 10 < len(message) < LONGEST:
        return Outcome("refused", message)
    frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-6:]]
    return Outcome("fault", f"{type(error).__name__}: {message} ({' > '.join(frames)})")


def faults_of(ranker, data, weight):
    """Violated guarantees of a fitted ranker."""
    scores = ranker.predict(data)
    if not np.isfinite(scores).all():
        yield "scores are not finite"
        return
    if not np.array_equal(pickle.loads(pickle.dumps(ranker)).predict(data), scores):
        yield "a pickled ranker has other scores"
    model = ranker.to_model()
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.json")
        again = read_model(Path(folder) / "model.json")
    if not np.array_equal(again.predict(data), scores):
        yield "the model file has other scores"
    if not all(
        0 <= value <= 1
        for value in evaluate(scores, data, ["ndcg@5", "map"], profile="standard").mean.values()
    ):
        yield "metrics outside [0, 1]"
    if ranker.can("linear"):
        yield from faults_of_linear(ranker, again, data, weight)


def faults_of_linear(ranker, model, data, weight):
    if not np.isfinite(ranker.coef_).all():
        yield "weights are not finite"
    if not (ranker.gap_ >= 0 or np.isnan(ranker.gap_)):
        yield f"the gap is {ranker.gap_}"
    for verdict in verify(model, data, query_weight=weight, refit=False).verdicts:
        if verdict.holds is False:
            yield f"{verdict.claim}: {verdict.words}"
