"""What a model claims beside its proof: its data, what was measured, the budget that it keeps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranksieve.choice.budget import fits
from ranksieve.choice.update import short_name
from ranksieve.data.costs import make_costs
from ranksieve.data.dataset import Dataset, fingerprint, fingerprint_of_weights
from ranksieve.data.features import is_pattern, matching, named_signs
from ranksieve.metrics import evaluate
from ranksieve.model.linear import LinearModel
from ranksieve.rankers.within_budget import WithinBudget
from ranksieve.verification.case import (
    COST,
    DAMAGED,
    FIT,
    GIVEN,
    PARTS,
    Case,
    Finding,
    NotChecked,
    Verdict,
    differing,
    is_budgeted,
    judged,
    ranker_class,
    told_if_damaged,
)


def check_data(case: Case) -> Iterator[Verdict]:
    """The fingerprints of the data are those of the data given, and features have the columns stated."""
    if "train" not in case.model.data:
        yield Verdict(PARTS["train"], None, "the file does not say what the model was fitted on")
    given = {
        "train": case.data,
        "valid": case.valid,
        "query_weight": case.query_weight,
        "warm_start": case.warm_start,
    }
    for name, stated in case.model.data.items():
        claim, part = PARTS.get(name, name), given.get(name)
        if part is None:
            known = name in GIVEN
            words = f"give `{name}`" if known else "this release knows no such data"
            yield Verdict(claim, None if known else False, words)
            continue
        if isinstance(part, Dataset):
            found = fingerprint(part)
        elif isinstance(part, LinearModel):
            found = short_name(part)
        else:
            found = fingerprint_of_weights(part)
        words = f"fingerprint {found}" + ("" if found == stated else f", stated {stated}")
        findings = [(found == stated, words), *(_columns(case) if name == "train" else ())]
        yield judged(claim, findings)


def _columns(case: Case) -> Iterator[Finding]:
    place = {name: j for j, name in enumerate(case.data.feature_names)}
    about = case.model.preparation.missing.indicators
    for term in case.model.terms:
        column = place.get(about.get(term.name, term.name))
        if column != term.index:
            yield False, f"the column of {term.name} is {differing(column, term.index)}"


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
        if not case.measures and _chooses(case):
            yield Verdict(
                "held-out metric", False, "the file does not state the metric that it was chosen by"
            )
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
    same = math.isclose(found, stated, rel_tol=FIT)
    value = f"{found:g}" if same else differing(found, stated)
    return Verdict(COST, same, f"by the prices in the file {value}")


def _check_metric(case: Case, name: str, stated: float) -> Verdict:
    if case.model.card is not None:
        return _check_card_metric(case, name, stated)
    again = case.again.metrics
    if name not in again:
        raise NotChecked("a fit by this release measures no such thing")
    same = abs(again[name] - stated) <= FIT
    value = f"{again[name]:.4f}" if same else differing(again[name], stated)
    return Verdict(
        name, same, f"fitted again: {'same' if case.same_weights else 'other'} weights, {name} {value}"
    )


def _check_card_metric(case: Case, name: str, stated: float) -> Verdict:
    """A card is measured as it is, on validation data that had no part in it."""
    case.need("valid")
    written = re.fullmatch(r"held-out (\S+) \((\w+)\)", name)
    if case.valid is None or written is None:
        raise NotChecked("the file does not say on which data, or by which conventions, it was measured")
    metric, profile = written.groups()
    with told_if_damaged("it cannot be measured"):
        found = float(evaluate(case.model.predict(case.valid), case.valid, metric, profile).mean[metric])
    same = abs(found - stated) <= FIT
    return Verdict(
        name, same, f"on the validation data {f'{found:.4f}' if same else differing(found, stated)}"
    )


def check_budget(case: Case) -> Iterator[Verdict]:
    """The limits that were asked for are kept."""
    try:
        limited = is_budgeted(case.model) or issubclass(ranker_class(case.model.method), WithinBudget)
    except NotChecked:
        limited = True
    if not limited:  # parameters of the same names may mean something else there
        return
    try:
        with told_if_damaged("what was asked for cannot be read"):
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
            yield bool(fits(cost, limit)), f"cost {cost:g} of at most {limit:g}"
    if "must_not" in asked:
        by_name = _named(asked.get("must_have", []), model)
        used = _matched(_named(asked["must_not"], model), model, known) - by_name
        yield not used, f"uses {', '.join(sorted(used))} of must_not" if used else "none of must_not"
    if "signs" in asked:
        signs = _signs(asked["signs"], model, known)
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


def _signs(signs: Any, model: LinearModel, known: Sequence[str]) -> Mapping[str, Any]:
    """By the names of features; files of versions before 4 may hold one sign per column."""
    if not isinstance(signs, Mapping):
        return {name: signs[column] for column, name in _names_of_columns(model).items()}
    return named_signs(signs, known)


def _names_of_columns(model: LinearModel) -> dict[int, str]:
    about = model.preparation.missing.indicators
    return {term.index: term.name for term in model.terms if term.name not in about}
