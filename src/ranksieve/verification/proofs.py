"""Kinds of proof that a certificate may hold. One function and one line in PROOFS adds a kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve.data.matrix import dense_block
from ranksieve.estimators.within_budget import WithinBudget
from ranksieve.forward import fit_set
from ranksieve.objective import make_objective
from ranksieve.penalties import ElasticNet
from ranksieve.solvers import Problem
from ranksieve.solvers.base import relative
from ranksieve.subset import Proof, SubsetSearch, proven_bound
from ranksieve.verification.case import FIT, Case, Recomputed, columns_of, recomputed
from ranksieve.verification.rebuild import learner_of
from ranksieve.verification.verdict import (
    Finding,
    NotChecked,
    Verdict,
    differing,
    judged,
    told_if_damaged,
)

REAL = 1e-8  # relative gap of the real-valued weights that a card is compared with
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


def check_subset(case: Case) -> Verdict:
    """The objective at the weights, the limits of the set, and the bound that the tree of the proof gives."""
    proof, learner = case.model.certificate, learner_of(case.model)
    case.need("query_weight")
    data, weight = case.learned_from(learner.missing)
    if not isinstance(learner, WithinBudget):
        raise NotChecked(f"{case.model.method} has no sets of features")
    with told_if_damaged("its problem cannot be stated"), single_threaded_blas():
        ridge, size, limit = proof["ridge"], int(proof["max_features"]), proof.get("max_cost")
        objective = make_objective(data, query_weight=weight)
        rules = learner.stated_rules(data, objective, case.model.preparation.missing.indicators, limit)
        search, w = SubsetSearch(objective, rules, ridge), case.weights_on(data)
        found = recomputed(Problem(objective, ElasticNet(ridge, signs=rules.signs, l1_ratio=0.0)), w)
        findings = [*_consistent(proof), *_at_weights(found, {"objective": proof["objective"]})]
        used = np.flatnonzero(w)
        findings.append((len(used) <= size, f"{len(used)} of at most {size} features"))
        if rules.prices is not None:
            findings.append((rules.prices.of(used) <= rules.limit, f"cost {rules.prices.of(used):g}"))
        tree, claimed = Proof.from_lines(proof["proof"]), proof["objective"] - proof["gap"]
        bound = proven_bound(tree, search.relaxation(size), search.everything, claimed)
    good = bound >= claimed - found.slack - FIT * abs(claimed)
    words = f"no set is below {bound:.6g} by a proof of {len(tree.nodes)} regions"
    findings.append((good, words if good else f"the proof gives the bound {differing(bound, claimed)}"))
    return judged("subset", findings)


def check_scorecard(case: Case) -> Verdict:
    """The objective of the card, and how near the best real-valued weights of the same features it is."""
    proof, model = case.model.certificate, case.model
    case.need("query_weight")
    policy = model.preparation.missing.policy
    data, weight = case.learned_from("auto" if policy == "keep" else policy)
    with told_if_damaged("its problem cannot be stated"), single_threaded_blas():
        scales, signs, ridge = model.parameters["ridge_scales"], model.parameters["signs"], proof["ridge"]
        columns, scale = columns_of(list(scales), data), np.array(list(scales.values()), dtype=np.float64)
        bound = np.array([float(signs.get(name, 0.0)) for name in scales])
        values = data.replace_features(dense_block(data.X, slice(None), columns) / scale, list(scales))
        objective = make_objective(values, query_weight=weight)
        w = proof["scale"] * case.weights_on(data)[columns] * scale
        limited = bound if bound.any() else None
        found = recomputed(Problem(objective, ElasticNet(ridge, signs=limited, l1_ratio=0.0)), w)
        best = fit_set(objective, range(len(scale)), w, ridge, limited, REAL)
    findings = [*_consistent(proof), *_at_weights(found, {"objective": proof["objective"]})]
    gap = found.objective - (best.objective - best.gap)
    good = gap <= proof["gap"] + found.slack + 2.0 * REAL * found.objective
    words = f"at most {max(gap, 0.0):.2g} above the best real-valued weights"
    findings.append(
        (good, words if good else f"the gap to real-valued weights is {differing(gap, proof['gap'])}")
    )
    return judged("scorecard", findings)


PROOFS: dict[str, Callable[[Case], Verdict]] = {
    WEIGHTS: check_weights,
    "subset": check_subset,
    "scorecard": check_scorecard,
}
