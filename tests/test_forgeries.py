"""Forged model files: every claim of every kind of file is changed, deleted or damaged, and must be detected.

The honest file of each kind is fitted once, and passes. A forgery is detected if the file is refused or
``holds`` is false; any other error fails the test.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ranksieve as rs
from ranksieve.data.budget import Budget
from ranksieve.data.dataset import fingerprint
from ranksieve.losses import SquaredHinge
from ranksieve.model.linear import model_from_dict
from ranksieve.objective import make_objective
from ranksieve.subset import SubsetSearch
from ranksieve.verification import Verification, case
from ranksieve.verification.case import statement
from tests.conftest import ROOT
from tests.subset_checker import check
from tests.tiers import tiered

DELETED = object()
ALL = rs.make_ranking(n_queries=26, n_features=8, n_informative=3, docs_per_query=(5, 9), random_state=3)
TRAIN, VALID = ALL.select_queries(range(16)), ALL.select_queries(range(16, 26))
PRICES = {name: 1.0 + k % 3 for k, name in enumerate(TRAIN.feature_names)}
QUERY_WEIGHT = np.linspace(0.5, 2.0, TRAIN.n_queries)
QUICK = {"n_alphas": 4, "cv": 2, "profile": "standard", "metric": "ndcg@5"}


@cache
def with_holes() -> rs.Dataset:
    X = TRAIN.X.copy()
    X[::3, 0] = X[1::4, 3] = np.nan
    return TRAIN.replace_features(X)


@cache
def weighed() -> rs.Dataset:
    weight = 1.0 + np.arange(TRAIN.n_docs) % 3
    return rs.Dataset(TRAIN.X, TRAIN.y, TRAIN.qid, document_weight=weight)


@pytest.fixture(autouse=True)
def fits_are_remembered(monkeypatch):
    """Cache fits with the same parameters, which are bit-identical."""
    chooser_of = case.chooser_of
    fits: dict[tuple[str, int], Any] = {}

    def chooser(model: rs.LinearModel) -> Any:
        ranker = chooser_of(model)
        parameters = repr((type(ranker), ranker.get_params(deep=False)))

        def fit(data: rs.Dataset, **arguments: Any) -> Any:
            key = f"{parameters} {sorted(arguments)}", id(data)
            if key not in fits:
                fits[key] = ranker.fit(data, **arguments)
            return fits[key]

        return SimpleNamespace(can=ranker.can, fit=fit)

    monkeypatch.setattr(case, "chooser_of", chooser)


@dataclass(frozen=True)
class Kind:
    """Function that fits an honest model, and the data and arguments to verify it with."""

    fit: Callable[[], rs.LinearModel]
    data: Callable[[], rs.Dataset] = lambda: TRAIN
    arguments: dict[str, Any] = field(default_factory=dict)


def card() -> rs.LinearModel:
    """A card as the command line writes it, with its metric on validation data."""
    scorecard = rs.make_scorecard(
        rs.BestSubset(3, normalise="z").fit(TRAIN).to_model(), TRAIN, units={"f2": 0.5}
    )
    mean = rs.evaluate(scorecard.predict(VALID), VALID, "ndcg@5", "standard").mean["ndcg@5"]
    metrics = {"held-out ndcg@5 (standard)": mean}
    return replace(scorecard, metrics=metrics, data={**scorecard.data, "valid": fingerprint(VALID)})


def sparse(**parameters: Any) -> Callable[[], rs.LinearModel]:
    return lambda: rs.SparseRanker(**QUICK | parameters).fit(TRAIN).to_model()


LIMITS = {"must_have": ["f2"], "must_not": ["f8"], "signs": {"f1": "+"}}
KINDS = {
    "l1": Kind(lambda: rs.SparseRankSVM("l1", 0.05).fit(TRAIN).to_model()),
    "l1 with weights": Kind(
        lambda: rs.SparseRankSVM("l1", 0.05, l1_weights=[1, 2, 0.5, 1, 1, 3, 1, 1]).fit(TRAIN).to_model()
    ),
    "concave": Kind(lambda: rs.SparseRankSVM("log", 0.02, tol=1e-3).fit(TRAIN).to_model()),
    "ridge": Kind(lambda: rs.RankSVM(10.0, normalise="z").fit(TRAIN).to_model()),
    "fenchelrank": Kind(lambda: rs.FenchelRank().fit(TRAIN).to_model()),
    "selector": Kind(lambda: rs.baselines.GAS(max_features=3).fit(TRAIN).to_model()),
    "set": Kind(lambda: rs.BestSubset(3).fit(TRAIN).to_model()),
    "set, not proven": Kind(lambda: rs.BestSubset(3, ridge=1e-4, max_nodes=1).fit(TRAIN).to_model()),
    "set within limits": Kind(lambda: rs.BestSubset(3, **LIMITS).fit(TRAIN).to_model()),
    "set within a cost": Kind(
        lambda: rs.BestSubset(3, feature_costs=PRICES, max_cost=5.0).fit(TRAIN).to_model()
    ),
    "chosen": Kind(sparse(families=["l1"])),
    "chosen, log": Kind(sparse(families=["log"], max_features=4)),
    "chosen, forward": Kind(sparse(families=["forward"], max_features=3, normalise="within_z")),
    "chosen set": Kind(sparse(families=["subset"], max_features=2)),
    "chosen within limits": Kind(
        lambda: (
            rs.SparseRanker(
                **QUICK, **LIMITS, families=["l1"], feature_costs=PRICES, max_cost=8.0, max_features=5
            )
            .fit(TRAIN, valid=VALID)
            .to_model()
        ),
        arguments={"valid": VALID},
    ),
    "chosen, missing values": Kind(
        lambda: (
            rs.SparseRanker(**QUICK, families=["l1"], missing="indicator", normalise="z")
            .fit(with_holes())
            .to_model()
        ),
        with_holes,
    ),
    "budgeted": Kind(
        lambda: rs.GridRanker("ranksvm-l1", 3, profile="standard").fit(TRAIN, valid=VALID).to_model(),
        arguments={"valid": VALID},
    ),
    "weighed": Kind(
        lambda: (
            rs.SparseRanker(**QUICK, families=["forward"], max_features=3)
            .fit(weighed(), query_weight=QUERY_WEIGHT)
            .to_model()
        ),
        weighed,
        {"query_weight": QUERY_WEIGHT},
    ),
    "weighed set": Kind(
        lambda: rs.BestSubset(2).fit(weighed(), query_weight=QUERY_WEIGHT).to_model(),
        weighed,
        {"query_weight": QUERY_WEIGHT},
    ),
    "scorecard": Kind(card, arguments={"valid": VALID}),
}

QUICK_KINDS = {"l1", "concave", "fenchelrank", "set within limits", "chosen within limits", "scorecard"}


@cache
def honest(kind: str) -> str:
    """The file of an honest model."""
    return json.dumps(KINDS[kind].fit().to_dict())


def verified(kind: str, content: Any, **options: Any) -> Verification:
    return rs.verify(model_from_dict(content), KINDS[kind].data(), **KINDS[kind].arguments, **options)


def is_detected(kind: str, content: Any) -> bool:
    try:
        return not verified(kind, content).holds
    except ValueError:
        return True


# --- Changes of single fields ----------------------------------------------------------------------------

CLAIMED = (
    "terms", "n_features", "intercept", "normalisation", "missing", "method", "certificate", "metrics",
    "data", "chosen_by", "card",
)  # fmt: skip
NOT_CLAIMED = {
    ("scorecard", "chosen_by", "metric"),  # of the model of the card: reported, not verified
    ("scorecard", "chosen_by", "profile"),
    ("scorecard", "chosen_by", "ties"),
}
Path = tuple[Any, ...]


def fields(content: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all entries of objects, and of the first entry of lists."""
    inner = content.items() if isinstance(content, dict) else list(enumerate(content))[:1]
    for name, value in inner:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from fields(value, (*path, name))


def changes(value: Any) -> dict[str, Any]:
    """Replacements of a value: near, far, another type, not finite, deleted."""
    if isinstance(value, str):
        return {"longer": f"{value}x", "empty": "", "number": 3, "none": None, "deleted": DELETED}
    if isinstance(value, list | dict):
        return {"empty": type(value)(), "number": 1.0, "none": None, "deleted": DELETED}
    near = value + 1 if isinstance(value, int) else value * 1.01 + 1e-3 * (value == 0)
    return {
        "near": near, "negative": -1.5 * value - 1.0, "zero": 0.0, "far": 1e300, "nan": math.nan,
        "infinite": math.inf, "none": None, "text": "1", "deleted": DELETED,
    }  # fmt: skip


def changed(content: Any, path: Path, value: Any) -> Any:
    new = copy.deepcopy(content)
    place = new
    for name in path[:-1]:
        place = place[name]
    if value is DELETED:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return new


def at(content: Any, path: Path) -> Any:
    for name in path:
        content = content[name]
    return content


def field_forgeries(kind: str) -> Iterator[tuple[str, Any]]:
    content = json.loads(honest(kind))
    for path in fields({name: content[name] for name in CLAIMED if content.get(name)}):
        if path[:3] == ("certificate", "proof", 0) or (kind, *path) in NOT_CLAIMED:
            continue
        old = at(content, path)
        for how, value in changes(old).items():
            if value is DELETED or value != old:
                yield f"{'.'.join(map(str, path))} {how}", changed(content, path, value)


@pytest.mark.parametrize("kind", tiered(KINDS, QUICK_KINDS))
def test_honest_files_pass(kind):
    verification = verified(kind, json.loads(honest(kind)))
    assert verification.holds, verification
    assert {one.holds for one in verification.verdicts} == {True}


@pytest.mark.parametrize("kind", tiered(KINDS, QUICK_KINDS))
def test_changes_of_any_field_are_detected(kind):
    missed = [label for label, content in field_forgeries(kind) if not is_detected(kind, content)]
    assert missed == []


# --- Forgeries by someone who knows the format -----------------------------------------------------------

Forge = Callable[[Any], Any]


def update(*path: Any, **entries: Any) -> Forge:
    """Change some entries of an object in the file."""

    def forge(content: Any) -> None:
        place = at(content, path)
        for name, value in entries.items():
            if value is DELETED:
                place.pop(name, None)
            else:
                place[name] = value

    return forge


def together(*steps: Forge) -> Forge:
    def forge(content: Any) -> None:
        for step in steps:
            step(content)

    return forge


def scaled(factor: float) -> Forge:
    def forge(content: Any) -> None:
        for term in content["terms"]:
            term["weight"] *= factor

    return forge


def swapped(name: str) -> Forge:
    """Swap an entry of the first two terms; a model with one term gets another name or column."""

    def forge(content: Any) -> None:
        first, *others = content["terms"]
        if others:
            first[name], others[0][name] = others[0][name], first[name]
        else:
            first[name] = {"name": "f6", "index": 5, "weight": 2.0 * first["weight"]}[name]

    return forge


def no_gap_left(content: Any) -> None:
    proof = content["certificate"]
    changes = {"gap": 0.0, "relative_gap": 0.0, "bound": proof["objective"], "gap_of_last_round": 0.0}
    proof.update({name: value for name, value in changes.items() if name in proof})


def below_zero(content: Any) -> None:
    proof = content["certificate"]
    proof.update(gap=-proof["objective"], relative_gap=-1.0)
    if "bound" in proof:
        proof["bound"] = 2.0 * proof["objective"]


def certificate_of(kind: str) -> Forge:
    return lambda content: content.update(certificate=json.loads(honest(kind))["certificate"])


def less_and_other_weights(content: Any) -> None:
    """Other weights in a file without metrics, of an older release that records fewer claims."""
    scaled(0.5)(content)
    content.update(metrics={}, version="0.0.1", chosen_by=None)
    for name in ("family", "weights", "features"):
        content["certificate"].pop(name, None)


ANY: dict[str, Forge] = {
    "first term dropped": lambda c: c["terms"].pop(0),
    "first term twice": lambda c: c["terms"].append(dict(c["terms"][0])),
    "two weights swapped": swapped("weight"),
    "two names swapped": swapped("name"),
    "two columns swapped": swapped("index"),
    "all weights reversed": scaled(-1.0),
    "all weights doubled": scaled(2.0),
    "all weights tiny": scaled(1e-9),
    "all weights huge": scaled(1e200),
    "another entry of the certificate": update("certificate", optimal=1.0),
    "another metric": update("metrics", **{"held-out ndcg@10 (letor)": 0.999}),
    "a cost of nothing": update("metrics", cost=0.0),
    "other data": update("data", other="0" * 16),
    "fitted on other data": update("data", train="0" * 16),
    "a gap below 0": below_zero,
    "an unknown kind": update("certificate", kind="certainty"),
    "the kind of weights by name": update("certificate", kind="weights"),
    "the kind of a set": update("certificate", kind="subset"),
    "the kind of a card": update("certificate", kind="scorecard"),
    "no certificate, no metrics": update(certificate={}, metrics={}),
    "no parameters": update(parameters={}, certificate={}),
    "another method": update(method="ListNet"),
    "a method that is not linear": update(method="LambdaMART"),
    "a parameter that there is not": update("parameters", certainty=1.0),
    "fitted on a GPU, elsewhere": together(scaled(1.001), update("parameters", device="cuda")),
    "begun elsewhere": together(scaled(0.9), update("parameters", warm_start=True)),
    "less is stated, other weights": less_and_other_weights,
    "chosen by another metric": update(chosen_by={"metric": "map", "profile": "standard", "ties": "mean"}),
    "chosen by another profile": update(chosen_by={"metric": "ndcg@5", "profile": "letor", "ties": "mean"}),
    "chosen by other ties": update(chosen_by={"metric": "ndcg@5", "profile": "standard", "ties": "order"}),
    "missing values filled by 7": lambda c: c.update(
        missing={
            "policy": "column_mean",
            "features": [term["name"] for term in c["terms"]],
            "means": [7.0] * len(c["terms"]),
        }
    ),
    "normalised by 7": lambda c: c.update(
        normalisation={
            "kind": "z",
            "features": [term["name"] for term in c["terms"]],
            "centre": [0.0] * len(c["terms"]),
            "scale": [7.0] * len(c["terms"]),
        }
    ),
    "normalised within queries": update(
        normalisation={"kind": "query_z", "features": [], "centre": [], "scale": []}
    ),
    "the certificate of ℓ1": certificate_of("l1"),
    "the certificate of a ridge": certificate_of("ridge"),
    "the certificate of a set": certificate_of("set"),
    "the certificate of a card": certificate_of("scorecard"),
    "the certificate of a chosen model": certificate_of("chosen"),
}

WRONG_PROOFS = {
    "no region": [],
    "no weights": ["- - -"],
    "not a number": ["- - - 0:nan"],
    "infinite": ["- - - 0:inf"],
    "minus infinity": ["- - - 0:-inf 1:inf"],
    "overflow": ["- - - 0:1e155 1:-1e155"],
    "overflow of one": ["- - - 0:1e308"],
    "overflow of the gradient": ["- - - 0:1e200"],
    "nearly overflow": ["- - - 0:1e150"],
    "not a number below the root": ["0 1 2", "- - - 0:nan", "- - - 1:nan"],
    "its own child": ["0 0 0"],
    "one child twice": ["0 1 1", "- - -"],
    "children that are not there": ["0 5 6"],
    "a child before the first": ["0 -1 -1"],
    "a feature that is not there": ["99 1 2", "- - -", "- - -"],
    "a feature before the first": ["-3 1 2", "- - -", "- - -"],
    "a weight of a feature that is not there": ["- - - 99:1.0"],
    "text": ["zzz"],
    "two words": ["1 2"],
    "an empty line": [""],
    "not lines": [1],
    "one text": "- - -",
}


@cache
def wrong_set() -> str:
    """The file of a bad set with the claim that it is the best one."""
    best = set(rs.BestSubset(3).fit(TRAIN).to_model().names)
    worse = [name for name in TRAIN.feature_names if name not in best][:3]
    others = [name for name in TRAIN.feature_names if name not in worse]
    ridge = rs.BestSubset(3).fit(TRAIN).ridge_
    model = rs.BestSubset(3, must_have=worse, must_not=others, ridge=ridge).fit(TRAIN).to_model()
    content = json.loads(json.dumps(model.to_dict()))
    content["parameters"].update(must_have=[], must_not=[], ridge=None)
    no_gap_left(content)
    return json.dumps(content)


def unused_features(content: Any) -> list[str]:
    used = {term["name"] for term in content["terms"]}
    return [name for name in TRAIN.feature_names if name not in used]


OF_SETS: dict[str, Forge] = {
    **{f"proof: {name}": update("certificate", proof=lines) for name, lines in WRONG_PROOFS.items()},
    "more must be had than may be": lambda c: c["parameters"].update(must_have=unused_features(c)[:4]),
    "more must be had, no weights in the proof": lambda c: (
        c["parameters"].update(must_have=unused_features(c)[:4]),
        c["certificate"].update(proof=["- - -"]),
    ),
    "none may be used": update("parameters", must_not=list(TRAIN.feature_names)),
    "none may cost anything": update("parameters", feature_costs=PRICES, max_cost=0.0),
    "no place": together(update("certificate", max_features=0), update("parameters", max_features=0)),
    "places below 0": update("certificate", max_features=-1),
    "half a place": update("certificate", max_features=2.5),
    "any number of places": update("certificate", max_features=8),
    "a limit that the parameters lack": update("certificate", max_cost=0.5),
    "a ridge of nothing": update("certificate", ridge=0.0),
    "a ridge below 0": update("certificate", ridge=-1.0),
    "a huge ridge": update("certificate", ridge=1e6),
    "signs that it does not have": lambda c: c["parameters"].update(
        signs={term["name"]: -math.copysign(1.0, term["weight"]) for term in c["terms"]}
    ),
}


def with_true_metrics(content: Any) -> None:
    """The true metrics of the forged card."""
    scores = model_from_dict(content).predict(VALID)
    mean = rs.evaluate(scores, VALID, "ndcg@5", "standard").mean["ndcg@5"]
    content["metrics"] = {"held-out ndcg@5 (standard)": mean}


def reversed_points(content: Any) -> None:
    """Negate all points except the first, with a valid proof for the first one only."""
    first, *others = content["card"]["points"]
    model = model_from_dict(content)
    alone = replace(
        model,
        card=None,
        terms=tuple(term for term in model.terms if term.name == first),
        preparation=model.preparation.of([first]),
    )
    of_one = rs.make_scorecard(alone, TRAIN)
    for name in others:
        content["card"]["points"][name] *= -1
    for term in content["terms"]:
        term["weight"] *= -1 if term["name"] in others else 1
    content["parameters"]["ridge_scales"] = dict(of_one.parameters["ridge_scales"])
    scale = of_one.certificate["scale"] * of_one.weights[0] / alone.weights[0]
    content["certificate"] = dict(of_one.certificate, scale=float(scale))
    with_true_metrics(content)


def reversed_card(content: Any) -> None:
    content["card"]["points"] = {name: -points for name, points in content["card"]["points"].items()}
    scaled(-1.0)(content)


def objective_of_card(ridge: float, scale: float) -> Forge:
    """The true objective for another ridge and scale, with a gap near 0."""

    def forge(content: Any) -> None:
        scales = content["parameters"]["ridge_scales"]
        w = scale * np.array(
            [
                next((t["weight"] for t in content["terms"] if t["name"] == n), 0.0) * s
                for n, s in scales.items()
            ]
        )
        columns = [TRAIN.feature_names.index(name) for name in scales]
        values = TRAIN.replace_features(TRAIN.X[:, columns] / np.array(list(scales.values())), list(scales))
        value = make_objective(values).evaluate(w).value + 0.5 * ridge * float(w @ w)
        content["certificate"].update(
            objective=value, gap=1e-6 * value, relative_gap=1e-6, ridge=ridge, scale=scale
        )

    return forge


OF_CARDS: dict[str, Forge] = {
    "points reversed, and the proof about one": reversed_points,
    "all points reversed": together(reversed_card, with_true_metrics),
    "all points reversed, the scale too": together(
        reversed_card,
        lambda c: c["certificate"].update(scale=-c["certificate"]["scale"]),
        with_true_metrics,
    ),
    "all points reversed, a huge ridge": together(
        reversed_card, objective_of_card(1e9, 1e-9), with_true_metrics
    ),
    "no gap left": no_gap_left,
    "a scale of nothing": objective_of_card(0.01, 0.0),
    "a huge ridge": update("certificate", ridge=1e9),
    "a ridge of nothing": update("certificate", ridge=0.0),
    "a ridge below 0": update("certificate", ridge=-1.0),
    "no scales": update("parameters", ridge_scales={}),
    "without scales": update("parameters", ridge_scales=DELETED),
    "a scale left out": lambda c: c["parameters"]["ridge_scales"].pop(c["terms"][0]["name"]),
    "a scale of 0": lambda c: c["parameters"]["ridge_scales"].update({c["terms"][0]["name"]: 0.0}),
    "a scale of text": lambda c: c["parameters"]["ridge_scales"].update({c["terms"][0]["name"]: "x"}),
    "huge scales": lambda c: c["parameters"]["ridge_scales"].update({c["terms"][0]["name"]: 1e300}),
    "without signs": update("parameters", signs=DELETED),
    "other signs": lambda c: c["parameters"].update(
        signs={term["name"]: -math.copysign(1.0, term["weight"]) for term in c["terms"]}
    ),
    "signs of text": lambda c: c["parameters"].update(signs={c["terms"][0]["name"]: "x"}),
    "other levels": update("parameters", levels=5),
    "other levels of the card": update("card", levels=50),
    "other units asked for": update("parameters", units={"f2": 3.0}),
    "no card": update(card=DELETED),
    "a normalisation": update(normalisation={"kind": "query_z", "features": [], "centre": [], "scale": []}),
}


def fewer_or_other_parameters(content: Any) -> dict[str, Forge]:
    """Parameters of another problem, or limits that the model violates."""
    term = content["terms"][0]
    other_sign = {term["name"]: -math.copysign(1.0, term["weight"])}
    forgeries: dict[str, Forge] = {
        "must_not": update("parameters", must_not=[term["name"]]),
        "must_not by pattern": update("parameters", must_not=["f*"]),
        "signs": update("parameters", signs=other_sign),
        "max_features": update("parameters", max_features=len(content["terms"]) - 1 or "few"),
        "max_cost": update("parameters", feature_costs={"*": 1.0}, max_cost=0.5),
        "max_cost without prices": update("parameters", feature_costs=None, max_cost=1.0),
        "cheaper prices": update("parameters", feature_costs={"*": 1e-3}),
    }
    return forgeries


def arbitrary_weights(content: Any) -> None:
    """Random weights, and ℓ1 weights that make them optimal."""
    rng = np.random.default_rng(0)
    w, alpha = rng.normal(size=8), 0.05
    objective = make_objective(TRAIN, SquaredHinge(pair_weighting=content["parameters"]["pair_weighting"]))
    point = objective.evaluate(w)
    v = np.abs(objective.gradient(point)) / alpha
    w = np.where(np.sign(objective.gradient(point)) * w < 0, w, 0.0)
    for _ in range(50):  # until signs and gradient agree
        g = objective.gradient(objective.evaluate(w))
        w, v = np.where(g * w < 0, w, 0.0), np.abs(g) / alpha
    value = objective.evaluate(w).value + alpha * float(v @ np.abs(w))
    names = TRAIN.feature_names
    content["terms"] = [
        {"name": names[j], "index": j, "weight": float(w[j])} for j in np.flatnonzero(w).tolist()
    ]
    content["certificate"] = {
        "objective": value, "gap": 1e-6 * value, "relative_gap": 1e-6, "family": "l1", "alpha": alpha,
        "weights": dict(zip(names, v.tolist(), strict=True)),
    }  # fmt: skip


OF_CHOSEN: dict[str, Forge] = {
    "arbitrary weights": arbitrary_weights,
    "arbitrary weights, nothing measured": together(arbitrary_weights, update(metrics={})),
    "arbitrary weights, no choice": together(arbitrary_weights, update(metrics={}, chosen_by=None)),
    "arbitrary weights, an own profile": together(
        arbitrary_weights, update(metrics={}), update("parameters", profile="Profile('mine')")
    ),
    "a metric under another name": lambda c: c.update(metrics={"held-out ndcg@5 (letor)": 0.999}),
    "training metric": lambda c: c.update(metrics={"training ndcg@5 (standard)": 0.999}),
    "validation data that were not": update("data", valid="0" * 16),
    "a model before that was not": update("data", previous="0" * 16),
    "another family": update("certificate", family="refitted"),
    "another strength": lambda c: c["certificate"].update(alpha=2.0 * c["certificate"].get("alpha", 1.0)),
    "fewer candidates": update("parameters", families=["refitted"]),
    "another seed of its folds": update("parameters", cv=3),
}


def special(kind: str) -> Iterator[tuple[str, Any]]:
    content = json.loads(honest(kind))
    forgeries = ANY | (fewer_or_other_parameters(content) if kind in ("set", "chosen") else {})
    if "card" in content:  # the selection of its model is reported, not verified
        forgeries = {label: forge for label, forge in forgeries.items() if not label.startswith("chosen by")}
    if "proof" in content["certificate"]:
        forgeries |= OF_SETS
    if "card" in content:
        forgeries |= OF_CARDS
    if kind == "chosen":
        forgeries |= OF_CHOSEN
    for label, forge in forgeries.items():
        new = copy.deepcopy(content)
        forge(new)
        if new != content:
            yield label, new
    if kind == "set":
        for label, forge in {"as it is": lambda c: None, **OF_SETS}.items():
            new = json.loads(wrong_set())
            forge(new)
            yield f"a wrong set: {label}", new


@pytest.mark.parametrize("kind", tiered(KINDS, QUICK_KINDS))
def test_forgeries_by_experts_are_detected(kind):
    missed = [label for label, content in special(kind) if not is_detected(kind, content)]
    assert missed == []


# --- Texts of verdicts -----------------------------------------------------------------------------------


def text_of_verdict(kind: str, claim: str) -> str:
    verdicts = verified(kind, json.loads(honest(kind))).verdicts
    return next(one.words for one in verdicts if one.claim == claim)


def test_l1_weights_are_printed():
    content = json.loads(honest("chosen"))
    arbitrary_weights(content)
    verification = verified("chosen", content, refit=False)
    assert next(one for one in verification.verdicts if one.claim == "weights").holds, "true of that problem"
    assert "ℓ1 weights f1 " in verification.problem
    content = json.loads(honest("l1 with weights"))
    assert statement(model_from_dict(content)).endswith("l1_weights = 1, 2, 0.5, 1, 1, 3, 1, 1.")
    content["parameters"]["l1_weights"].append("inf")
    assert statement(model_from_dict(content)).endswith("l1_weights = 9 numbers from 0.5 to inf.")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("ridge", "RankSVM; C = 10; normalise = z."),
        ("set within limits", "must_have = f2; must_not = f8; signs = f1 1"),
        ("set within a cost", "max_cost = 5"),
        ("set, not proven", "ridge = 0.0001"),
        ("scorecard", "Scorecard; model = BestSubset; levels = 9; units = f2 0.5"),
    ],
)
def test_the_problem_is_printed(kind, words):
    assert words in verified(kind, json.loads(honest(kind)), refit=False).problem


def test_a_ridge_is_printed_with_the_default_one():
    assert "ridge 0.0001 (the default is 0.00" in text_of_verdict("set, not proven", "subset")
    assert "(the default)" in text_of_verdict("set", "subset")
    text = text_of_verdict("scorecard", "scorecard")
    assert (
        "weights of f2, f5, f7 (ridge 0.005575 (the default is 0.006756) on weights normalised by z)" in text
    )


def test_the_selection_and_unverified_scales_of_a_card_are_printed():
    model = model_from_dict(json.loads(honest("chosen, forward")))
    verification = rs.verify(rs.make_scorecard(model, TRAIN), TRAIN)
    assert verification.holds, verification
    assert "its model was chosen by ndcg@5 (standard, ties mean)" in verification.problem
    assert "normalised by within_z" in verification.verdicts[1].words
    own = model.preparation.normalisation
    tripled = replace(own, scale=tuple(3.0 * scale for scale in own.scale))
    other = replace(model, preparation=replace(model.preparation, normalisation=tripled))
    verification = rs.verify(rs.make_scorecard(other, TRAIN), TRAIN)
    assert "scaled by factors that are only in the file" in verification.verdicts[1].words


def test_a_point_that_is_not_finite_has_trivial_bounds():
    objective = make_objective(TRAIN)
    search = SubsetSearch(objective, Budget(must_not=~objective.varies))
    relaxation, everything = search.relaxation(3), search.everything
    with np.errstate(all="ignore"):
        for entries in ({0: np.nan}, {0: np.inf}, {0: 1e155, 1: -1e155}, {0: 1e300}):
            w = np.zeros(8)
            w[list(entries)] = list(entries.values())
            bounds = relaxation.bounds(objective.evaluate(w), everything)
            assert bounds.least == 0.0
            assert not bounds.with_each.any()
            assert not bounds.without_each.any()


# --- The checker in the documentation --------------------------------------------------------------------


def test_the_checker_of_the_documentation_needs_numpy_alone():
    code = (ROOT / "tests" / "subset_checker.py").read_text(encoding="utf-8")
    assert re.findall(r"^(?:import|from) .*", code, re.M) == ["import numpy as np"]


def check_by_documentation(content: Any, data: rs.Dataset = TRAIN) -> tuple[float, float]:
    return check(content, data.X, data.y, data.qid, list(data.feature_names))


@pytest.mark.parametrize("kind", ["set", "set, not proven", "set within limits", "chosen set"])
def test_the_checker_of_the_documentation_accepts_honest_proofs(kind):
    content = json.loads(honest(kind))
    objective, bound = check_by_documentation(content)
    assert objective == pytest.approx(content["certificate"]["objective"], rel=1e-12)
    assert bound == pytest.approx(content["certificate"]["bound"], rel=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        {"normalise": "z"},
        {"normalise": "within_z", "must_not": [0, "f3"]},
        {"normalise": "min_max", "signs": {"f2": "-", "f5": "+"}, "ridge": 1e-3},
        {"must_have": ["f1", "f3"], "max_nodes": 3},
        {"pair_weighting": "sqrt"},
        {"pair_weighting": "queries", "normalise": "z"},
    ],
)
def test_the_checker_of_the_documentation_supports_scales_and_limits(parameters):
    data = TRAIN.replace_features(TRAIN.X * np.logspace(-1, 2, 8))
    model = rs.BestSubset(3, **parameters).fit(data).to_model()
    content = json.loads(json.dumps(model.to_dict()))
    assert rs.verify(model, data).holds
    assert check_by_documentation(content, data)[1] == pytest.approx(model.certificate["bound"], rel=1e-12)
    for raised in (1e-6, 1e-2):  # more than the tree proves
        proof = content["certificate"]
        bound = proof["bound"] * (1.0 + raised)
        forged = {**content, "certificate": {**proof, "bound": bound, "gap": proof["objective"] - bound}}
        with pytest.raises(ValueError, match=r"may hold a set below|no sound certificate"):
            check_by_documentation(forged, data)


@pytest.mark.parametrize("label", OF_SETS)
def test_the_checker_of_the_documentation_refuses_forged_proofs(label):
    for content in (json.loads(wrong_set()), json.loads(honest("set"))):
        OF_SETS[label](content)
        with pytest.raises(ValueError, match=r"."):
            check_by_documentation(content)


def test_the_checker_of_the_documentation_refuses_the_wrong_set_and_a_changed_file():
    with pytest.raises(ValueError, match="may hold a set below"):
        check_by_documentation(json.loads(wrong_set()))
    for path, value in (
        (("certificate", "bound"), 1.0),
        (("certificate", "gap"), -1.0),
        (("certificate", "gap"), math.nan),
        (("certificate", "objective"), 0.5),
        (("certificate", "ridge"), 1e6),
        (("certificate", "kind"), "weights"),
        (("terms", 0, "weight"), 7.0),
        (("terms", 0, "name"), "f99"),
        (("parameters", "must_not"), ["f*"]),
        (("parameters", "pair_weighting"), "pairs"),
        (("parameters", "pair_weighting"), "lists"),
        (("normalisation",), {"kind": "query_z"}),
        (("data", "query_weight"), "0" * 16),
        (("certificate", "max_cost"), 3.0),
    ):
        with pytest.raises(ValueError, match=r"."):
            check_by_documentation(changed(json.loads(honest("set")), path, value))
    with pytest.raises(ValueError, match="missing values"):
        check_by_documentation(json.loads(honest("set")), with_holes())
    with pytest.raises(ValueError, match="the objective is"):
        check_by_documentation(json.loads(honest("weighed set")) | {"data": {}}, weighed())
