"""Verification of model files: every claim is recomputed from the data.

A new claim is one function and one line in CLAIMS, a new kind of certificate one line in PROOFS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ranksieve._types import PathLike
from ranksieve._version import __version__
from ranksieve.choice.update import as_model
from ranksieve.data.dataset import Dataset, QueryWeight, query_weights
from ranksieve.model.linear import FittedRanker, LinearModel, model_of
from ranksieve.path import Progress
from ranksieve.show.result import Part, Shown, Table
from ranksieve.verification.case import Case, NotChecked, NotGiven, Verdict, statement
from ranksieve.verification.claims import PROOFS, check_budget, check_certificate, check_data, check_metrics

__all__ = ["CLAIMS", "PROOFS", "Case", "NotChecked", "NotGiven", "Verdict", "Verification", "verify"]

CLAIMS: dict[str, Callable[[Case], Iterator[Verdict]]] = {
    "data": check_data,
    "certificate": check_certificate,
    "metrics": check_metrics,
    "budget": check_budget,
}
HOLDS = {True: "yes", False: "no", None: "not checked"}


@dataclass(frozen=True, repr=False)
class Verification(Shown):
    """Verdicts on all claims of a model; ``note`` is not empty if another release wrote the file.

    ``problem`` is the optimisation problem stated in the file. The proof is about this problem; whether it is
    the right one to solve is not checked.
    """

    verdicts: tuple[Verdict, ...]
    note: str = ""
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether every claim holds, except those that ``refit=False`` skipped."""
        return all(verdict.holds or verdict.left_out for verdict in self.verdicts)

    @property
    def summary(self) -> str:
        """Number of claims that hold, as a sentence."""
        n = len(self.verdicts)
        wrong = [verdict.claim for verdict in self.verdicts if verdict.holds is False]
        right = sum(verdict.holds is True for verdict in self.verdicts)
        if wrong:
            verb = "does" if len(wrong) == 1 else "do"
            return f"{len(wrong)} of {n} claims {verb} not hold: {', '.join(wrong)}."
        if right == n:
            return f"All {n} claims hold."
        if not right:
            return f"None of {n} claims could be checked."
        return f"{right} of {n} claims {'holds' if right == 1 else 'hold'}, {n - right} not checked."

    def _line(self) -> str:
        return self.summary.removesuffix(".")

    def shown(self) -> Sequence[Part]:
        """The claims as a table, the optimisation problem, and the number of claims that hold."""
        rows = [(one.claim, HOLDS[one.holds], one.words) for one in self.verdicts]
        notes = filter(None, (self.problem, self.note, self.summary))
        return [Table(["claim", "holds", "recomputed"], rows), *notes]

    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Claims, whether they hold (None: not checked), and what was recomputed."""
        return {
            "claim": [one.claim for one in self.verdicts],
            "holds": [one.holds for one in self.verdicts],
            "recomputed": [one.words for one in self.verdicts],
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        verdicts = tuple(verdict.to_dict() for verdict in self.verdicts)
        entries = {"holds": self.holds, "summary": self.summary, "verdicts": verdicts}
        return {**entries, "note": self.note, "problem": self.problem}


def verify(
    model: LinearModel | FittedRanker,
    data: Dataset,
    valid: Dataset | None = None,
    *,
    query_weight: QueryWeight | None = None,
    previous: LinearModel | PathLike | None = None,
    refit: bool = True,
    progress: Progress | None = None,
) -> Verification:
    """Recompute the claims of a model: its data, the proof about its weights, its metrics and its budget.

    Objective and gap are computed at the model's weights, on data prepared as the model states. The objective
    must agree to a relative 1e-12 plus its rounding error; the gap must not exceed the stated one by more
    than that. Claims that only a fit can confirm, such as a held-out metric, are compared with a new fit, to
    1e-9.

    Parameters
    ----------
    model : LinearModel or fitted ranker
        A model from ``load_model`` or ``to_model``, or a fitted ranker.
    data : Dataset
        The training data of its fit.
    valid : Dataset, optional
        The validation data of its fit, if it had any.
    query_weight : array or mapping of query id to number, optional
        The query weights of its fit, if it had any. Document weights are part of the data.
    previous : LinearModel or its file, optional
        The previous model that its fit started from, if any.
    refit : bool
        Whether to refit if a claim requires it.
    progress : callable, optional
        Called with (done, total) while a ranker with model selection is refitted.
    """
    model = cast(LinearModel, model_of(model))
    previous_model = None if previous is None else as_model(previous)
    case = Case(model, data, valid, query_weight, refit, progress, previous_model)
    case.check_input()
    case = replace(case, query_weight=query_weights(query_weight, data))
    with warnings.catch_warnings():  # the first fit has shown them
        warnings.simplefilter("ignore")
        verdicts = tuple(verdict for check in CLAIMS.values() for verdict in check(case))
    note = ""
    if model.version != __version__:
        written = f"The file was written by ranksieve {model.version}"
        note = f"{written}; this is {__version__}, whose fits may differ."
    return Verification(verdicts, note, statement(model))
