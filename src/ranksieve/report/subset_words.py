"""What is proven of a set of features, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ranksieve.data.features import SIGNS
from ranksieve.report.words import counted, listed, percent

ROUNDING = 1e-8  # a relative gap below this is one of rounding
FOLD_SETS = (
    "In cross-validation the sets of each fold come from forward selection with swaps, not from the search "
    "that proves."
)


def asked_limits(parameters: Mapping[str, Any]) -> list[str]:
    """What the parameters demand of a set and its weights, as verbs with their objects."""
    must_have, must_not = (_names(parameters.get(name)) for name in ("must_have", "must_not"))
    weights, signs = parameters.get("weights"), parameters.get("signs") or {}
    if isinstance(weights, list):
        must_not += [_name(j) for j, weight in enumerate(weights) if weight == repr(math.inf)]
    by_feature = signs if isinstance(signs, Mapping) else dict(enumerate(signs))
    kept = [f"{_name(feature)} {_side(sign)}" for feature, sign in by_feature.items() if sign]
    return [
        *([f"holds {listed(must_have)}"] if must_have else []),
        *([f"lacks {listed(must_not)}"] if must_not else []),
        *([f"has the weights {listed(kept)}"] if kept else []),
    ]


def _names(features: Any) -> list[str]:
    given = features if isinstance(features, list | tuple) else [features]
    return [_name(one) for one in given if one not in (None, "")]


def _name(feature: Any) -> str:
    return feature if isinstance(feature, str) else f"column {feature} (from 0)"


def _side(sign: Any) -> str:
    number = SIGNS.get(sign, sign)
    return f"{'≥' if number > 0 else '≤'} 0" if isinstance(number, int | float) else f"of sign {sign}"


def limits_text(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The sets that a proof is about."""
    among = counted(certificate["n_features"], "feature")
    cost = [f"costs at most {certificate['max_cost']:g}"] if "max_cost" in certificate else []
    limits = [*cost, *asked_limits(parameters)]
    return f"set of at most {certificate['max_features']} of the {among}{that(limits)}"


def that(limits: Sequence[str]) -> str:
    """Limits as a clause; empty if there are none."""
    return f" that {listed(limits)}" if limits else ""


def subset_sentence(certificate: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """How much better another set can be, among those that the parameters allow."""
    others = limits_text(certificate, parameters)
    if certificate["relative_gap"] <= ROUNDING:
        return f"Proven best: no other {others} has a lower training objective."
    return (
        f"No other {others} has a training objective more than {percent(certificate['relative_gap'])} lower."
    )


def screening_sentences(size: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
    """Which features no better set uses, and which every better set uses; none if the set is proven best."""
    better = "better set within these limits" if asked_limits(parameters) else "better set"
    if size["relative_gap"] <= ROUNDING:
        return []
    sentences = []
    if size["never"]:
        verb = "is" if len(size["never"]) == 1 else "are"
        sentences.append(
            f"{counted(len(size['never']), 'feature')} {verb} provably in no {better}: "
            f"{listed(size['never'], 12)}."
        )
    if size["always"]:
        verb = "is" if len(size["always"]) == 1 else "are"
        sentences.append(
            f"{counted(len(size['always']), 'feature')} {verb} provably in every {better}: "
            f"{listed(size['always'], 12)}."
        )
    return sentences


def tie_sentences(size: Mapping[str, Any]) -> list[str]:
    """Features that could be exchanged for copies of them."""
    return [
        f"{name} could be exchanged for {listed(copies, 6)}: within queries they differ from it by a factor "
        "alone."
        for name, copies in size["ties"].items()
    ]
