"""What a model file claims, recomputed from the data: a verdict for each claim.

One function and one line in CLAIMS adds a claim, and likewise in PROOFS a kind of certificate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from ranksieve._types import PathLike
from ranksieve._version import __version__
from ranksieve.choice.update import as_model
from ranksieve.data.dataset import Dataset, QueryWeight, query_weights
from ranksieve.model.linear import FittedRanker, LinearModel, model_of
from ranksieve.path import Progress
from ranksieve.verification.case import Case, NotChecked, NotGiven, Verdict, statement
from ranksieve.verification.claims import PROOFS, check_budget, check_certificate, check_data, check_metrics

__all__ = ["CLAIMS", "PROOFS", "Case", "NotChecked", "NotGiven", "Verdict", "Verification", "verify"]

CLAIMS: dict[str, Callable[[Case], Iterator[Verdict]]] = {
    "data": check_data,
    "certificate": check_certificate,
    "metrics": check_metrics,
    "budget": check_budget,
}


@dataclass(frozen=True)
class Verification:
    """The verdicts on all claims of a model; ``note`` tells if another release wrote it.

    ``problem`` is the problem that the file states: the proof is about that one, and nothing checks whether
    it is the right one to solve.
    """

    verdicts: tuple[Verdict, ...]
    note: str = ""
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Whether every claim holds, apart from those that ``refit=False`` left out."""
        return all(verdict.holds or verdict.left_out for verdict in self.verdicts)

    @property
    def summary(self) -> str:
        """How many claims hold, in one sentence."""
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        verdicts = tuple(verdict.to_dict() for verdict in self.verdicts)
        shown = {"holds": self.holds, "summary": self.summary, "verdicts": verdicts}
        return {**shown, "note": self.note, "problem": self.problem}


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
    """Recompute what a model claims: its data, the proof about its weights, what was measured, its budget.

    Objective and gap are computed at the model's own weights, on data that its own preparation fills and
    scales. The objective agrees if it differs by no more than 1e-12 of itself and its rounding error; the gap
    if it is no larger than stated by more than that. What only a fit can tell, such as a held-out metric, is
    compared with that of a new fit, to 1e-9.

    Parameters
    ----------
    model : LinearModel or fitted ranker
        As ``load_model`` or ``to_model`` gives it.
    data : Dataset
        What it was fitted on.
    valid : Dataset, optional
        The validation data of its fit, if it had any.
    query_weight : array or mapping of query id to number, optional
        The weights of queries in its fit, if it had any. The data bring the weights of their documents.
    previous : LinearModel or its file, optional
        The model that its fit began with, if any.
    refit : bool
        Whether to fit again where a claim needs it.
    progress : callable, optional
        Called with (done, in all) while a ranker that chooses among models is fitted again.
    """
    model = cast(LinearModel, model_of(model))
    begin = None if previous is None else as_model(previous)
    case = Case(model, data, valid, query_weight, refit, progress, begin)
    case.check_input()
    case = replace(case, query_weight=query_weights(query_weight, data))
    with warnings.catch_warnings():  # the first fit has given them
        warnings.simplefilter("ignore")
        verdicts = tuple(verdict for check in CLAIMS.values() for verdict in check(case))
    note = ""
    if model.version != __version__:
        note = f"ranksieve {model.version} wrote the file; this is {__version__}, whose fits may differ."
    return Verification(verdicts, note, statement(model))
