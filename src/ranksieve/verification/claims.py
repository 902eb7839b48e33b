"""The claims of a model file: its data, what is proven, what was measured, the budget that it keeps.

One function and one line in PROOFS adds a kind of certificate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksieve._parallel import single_threaded_blas
from ranksieve._types import FloatArray
from ranksieve.choice.forward import ForwardSearch, fit_set
from ranksieve.choice.scorecard import METHOD
from ranksieve.choice.update import short_name
from ranksieve.data.budget import COST_ROUNDING, Budget
from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset, fingerprint, fingerprint_of_weights
from ranksieve.data.features import is_pattern, matching, named_signs
from ranksieve.data.matrix import dense_block
from ranksieve.methods import ranker_classes
from ranksieve.metrics import evaluate
from ranksieve.model.linear import LinearModel
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import ElasticNet
from ranksieve.prepare.scaling import learn_normalisation
from ranksieve.rankers.parameters import stated_budget, stated_costs, usable_budget
from ranksieve.solvers import Problem
from ranksieve.solvers.base import relative
from ranksieve.subset import Proof, SubsetSearch, proven_bound
from ranksieve.verification.case import (
    COST,
    DAMAGED,
    FIT,
    PARTS,
    SAME_WEIGHT,
    Case,
    Finding,
    NotChecked,
    NotGiven,
    Recomputed,
    Verdict,
    columns_of,
    differing,
    is_from_grid,
    judged,
    learner_of,
    not_checked_if_damaged,
    ranker_class,
    recomputed,
    unless_same,
)  # fmt: skip

REAL = 1e-8  # relative gap of the real-valued weights that a card is compared with
WEIGHTS = "weights"  # the kind of a certificate that names none
ABOUT_GAP = ("objective", "gap", "relative_gap")
NUMBERS = (*ABOUT_GAP, "gap_of_last_round", "bound")  # of a certificate: checked by themselves
ENTRIES: dict[str, Collection[str]] = {  # what certificates of each kind hold
    WEIGHTS: (
        *ABOUT_GAP, "gap_of_last_round", "alpha", "ridge", "family", "features", "weights", "n_features",
    ),
    "subset": (
        "kind", *ABOUT_GAP, "bound", "ridge", "n_features", "max_features", "max_cost", "proof", "family",
    ),
    "scorecard": ("kind", *ABOUT_GAP, "ridge", "scale"),
}  # fmt: skip
OPTIONAL = ("max_cost", "family")
OF_CARDS = ("model", "levels", "units", "signs", "ridge_scales")  # parameters
LEARNED_SCALES = ("z", "within_z", "min_max")


def check_data(case: Case) -> Iterator[Verdict]:
    """The fingerprints of the data are those of the data given, and features have the columns stated."""
    if "train" not in case.model.data:
        yield Verdict(PARTS["train"], None, "the file does not say what the model was fitted on")
    for name, stated in case.model.data.items():
        claim = PARTS.get(name, name)
        if name not in PARTS:
            yield Verdict(claim, False, "this release knows no such data")
            continue
        part = case.data if name == "train" else getattr(case, name)
        if part is None:
            yield Verdict(claim, None, f"give `{name}`")
            continue
        digest = _fingerprint(part)
        words = f"fingerprint {digest}" + ("" if digest == stated else f", stated {stated}")
        yield judged(claim, [(digest == stated, words), *(_columns(case) if name == "train" else ())])


def _fingerprint(part: Any) -> str:
    if isinstance(part, Dataset):
        return fingerprint(part)
    return short_name(part) if isinstance(part, LinearModel) else fingerprint_of_weights(part)


def _columns(case: Case) -> Iterator[Finding]:
    place = {name: j for j, name in enumerate(case.data.feature_names)}
    about = case.model.preparation.missing.indicators
    for term in case.model.terms:
        column = place.get(about.get(term.name, term.name))
        yield from unless_same(f"the column of {term.name} is", column, term.index)


# --- Proofs ---


def check_certificate(case: Case) -> Iterator[Verdict]:
    """What is proven, by the kind of the proof."""
    kind = case.model.certificate.get("kind", WEIGHTS)
    if kind not in PROOFS:
        yield Verdict(kind, False, f"this release does not know certificates of kind {kind!r}")
        return
    try:
        yield PROOFS[kind](case)
    except NotChecked as reason:
        yield reason.verdict(kind)


def check_weights(case: Case) -> Verdict:
    """Objective and gap at the model's weights; what only a fit can tell, and the weights, by a new fit."""
    proof = case.model.certificate
    _check_entries(proof, WEIGHTS)
    if "objective" not in proof:
        if any("gap" in name for name in proof):
            raise NotChecked("the certificate states a gap without an objective")
        raise NotGiven("no objective is stated, so nothing is claimed about the weights")
    found, findings = case.recomputed, [*_consistent(proof), *_unproven(case)]
    by_fit = [name for name in ("objective", "gap", "gap_of_last_round") if name in proof]
    if found is not None:
        findings += _at_weights(found, proof)
        by_fit.remove("objective")
        if "gap" in proof and (found.tight or found.gap <= proof["gap"] + found.slack):
            by_fit.remove("gap")
    needed = bool(by_fit) or "gap" not in proof or case.chooses or case.states_by_fit
    return judged(WEIGHTS, [*findings, *_confirmed_by_fit(case, findings, by_fit, needed)])


def _check_entries(proof: Mapping[str, Any], kind: str) -> None:
    """Refuse entries that no certificate of the kind has, and the lack of one that all have."""
    unknown = [name for name in proof if name not in ENTRIES[kind]]
    if unknown:
        raise NotChecked(f"this release does not know the entry {unknown[0]!r} of its certificate")
    lacking = [name for name in ENTRIES[kind] if name not in (*proof, *OPTIONAL)]
    if lacking and kind != WEIGHTS:
        raise NotChecked(f"the certificate does not state {_listed(lacking)}")


def _confirmed_by_fit(
    case: Case, findings: Sequence[Finding], entries: Sequence[str], needed: bool
) -> Sequence[Finding]:
    """What a new fit tells, if it is ``needed`` and all else holds.

    If the caller gave no means for one, it is left out unless ``entries`` depend on it.
    """
    if not needed or not all(good for good, _ in findings):
        return []
    try:
        return [*_by_new_fit(case, entries), *(_same_statement(case) if case.same_weights else ())]
    except NotChecked as reason:
        if reason.holds is None and not entries:
            return []
        lacking = f"{_listed(entries)}: {reason}" if entries else str(reason)
        message = "; ".join([*(words for _, words in findings if words), lacking])
        raise type(reason)(message) from None


def _consistent(proof: Mapping[str, Any]) -> Iterator[Finding]:
    """What the certificate alone tells: which gap it claims, and as which share of the objective."""
    if "gap" not in proof:
        yield True, "no gap to the best possible objective is claimed"
        if "relative_gap" in proof:
            yield False, "a relative gap is stated without a gap"
        return
    if not proof["gap"] >= 0:
        yield False, f"the gap is {proof['gap']:g}, but no gap is below 0"
    share, stated = relative(proof["gap"], proof["objective"]), proof.get("relative_gap", math.nan)
    yield from unless_same("the relative gap is", share, stated, math.isclose(share, stated, rel_tol=FIT))


def _unproven(case: Case) -> Iterator[Finding]:
    """What no fit gives a model, and no proof covers."""
    yield from unless_same("the intercept is", 0.0, case.model.intercept)
    if case.model.card is not None:
        yield False, "it has a card, but its certificate is not that of a scorecard"
    if case.model.chosen_by is not None and not case.chooses:
        yield False, f"chosen by {case.model.chosen_by['metric']}, but {case.model.method} does not choose"


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
        yield False, case.other_weights
        return
    yield True, "fitted again: same weights"
    for name in entries:
        value, stated = again.get(name, math.nan), proof[name]
        beyond = value - stated if name == "gap" else abs(value - stated)
        if beyond <= FIT * abs(proof["objective"]):
            yield True, f"{_listed([name])} {value:.6g}"
        else:
            yield False, f"fitted again: {_listed([name])} {differing(value, stated)}"


def _same_statement(case: Case) -> Iterator[Finding]:
    """The problem, the choice and the parameters that a new fit states."""
    model, again = case.model, case.again
    for name in sorted({*model.certificate, *again.certificate} - {"proof"}):
        stated, value = model.certificate.get(name), again.certificate.get(name)
        if stated is None or value is None or (name not in NUMBERS and not _same(value, stated)):
            yield False, f"fitted again: {_listed([name])} {differing(value, stated)}"
    yield from unless_same("fitted again: chosen by", again.chosen_by, model.chosen_by)
    for name, value in model.parameters.items():
        if name in again.parameters and name != "profile":
            found = again.parameters[name]
            yield from unless_same(f"fitted again: {name}", found, value, _same(found, value))


def _same(one: Any, other: Any) -> bool:
    """Whether two entries agree, numbers up to what rounding may grow to."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(one, other, rel_tol=SAME_WEIGHT)
    return bool(one == other)


def _listed(entries: Sequence[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in entries)


def check_subset(case: Case) -> Verdict:
    """The objective at the weights, the limits of the set, and the bound that the tree of the proof gives."""
    proof, learner = case.model.certificate, learner_of(case.model)
    case.need("query_weight")
    if not learner.can("budget"):
        raise NotChecked(f"{case.model.method} has no sets of features")
    _check_entries(proof, "subset")
    data, weight = case.learned_from(learner.normalise, learner.missing)
    with not_checked_if_damaged("its problem cannot be stated"), single_threaded_blas():
        ridge, size, limit = proof["ridge"], int(proof["max_features"]), proof.get("max_cost")
        objective = make_objective(data, query_weight=weight)
        budget = _stated_budget(case, learner, data, objective, limit)
        search, w = SubsetSearch(objective, budget, ridge), case.weights_on(data)
        found = recomputed(Problem(objective, ElasticNet(ridge, signs=budget.signs, l1_ratio=0.0)), w)
        findings = [
            *_consistent(proof), *_unproven(case), *_at_weights(found, {"objective": proof["objective"]}),
            *_stated_limits(case, learner, search, data), *_allowed(search, size, w),
        ]  # fmt: skip
        tree, claimed = Proof.from_lines(proof["proof"]), proof["objective"] - proof["gap"]
        bound = proven_bound(tree, search.relaxation(size), search.everything, claimed)
    good = bound >= claimed - found.slack - FIT * abs(claimed)
    words = f"no set is below {bound:.6g} by a proof of {len(tree.nodes)} regions"
    findings.append((good, words if good else f"the proof gives the bound {differing(bound, claimed)}"))
    return judged("subset", [*findings, *_confirmed_by_fit(case, findings, (), case.chooses)])


def _stated_budget(
    case: Case, learner: Any, data: Dataset, objective: Objective, max_cost: float | None
) -> Budget:
    """The sets that the parameters allow, for a cost of at most ``max_cost``."""
    indicators = case.model.preparation.missing.indicators
    costs = stated_costs(learner.feature_costs, data.feature_names, indicators)
    budget = stated_budget(learner, data.feature_names, indicators, costs)
    budget = replace(budget, max_cost=max_cost) if max_cost is not None else budget.without_costs()
    return usable_budget(budget, objective, getattr(learner, "l1_weights", None))


def _stated_limits(case: Case, learner: Any, search: SubsetSearch, data: Dataset) -> Iterator[Finding]:
    """The problem of the certificate is that of the parameters."""
    proof, usable = case.model.certificate, search.budget.usable
    default = SubsetSearch(search.objective, search.budget).ridge
    ridge = default if (asked := getattr(learner, "ridge", None)) is None else asked
    if math.isclose(proof["ridge"], ridge, rel_tol=FIT):
        yield True, f"ridge {_beside_default(proof['ridge'], default)}"
    else:
        yield False, f"the ridge is {differing(ridge, proof['ridge'])}"
    bound = proof["objective"] - proof["gap"]
    same = abs(bound - proof["bound"]) <= FIT * abs(proof["objective"])
    yield from unless_same("objective less gap, the bound, is", bound, proof["bound"], same)
    yield from unless_same("the number of features is", data.n_features, proof["n_features"])
    size, most = proof["max_features"], learner.max_features or int(np.count_nonzero(usable))
    yield from unless_same("the most features are", most, size, size <= most if case.chooses else None)
    yield from unless_same("the largest cost is", learner.max_cost, proof.get("max_cost"))


def _beside_default(ridge: float, default: float) -> str:
    same = math.isclose(ridge, default, rel_tol=FIT)
    return f"{ridge:.4g} (the default)" if same else f"{ridge:.4g} (the default is {default:.4g})"


def _allowed(search: SubsetSearch, size: int, w: FloatArray) -> Iterator[Finding]:
    """The set of the model is one of those that the proof is about; so there is such a set."""
    allowed, region, used = search.allowed(size), search.everything, w != 0
    if not allowed.possible(region):
        yield False, "no set of features keeps the limits"
        return
    if not (region.inside | region.free)[used].all():
        yield False, "the model uses a feature that the limits forbid"
        return
    chosen = region.holding(used)
    n = int(np.count_nonzero(used))
    yield allowed.places(chosen) >= 0, f"{n} of at most {size} features"
    if (costs := allowed.budget.costs) is not None:
        yield allowed.money(chosen) >= 0, f"cost {costs.of(np.flatnonzero(used)):g}"


def check_scorecard(case: Case) -> Verdict:
    """The objective of the card, and how near the best real-valued weights of the same features it is."""
    proof, model = case.model.certificate, case.model
    case.need("query_weight")
    if model.card is None:
        raise NotChecked("the file has no card")
    _check_entries(proof, "scorecard")
    kept = model.preparation
    data, weight = case.learned_from(kept.normalisation.kind, kept.missing.policy)
    with not_checked_if_damaged("its problem cannot be stated"), single_threaded_blas():
        scales, signs, ridge = model.parameters["ridge_scales"], model.parameters["signs"], proof["ridge"]
        columns, scale = columns_of(list(scales), data), np.array(list(scales.values()), dtype=np.float64)
        bound = np.array([float(signs.get(name, 0.0)) for name in scales])
        values = data.replace_features(dense_block(data.X, slice(None), columns) / scale, list(scales))
        objective = make_objective(values, query_weight=weight)
        w = proof["scale"] * case.weights_on(data)[columns] * scale
        limited = bound if bound.any() else None
        found = recomputed(Problem(objective, ElasticNet(ridge, signs=limited, l1_ratio=0.0)), w)
        best = fit_set(objective, range(len(scale)), w, ridge, limited, REAL)
        default = ForwardSearch(objective, objective.varies).ridge
    findings = [
        *_consistent(proof), *_at_weights(found, {"objective": proof["objective"]}), *_as_the_card(case),
    ]  # fmt: skip
    if not found.objective < objective.at_zero.value:
        findings.append((False, "the card ranks the training data no better than no features do"))
    gap = found.objective - (best.objective - best.gap)
    good = gap <= proof["gap"] + found.slack + 2.0 * REAL * found.objective
    problem = f"ridge {_beside_default(ridge, default)} on weights {_scaled_by(data, weight, columns, scale)}"
    words = f"the gap to real-valued weights is {differing(gap, proof['gap'])}"
    if good:
        near = f"at most {max(gap, 0.0):.2g} above the best real-valued weights"
        words = f"{near} of {', '.join(scales)} ({problem})"
    return judged("scorecard", [*findings, (good, words)])


def _as_the_card(case: Case) -> Iterator[Finding]:
    """What file and card state twice, and what any card has."""
    model, card = case.model, case.model.card
    assert card is not None
    asked = model.parameters
    yield from unless_same("the method is", METHOD, model.method)
    for name in asked:
        if name not in OF_CARDS:
            yield False, f"a scorecard has no parameter {name!r}"
    if model.preparation.missing.policy == "keep" and str(asked.get("model")).lower() in ranker_classes():
        yield False, f"models of {asked['model']} do not keep missing values"
    if not case.model.certificate["scale"] > 0:
        yield False, f"the scale is {case.model.certificate['scale']:g}; expected a number above 0"
    beyond = [name for name in card.points if name not in asked["ridge_scales"]]
    if beyond:
        yield False, f"the proof is not about {', '.join(beyond)} of the card"
    yield from unless_same("the levels of the card are", card.levels, asked.get("levels"))
    for name, unit in (asked.get("units") or {}).items():
        yield from unless_same(f"the unit of {name} is", card.units.get(name, unit), unit)


def _scaled_by(data: Dataset, weight: FloatArray, columns: Any, scale: FloatArray) -> str:
    """What the ridge of a card is on, in words."""
    if np.all(scale == 1.0):
        return "of the features as they come"
    part = data.replace_features(
        dense_block(data.X, slice(None), columns), [data.feature_names[j] for j in columns]
    )
    for kind in LEARNED_SCALES:
        if np.allclose(learn_normalisation(part, kind, weight).scale, scale, rtol=FIT, atol=0.0):
            return f"normalised by {kind}"
    return f"scaled by numbers that only the file knows, {scale.min():.4g} to {scale.max():.4g}"


PROOFS: dict[str, Callable[[Case], Verdict]] = {
    WEIGHTS: check_weights,
    "subset": check_subset,
    "scorecard": check_scorecard,
}


# --- Measures and the budget ---


def check_metrics(case: Case) -> Iterator[Verdict]:
    """The cost by the prices in the file, all else by a new fit; what a fit measures is to be stated."""
    stated = case.model.metrics
    for name, value in stated.items():
        try:
            yield _check_cost(case, value) if name == COST else _check_metric(case, name, value)
        except NotChecked as reason:
            yield reason.verdict(name)
    if case.model.card is None:
        if COST not in stated and case.model.parameters.get("feature_costs") is not None:
            yield Verdict(COST, False, "the file has prices and states no cost")
        if not any(name != COST for name in stated) and _chooses(case):
            yield Verdict("held-out metric", False, "the file does not state the metric of its choice")
    elif "valid" in case.model.data and not stated:
        yield Verdict("held-out metric", False, "the file names validation data and states no metric on them")


def _chooses(case: Case) -> bool:
    try:
        return case.chooses
    except NotChecked:
        return False


def _check_cost(case: Case, stated: float) -> Verdict:
    found = _cost(case.model)
    if found is None:
        raise NotChecked("the file does not hold what its features cost")
    return _measured(
        COST, found, stated, math.isclose(found, stated, rel_tol=FIT), "by the prices in the file"
    )


def _check_metric(case: Case, name: str, stated: float) -> Verdict:
    if case.model.card is not None:
        return _check_card_metric(case, name, stated)
    again = case.again.metrics
    if name not in again:
        raise NotChecked("a fit by this release measures no such thing")
    weights = "same" if case.same_weights else "other"
    same = abs(again[name] - stated) <= FIT
    return _measured(name, again[name], stated, same, f"fitted again: {weights} weights, {name}")


def _measured(claim: str, found: float, stated: float, same: bool, words: str) -> Verdict:
    value = differing(found, stated) if not same else f"{found:g}" if claim == COST else f"{found:.4f}"
    return Verdict(claim, same, f"{words} {value}")


def _check_card_metric(case: Case, name: str, stated: float) -> Verdict:
    """A card is measured as it is, on validation data that had no part in it."""
    case.need("valid")
    written = re.fullmatch(r"held-out (\S+) \((\w+)\)", name)
    if case.valid is None or written is None:
        raise NotChecked("the file does not say on which data, or by which conventions, it was measured")
    metric, profile = written.groups()
    with not_checked_if_damaged("it cannot be measured"):
        mean = float(evaluate(case.model.predict(case.valid), case.valid, metric, profile).mean[metric])
    return _measured(name, mean, stated, abs(mean - stated) <= FIT, "on the validation data")


def check_budget(case: Case) -> Iterator[Verdict]:
    """The limits that were asked for are kept."""
    try:
        limited = is_from_grid(case.model) or ranker_class(case.model.method)().can("budget")
    except NotChecked:
        limited = True
    if not limited:  # parameters of the same names may mean something else there
        return
    try:
        with not_checked_if_damaged("what was asked for cannot be read"):
            findings = [*_limits(case.model, case.data.feature_names)]
    except NotChecked as reason:
        yield reason.verdict("budget")
        return
    if findings:
        yield judged("budget", findings)


def _limits(model: LinearModel, known: Sequence[str]) -> Iterator[Finding]:
    """``known`` are the features of the data: a name among them is no pattern."""
    asked = {name: value for name, value in model.parameters.items() if value not in (None, [], {})}
    if "max_features" in asked:
        n, most = len(model.terms), asked["max_features"]
        yield n <= most, f"{n} of at most {most} features"
    if "max_cost" in asked:
        cost, limit = _cost(model), float(asked["max_cost"])
        if cost is None:
            yield False, f"the file does not hold what its features cost, of at most {limit:g}"
        else:
            yield cost <= limit * (1.0 + COST_ROUNDING), f"cost {cost:g} of at most {limit:g}"
    if "must_not" in asked:
        by_name = _named(asked.get("must_have", []), model)
        used = _matched(_named(asked["must_not"], model), model, known) - by_name
        yield not used, f"uses {', '.join(sorted(used))} of must_not" if used else "none of must_not"
    if "signs" in asked:
        signs = named_signs(asked["signs"], known)
        wrong = [term.name for term in model.terms if term.weight * float(signs.get(term.name, 0)) < 0]
        yield not wrong, f"other signs than asked for: {', '.join(wrong)}" if wrong else "signs as asked for"


def _cost(model: LinearModel) -> float | None:
    """The cost of the features in use, by the prices in the file; None if it lacks any of them."""
    try:
        return make_costs(model.parameters["feature_costs"]).of(model.names)
    except DAMAGED:
        return None


def _named(features: Any, model: LinearModel) -> set[str]:
    """Features by name; those that the file gives by column as far as the model uses them."""
    given = features if isinstance(features, list) else [features]
    return {one if isinstance(one, str) else _names_of_columns(model).get(one, "") for one in given}


def _matched(named: set[str], model: LinearModel, known: Sequence[str]) -> set[str]:
    """Those of the features in use that are named, or that a pattern matches."""
    used = _names_of_columns(model).values()
    found = [name for one in named if is_pattern(one, known) for name in matching(one, used)]
    return named.intersection(model.names).union(found)


def _names_of_columns(model: LinearModel) -> dict[int, str]:
    about = model.preparation.missing.indicators
    return {term.index: term.name for term in model.terms if term.name not in about}
