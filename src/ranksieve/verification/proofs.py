"""Kinds of proof that a certificate may hold. One function and one line in PROOFS adds a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ranksieve.solvers.base import relative
from ranksieve.verification.case import FIT, Case, Recomputed
from ranksieve.verification.verdict import Finding, NotChecked, Verdict, differing, judged

WEIGHTS = "weights"  # the kind of a certificate that names none


def check_certificate(case: Case) -> Iterator[Verdict]:
    """What is proven, by the kind of the proof."""
    kind = case.model.certificate.get("kind", WEIGHTS)
    if kind not in PROOFS:
        yield Verdict(kind, None, f"this release does not know certificates of kind {kind!r}")
        return
    try:
        yield PROOFS[kind](case)
    except NotChecked as reason:
        yield Verdict(kind, None, str(reason))


def check_weights(case: Case) -> Verdict:
    """Objective and gap at the model's weights; what only a fit can tell, and the weights, by a new fit."""
    proof = case.model.certificate
    if "objective" not in proof:
        raise NotChecked("no objective is stated, so nothing is claimed about the weights")
    found, findings = case.recomputed, [*_consistent(proof)]
    by_fit = [name for name in ("objective", "gap", "gap_of_last_round") if name in proof]
    if found is not None:
        findings += _at_weights(found, proof)
        by_fit.remove("objective")
        if "gap" in proof and (found.tight or found.gap <= proof["gap"] + found.slack):
            by_fit.remove("gap")
    if (by_fit or case.measures) and all(good for good, _ in findings):
        try:
            findings += _by_new_fit(case, by_fit)
        except NotChecked as reason:
            if by_fit:
                told = "; ".join([*(words for _, words in findings), f"{_listed(by_fit)}: {reason}"])
                raise NotChecked(told) from None
    return judged(WEIGHTS, findings)


def _consistent(proof: Mapping[str, Any]) -> Iterator[Finding]:
    """What the certificate alone tells: which gap it claims, and as which share of the objective."""
    if "gap" not in proof:
        yield True, "no gap to the best possible objective is claimed"
    elif "relative_gap" in proof:
        share, stated = relative(proof["gap"], proof["objective"]), proof["relative_gap"]
        if not math.isclose(share, stated, rel_tol=FIT):
            yield False, f"the relative gap is {differing(share, stated)}"


def _at_weights(found: Recomputed, proof: Mapping[str, Any]) -> Iterator[Finding]:
    stated, gap = proof["objective"], proof.get("gap")
    if not abs(found.objective - stated) <= found.slack:
        yield False, f"the objective at these weights is {differing(found.objective, stated)}"
        return
    yield True, f"objective {found.objective:.6g} at these weights"
    if gap is None:
        return
    if found.gap <= gap + found.slack:
        yield True, f"gap {found.gap:.2g}"
    elif found.tight:
        yield False, f"the gap at these weights is {differing(found.gap, gap)}"


def _by_new_fit(case: Case, entries: Sequence[str]) -> Iterator[Finding]:
    """The weights of a new fit, and some entries of its certificate."""
    proof, again = case.model.certificate, case.again.certificate
    if not case.same_weights:
        words = "fitted again: other weights"
        case.excuse_warm_start(words)
        yield False, words
        return
    yield True, "fitted again: same weights"
    for name in entries:
        value, stated = again.get(name, math.nan), proof[name]
        beyond = value - stated if name == "gap" else abs(value - stated)
        if beyond <= FIT * abs(proof["objective"]):
            yield True, f"{_listed([name])} {value:.6g}"
        else:
            yield False, f"fitted again: {_listed([name])} {differing(value, stated)}"


def _listed(entries: Sequence[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in entries)


PROOFS: dict[str, Callable[[Case], Verdict]] = {WEIGHTS: check_weights}
