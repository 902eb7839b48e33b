"""The claims of a model file: data, certificate, metrics and budget.

A new kind of certificate is one function and one line in PROOFS.
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
from ranksieve.choice.scorecard import METHOD, REAL_WEIGHTS_TOL
from ranksieve.choice.update import model_digest
from ranksieve.data.budget import COST_ROUNDING, Budget
from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset, fingerprint, fingerprint_of_weights
from ranksieve.data.features import MAX_SHOWN_NAMES, is_pattern, matching, named_signs
from ranksieve.data.matrix import dense_block
from ranksieve.errors import short_list
from ranksieve.losses.squared_hinge import stated_loss
from ranksieve.methods import ranker_classes
from ranksieve.metrics.evaluate import evaluate_quietly
from ranksieve.metrics.profiles import as_profile, as_ties
from ranksieve.model.linear import LinearModel, Term
from ranksieve.objective import Objective, make_objective
from ranksieve.penalties import ElasticNet
from ranksieve.prepare.scaling import learn_normalisation
from ranksieve.prepare.steps import CURVES
from ranksieve.rankers.parameters import stated_budget, stated_costs, usable_budget
from ranksieve.solvers import Problem
from ranksieve.solvers.base import relative
from ranksieve.subset import Proof, SubsetSearch, proven_bound
from ranksieve.verification.case import (
    COST,
    DAMAGE_ERRORS,
    DATA_DESCRIPTIONS,
    HYBRID,
    REFIT_TOLERANCE,
    WEIGHT_TOLERANCE,
    Case,
    Finding,
    NotChecked,
    NotGiven,
    Recomputed,
    Verdict,
    check_same,
    columns_of,
    difference_text,
    is_from_grid,
    learner_of,
    make_verdict,
    not_checked_if_damaged,
    ranker_class,
    recompute,
)  # fmt: skip

WEIGHTS = "weights"  # certificates without a kind
GAP_ENTRIES = ("objective", "gap", "relative_gap")
CHECKED_NUMBERS = (*GAP_ENTRIES, "gap_of_last_round", "bound")  # certificate entries with their own checks
ENTRIES: dict[str, Collection[str]] = {  # by kind of certificate
    WEIGHTS: (
        *GAP_ENTRIES, "gap_of_last_round", "alpha", "ridge", "family", "features", "weights", "n_features",
        "shape",
    ),
    "subset": (
        "kind", *GAP_ENTRIES, "bound", "ridge", "n_features", "max_features", "max_cost", "proof", "family",
    ),
    "scorecard": ("kind", *GAP_ENTRIES, "ridge", "scale"),
}  # fmt: skip
OPTIONAL = ("max_cost", "family")
CARD_PARAMETERS = ("model", "levels", "units", "signs", "pair_weighting", "ridge_scales")
LEARNED_SCALES = ("z", "within_z", "min_max")


def check_data(case: Case) -> Iterator[Verdict]:
    """Check the fingerprints of the data and the columns of the features."""
    if "train" not in case.model.data:
        yield Verdict(DATA_DESCRIPTIONS["train"], None, "the file does not state the training data")
    for name, stated in case.model.data.items():
        claim = DATA_DESCRIPTIONS.get(name, name)
        if name not in DATA_DESCRIPTIONS:
            yield Verdict(claim, False, "unknown to this release")
            continue
        part = case.data if name == "train" else getattr(case, name)
        if part is None:
            yield Verdict(claim, None, f"pass `{name}`")
            continue
        digest = _fingerprint(part)
        text = f"fingerprint {digest}" + ("" if digest == stated else f" (stated: {stated})")
        yield make_verdict(claim, [(digest == stated, text), *(_columns(case) if name == "train" else ())])


def _fingerprint(part: Any) -> str:
    if isinstance(part, Dataset):
        return fingerprint(part)
    return model_digest(part) if isinstance(part, LinearModel) else fingerprint_of_weights(part)


def _columns(case: Case) -> Iterator[Finding]:
    index = {name: j for j, name in enumerate(case.data.feature_names)}
    indicators = case.model.preparation.missing.indicators
    for term in case.model.terms:
        column = index.get(indicators.get(term.name, term.name))
        yield from check_same(f"the column of {term.name} is", column, term.index)


# --- Proofs ---


def check_certificate(case: Case) -> Iterator[Verdict]:
    """Check the certificate by its kind."""
    kind = case.model.certificate.get("kind", WEIGHTS)
    if kind not in PROOFS:
        yield Verdict(kind, False, f"this release does not support certificates of kind {kind!r}")
        return
    try:
        yield PROOFS[kind](case)
    except NotChecked as reason:
        yield reason.verdict(kind)


def check_weights(case: Case) -> Verdict:
    """Check objective and gap at the model's weights, and the rest by a new fit."""
    proof = case.model.certificate
    _check_entries(proof, WEIGHTS)
    if "objective" not in proof:
        if any("gap" in name for name in proof):
            raise NotChecked("the certificate states a gap without an objective")
        if case.model.method == HYBRID:  # weights that minimise nothing, such as equal weights
            return make_verdict(WEIGHTS, [*_by_new_fit(case, ()), *_same_statement(case)])
        raise NotGiven("no objective is stated, so nothing is claimed about the weights")
    recomputed, findings = case.recomputed, [*_consistent(proof), *_unproven(case)]
    shape = CURVES if case.model.has_curves else None
    findings += check_same("the shape in the certificate is", proof.get("shape"), shape)
    by_fit = [name for name in ("objective", "gap", "gap_of_last_round") if name in proof]
    if recomputed is not None:
        findings += _at_weights(recomputed, proof)
        by_fit.remove("objective")
        if "gap" in proof and (recomputed.tight or recomputed.gap <= proof["gap"] + recomputed.slack):
            by_fit.remove("gap")
    needed = bool(by_fit) or "gap" not in proof or case.chooses or case.states_by_fit
    return make_verdict(WEIGHTS, [*findings, *_confirmed_by_fit(case, findings, by_fit, needed)])


def _check_entries(proof: Mapping[str, Any], kind: str) -> None:
    """Raise NotChecked for unknown or missing entries of a certificate."""
    unknown = [name for name in proof if name not in ENTRIES[kind]]
    if unknown:
        raise NotChecked(f"unknown certificate entry {unknown[0]!r}")
    lacking = [name for name in ENTRIES[kind] if name not in (*proof, *OPTIONAL)]
    if lacking and kind != WEIGHTS:
        raise NotChecked(f"the certificate does not state {_join_names(lacking)}")


def _confirmed_by_fit(
    case: Case, findings: Sequence[Finding], entries: Sequence[str], needed: bool
) -> Sequence[Finding]:
    """Findings of a new fit, if it is ``needed`` and all other findings hold.

    If the refit is not possible, it is skipped unless ``entries`` depend on it.
    """
    if not needed or not all(good for good, _ in findings):
        return []
    try:
        return [*_by_new_fit(case, entries), *(_same_statement(case) if case.same_weights else ())]
    except NotChecked as reason:
        if reason.holds is None and not entries:
            return []
        obstacle = f"{_join_names(entries)}: {reason}" if entries else str(reason)
        message = "; ".join([*(text for _, text in findings if text), obstacle])
        raise type(reason)(message) from None


def _consistent(proof: Mapping[str, Any]) -> Iterator[Finding]:
    """Check that the gap and the relative gap of the certificate agree."""
    if "gap" not in proof:
        yield True, "no optimality gap is claimed"
        if "relative_gap" in proof:
            yield False, "a relative gap is stated without a gap"
        return
    if not proof["gap"] >= 0:
        yield False, f"the gap is {proof['gap']:g}; expected at least 0"
    relative_gap, stated = relative(proof["gap"], proof["objective"]), proof.get("relative_gap", math.nan)
    yield from check_same(
        "the relative gap is",
        relative_gap,
        stated,
        math.isclose(relative_gap, stated, rel_tol=REFIT_TOLERANCE),
    )


def _unproven(case: Case) -> Iterator[Finding]:
    """Check for parts that no fit produces and no proof covers."""
    yield from check_same("the intercept is", 0.0, case.model.intercept)
    if case.model.card is not None:
        yield False, "the model has a card, but its certificate is not of kind scorecard"
    if case.model.chosen_by is not None and not case.chooses:
        yield (
            False,
            f"chosen by {case.model.chosen_by['metric']}, but {case.model.method} does no model selection",
        )


def _at_weights(recomputed: Recomputed, proof: Mapping[str, Any]) -> Iterator[Finding]:
    stated, gap = proof["objective"], proof.get("gap")
    if not abs(recomputed.objective - stated) <= recomputed.slack:
        yield False, f"the objective at these weights is {difference_text(recomputed.objective, stated)}"
        return
    yield True, f"objective {recomputed.objective:.6g} at these weights"
    if gap is None:
        return
    if recomputed.gap <= gap + recomputed.slack:
        yield True, f"gap {recomputed.gap:.2g}"
    elif recomputed.tight:
        yield False, f"the gap at these weights is {difference_text(recomputed.gap, gap)}"


def _by_new_fit(case: Case, entries: Sequence[str]) -> Iterator[Finding]:
    """Compare the weights of a new fit, and ``entries`` of its certificate."""
    proof, refitted = case.model.certificate, case.refitted.certificate
    if not case.same_weights:
        yield False, case.different_weights_text
        return
    yield True, "refit: same weights"
    for name in entries:
        value, stated = refitted.get(name, math.nan), proof[name]
        excess = value - stated if name == "gap" else abs(value - stated)
        if excess <= REFIT_TOLERANCE * abs(proof["objective"]):
            yield True, f"{_join_names([name])} {value:.6g}"
        else:
            yield False, f"refit: {_join_names([name])} {difference_text(value, stated)}"


def _same_statement(case: Case) -> Iterator[Finding]:
    """Compare the problem, the model selection and the parameters with those of a new fit."""
    model, refitted = case.model, case.refitted
    for name in sorted({*model.certificate, *refitted.certificate} - {"proof"}):
        stated, value = model.certificate.get(name), refitted.certificate.get(name)
        if stated is None or value is None or (name not in CHECKED_NUMBERS and not _same(value, stated)):
            yield False, f"refit: {_join_names([name])} {difference_text(value, stated)}"
    yield from check_same("refit: chosen by", refitted.chosen_by, model.chosen_by)
    kind, stated = refitted.preparation.normalisation.kind, model.preparation.normalisation.kind
    yield from check_same("refit: normalisation", kind, stated)
    for name, stated in model.parameters.items():
        if name in refitted.parameters and name != "profile":
            value = refitted.parameters[name]
            yield from check_same(f"refit: {name}", value, stated, _same(value, stated))


def _same(one: Any, other: Any) -> bool:
    """Whether two entries agree, numbers up to rounding errors."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(one, other, rel_tol=WEIGHT_TOLERANCE)
    return bool(one == other)


def _join_names(entries: Sequence[str]) -> str:
    return " and ".join(name.replace("_", " ") for name in entries)


def check_subset(case: Case) -> Verdict:
    """Check the objective at the weights, the limits of the set, and the bound of the proof tree."""
    proof, learner = case.model.certificate, learner_of(case.model)
    case.need("query_weight")
    if not learner.can("budget"):
        raise NotChecked(f"{case.model.method} does not search for subsets")
    _check_entries(proof, "subset")
    data, weight = case.prepared_data(learner.normalise, learner.missing)
    with not_checked_if_damaged("the problem cannot be rebuilt"), single_threaded_blas():
        ridge, size, limit = proof["ridge"], int(proof["max_features"]), proof.get("max_cost")
        objective = make_objective(data, stated_loss(case.model.parameters), weight)
        budget = _stated_budget(case, learner, data, objective, limit)
        search, w = SubsetSearch(objective, budget, ridge), case.weights_on(data)
        recomputed = recompute(Problem(objective, ElasticNet(ridge, signs=budget.signs, l1_ratio=0.0)), w)
        stated = {"objective": proof["objective"]}
        findings = [
            *_consistent(proof), *_unproven(case), *_at_weights(recomputed, stated),
            *_stated_limits(case, learner, search, data), *_allowed(search, size, w),
        ]  # fmt: skip
        tree, claimed = Proof.from_lines(proof["proof"]), proof["objective"] - proof["gap"]
        bound = proven_bound(tree, search.relaxation(size), search.everything, claimed)
    good = bound >= claimed - recomputed.slack - REFIT_TOLERANCE * abs(claimed)
    text = f"no set has an objective below {bound:.6g}, proven with {len(tree.nodes)} regions"
    findings.append((good, text if good else f"the proof gives the bound {difference_text(bound, claimed)}"))
    return make_verdict("subset", [*findings, *_confirmed_by_fit(case, findings, (), case.chooses)])


def _stated_budget(
    case: Case, learner: Any, data: Dataset, objective: Objective, max_cost: float | None
) -> Budget:
    """The sets that the parameters allow, with a cost of at most ``max_cost``."""
    indicators = case.model.preparation.missing.indicators
    costs = stated_costs(learner.feature_costs, data.feature_names, indicators)
    budget = stated_budget(learner, data.feature_names, indicators, costs)
    budget = replace(budget, max_cost=max_cost) if max_cost is not None else budget.without_costs()
    return usable_budget(budget, objective, getattr(learner, "l1_weights", None))


def _stated_limits(case: Case, learner: Any, search: SubsetSearch, data: Dataset) -> Iterator[Finding]:
    """Check that the certificate states the problem of the parameters."""
    proof, usable = case.model.certificate, search.budget.usable
    default = SubsetSearch(search.objective, search.budget).ridge
    ridge = default if (parameter := getattr(learner, "ridge", None)) is None else parameter
    if math.isclose(proof["ridge"], ridge, rel_tol=REFIT_TOLERANCE):
        yield True, f"ridge {_with_default(proof['ridge'], default)}"
    else:
        yield False, f"the ridge is {difference_text(ridge, proof['ridge'])}"
    bound = proof["objective"] - proof["gap"]
    same = abs(bound - proof["bound"]) <= REFIT_TOLERANCE * abs(proof["objective"])
    yield from check_same("the bound (objective minus gap) is", bound, proof["bound"], same)
    yield from check_same("the number of features is", data.n_features, proof["n_features"])
    size, most = proof["max_features"], learner.max_features or int(np.count_nonzero(usable))
    yield from check_same(
        "the maximum number of features is", most, size, size <= most if case.chooses else None
    )
    yield from check_same("the maximum cost is", learner.max_cost, proof.get("max_cost"))


def _with_default(ridge: float, default: float) -> str:
    same = math.isclose(ridge, default, rel_tol=REFIT_TOLERANCE)
    return f"{ridge:.4g} (the default)" if same else f"{ridge:.4g} (the default is {default:.4g})"


def _allowed(search: SubsetSearch, size: int, w: FloatArray) -> Iterator[Finding]:
    """Check that the set of the model is one of those that the proof covers."""
    allowed, region, used = search.allowed(size), search.everything, w != 0
    if not allowed.is_feasible(region):
        yield False, "no set of features satisfies the limits"
        return
    if not (region.inside | region.free)[used].all():
        yield False, "the model uses a feature that the limits exclude"
        return
    chosen = region.with_features(used)
    n = int(np.count_nonzero(used))
    yield allowed.slots(chosen) >= 0, f"{n} of at most {size} features"
    if (costs := allowed.budget.costs) is not None:
        yield allowed.remaining_cost(chosen) >= 0, f"cost {costs.of(np.flatnonzero(used)):g}"


def check_scorecard(case: Case) -> Verdict:
    """Check the objective of the card and its gap to the best real-valued weights of the same features."""
    proof, model = case.model.certificate, case.model
    case.need("query_weight")
    if model.card is None:
        raise NotChecked("the file has no card")
    _check_entries(proof, "scorecard")
    preparation = model.preparation
    if model.has_curves:
        data, weight = case.prepared_data("auto", "auto", curves=True)
    else:
        data, weight = case.prepared_data(preparation.normalisation.kind, preparation.missing.policy)
    with not_checked_if_damaged("the problem cannot be rebuilt"), single_threaded_blas():
        scales, signs, ridge = model.parameters["ridge_scales"], model.parameters["signs"], proof["ridge"]
        columns, scale = columns_of(list(scales), data), np.array(list(scales.values()), dtype=np.float64)
        bound = np.array([float(signs.get(name, 0.0)) for name in scales])
        values = data.replace_features(dense_block(data.X, slice(None), columns) / scale, list(scales))
        objective = make_objective(values, stated_loss(model.parameters), weight)
        w = proof["scale"] * case.weights_on(data)[columns] * scale
        limited = bound if bound.any() else None
        recomputed = recompute(Problem(objective, ElasticNet(ridge, signs=limited, l1_ratio=0.0)), w)
        best = fit_set(objective, range(len(scale)), w, ridge, limited, REAL_WEIGHTS_TOL)
        default = ForwardSearch(objective, objective.varies).ridge
    findings = [
        *_consistent(proof), *_at_weights(recomputed, {"objective": proof["objective"]}), *_check_card(case),
    ]  # fmt: skip
    if not recomputed.objective < objective.at_zero.value:
        findings.append((False, "the card ranks the training data no better than a model without features"))
    gap = recomputed.objective - (best.objective - best.gap)
    good = gap <= proof["gap"] + recomputed.slack + 2.0 * REAL_WEIGHTS_TOL * recomputed.objective
    problem = f"ridge {_with_default(ridge, default)} on weights {_scale_text(data, weight, columns, scale)}"
    text = f"the gap to real-valued weights is {difference_text(gap, proof['gap'])}"
    if good:
        distance = f"at most {max(gap, 0.0):.2g} above the best real-valued weights"
        text = f"{distance} of {short_list(list(scales), MAX_SHOWN_NAMES)} ({problem})"
    return make_verdict("scorecard", [*findings, (good, text)])


def _check_card(case: Case) -> Iterator[Finding]:
    """Check that file and card agree, and that the card is valid."""
    model, card = case.model, case.model.card
    assert card is not None
    parameters = model.parameters
    yield from check_same("the method is", METHOD, model.method)
    for name in parameters:
        if name not in CARD_PARAMETERS:
            yield False, f"a scorecard has no parameter {name!r}"
    if (
        model.preparation.missing.policy == "keep"
        and not model.has_curves
        and str(parameters.get("model")).lower() in ranker_classes()
    ):
        yield False, f"models of {parameters['model']} do not keep missing values"
    if not case.model.certificate["scale"] > 0:
        yield False, f"the scale is {case.model.certificate['scale']:g}; expected a number greater than 0"
    uncovered = [name for name in card.points if name not in parameters["ridge_scales"]]
    if uncovered:
        yield False, f"the proof does not cover {', '.join(uncovered)} of the card"
    yield from check_same("the levels of the card are", card.levels, parameters.get("levels"))
    for name, unit in (parameters.get("units") or {}).items():
        yield from check_same(f"the unit of {name} is", card.units.get(name, unit), unit)


def _scale_text(data: Dataset, weight: FloatArray, columns: Any, scale: FloatArray) -> str:
    """Text about the scales on which the ridge of a card acts."""
    if np.all(scale == 1.0):
        return "of the unscaled features"
    part = data.replace_features(
        dense_block(data.X, slice(None), columns), [data.feature_names[j] for j in columns]
    )
    for kind in LEARNED_SCALES:
        if np.allclose(learn_normalisation(part, kind, weight).scale, scale, rtol=REFIT_TOLERANCE, atol=0.0):
            return f"normalised by {kind}"
    return f"scaled by factors that are only in the file, {scale.min():.4g} to {scale.max():.4g}"


PROOFS: dict[str, Callable[[Case], Verdict]] = {
    WEIGHTS: check_weights,
    "subset": check_subset,
    "scorecard": check_scorecard,
}


# --- Metrics and budget ---


def check_metrics(case: Case) -> Iterator[Verdict]:
    """Check the cost by the costs in the file, the other metrics by a new fit; none may be missing."""
    stated = case.model.metrics
    for name, value in stated.items():
        try:
            yield _check_cost(case, value) if name == COST else _check_metric(case, name, value)
        except NotChecked as reason:
            yield reason.verdict(name)
    if case.model.card is None:
        if COST not in stated and case.model.parameters.get("feature_costs") is not None:
            yield Verdict(COST, False, "the file has feature costs but states no cost")
        if not any(name != COST for name in stated) and _chooses(case):
            yield Verdict(
                "held-out metric", False, "the file does not state the metric by which the model was chosen"
            )
    elif "valid" in case.model.data and not stated:
        yield Verdict("held-out metric", False, "the file names validation data but states no metric on them")


def _chooses(case: Case) -> bool:
    try:
        return case.chooses
    except NotChecked:
        return False


def _check_cost(case: Case, stated: float) -> Verdict:
    cost = _cost(case.model)
    if cost is None:
        raise NotChecked("the file does not contain the costs of its features")
    return _metric_verdict(
        COST,
        cost,
        stated,
        math.isclose(cost, stated, rel_tol=REFIT_TOLERANCE),
        "by the feature costs in the file:",
    )


def _check_metric(case: Case, name: str, stated: float) -> Verdict:
    if case.model.card is not None:
        return _check_card_metric(case, name, stated)
    metrics = case.refitted.metrics
    if name not in metrics:
        raise NotChecked("a fit of this release does not measure it")
    weights = "same" if case.same_weights else "different"
    same = abs(metrics[name] - stated) <= REFIT_TOLERANCE
    return _metric_verdict(name, metrics[name], stated, same, f"refit: {weights} weights, {name}")


def _metric_verdict(claim: str, value: float, stated: float, same: bool, prefix: str) -> Verdict:
    text = difference_text(value, stated) if not same else f"{value:g}" if claim == COST else f"{value:.4f}"
    return Verdict(claim, same, f"{prefix} {text}")


def _check_card_metric(case: Case, name: str, stated: float) -> Verdict:
    """Check the metric of a card on the validation data, without a refit."""
    case.need("valid")
    match = re.fullmatch(r"held-out (\S+) \((\w+)(?:, ties (\w+))?\)", name)
    if case.valid is None or match is None:
        raise NotChecked("the file does not state the data or the conventions of this metric")
    metric, profile, ties = match.groups()
    with not_checked_if_damaged("the metric cannot be computed"):
        scores = case.model.predict(case.valid)
        conventions = as_profile(profile).with_ties(None if ties is None else as_ties(ties))
        mean = float(evaluate_quietly(scores, case.valid, metric, conventions).mean[metric])
    return _metric_verdict(
        name, mean, stated, abs(mean - stated) <= REFIT_TOLERANCE, "on the validation data"
    )


def check_budget(case: Case) -> Iterator[Verdict]:
    """Check the limits in the parameters."""
    try:
        limited = is_from_grid(case.model) or ranker_class(case.model.method)().can("budget")
    except NotChecked:
        limited = True
    if not limited:  # parameters of the same names may have another meaning there
        return
    try:
        with not_checked_if_damaged("the limits cannot be read"):
            findings = [*_limits(case.model, case.data.feature_names)]
    except NotChecked as reason:
        yield reason.verdict("budget")
        return
    if findings:
        yield make_verdict("budget", findings)


def _limits(model: LinearModel, data_names: Sequence[str]) -> Iterator[Finding]:
    """Findings for each limit; a name that is one of ``data_names`` is not a pattern."""
    limits = {name: value for name, value in model.parameters.items() if value not in (None, [], {})}
    if "max_features" in limits:
        n, maximum = len(model.terms), limits["max_features"]
        yield n <= maximum, f"{n} of at most {maximum} features"
    if "max_cost" in limits:
        cost, limit = _cost(model), float(limits["max_cost"])
        if cost is None:
            yield False, f"the file does not contain the costs of its features, at most {limit:g} in total"
        else:
            yield cost <= limit * (1.0 + COST_ROUNDING), f"cost {cost:g} of at most {limit:g}"
    if "must_not" in limits:
        required = _names_of(limits.get("must_have", []), model)
        used = _used_features(_names_of(limits["must_not"], model), model, data_names) - required
        yield not used, f"uses {', '.join(sorted(used))} of must_not" if used else "no feature of must_not"
    if "signs" in limits:
        signs = named_signs(limits["signs"], data_names)
        wrong = [term.name for term in model.terms if _has_sign(term, -float(signs.get(term.name, 0)))]
        yield not wrong, f"wrong signs: {', '.join(wrong)}" if wrong else "signs as required"


def _has_sign(term: Term, sign: float) -> bool:
    """Whether the weight, or a step of the curve, has this sign."""
    slopes = term.weight if term.curve is None else term.weight * term.curve.steps
    return bool(np.any(slopes * sign > 0))


def _cost(model: LinearModel) -> float | None:
    """Cost of the features in use, from the feature costs in the file; None if one is missing."""
    try:
        return make_costs(model.parameters["feature_costs"]).of(model.names)
    except DAMAGE_ERRORS:
        return None


def _names_of(features: Any, model: LinearModel) -> set[str]:
    """Names of features; those that the file gives by column are named if the model uses them."""
    entries = features if isinstance(features, list) else [features]
    return {one if isinstance(one, str) else _names_of_columns(model).get(one, "") for one in entries}


def _used_features(names: set[str], model: LinearModel, data_names: Sequence[str]) -> set[str]:
    """Features in use that are named or match a pattern."""
    used = _names_of_columns(model).values()
    matches = [name for one in names if is_pattern(one, data_names) for name in matching(one, used)]
    return names.intersection(model.names).union(matches)


def _names_of_columns(model: LinearModel) -> dict[int, str]:
    indicators = model.preparation.missing.indicators
    return {term.index: term.name for term in model.terms if term.name not in indicators}
