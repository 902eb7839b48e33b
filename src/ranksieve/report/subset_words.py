"""What is proven of a set of features, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksieve.report.words import counted, listed, percent

ROUNDING = 1e-8  # a relative gap below this is one of rounding
FOLD_SETS = (
    "In cross-validation the sets of each fold come from forward selection with swaps, not from the search "
    "that proves."
)


def limits_text(certificate: Mapping[str, Any]) -> str:
    """The sets that a proof is about."""
    among = counted(certificate["n_features"], "feature")
    cost = f" that cost at most {certificate['max_cost']:g}" if "max_cost" in certificate else ""
    return f"set of at most {certificate['max_features']} of the {among}{cost}"


def subset_sentence(certificate: Mapping[str, Any]) -> str:
    """How much better another set can be."""
    others = limits_text(certificate)
    if certificate["relative_gap"] <= ROUNDING:
        return f"Proven best: no other {others} has a lower training objective."
    return (
        f"No other {others} has a training objective more than {percent(certificate['relative_gap'])} lower."
    )


def screening_sentences(size: Mapping[str, Any]) -> list[str]:
    """Which features no better set uses, and which every better set uses; none if the set is proven best."""
    if size["relative_gap"] <= ROUNDING:
        return []
    sentences = []
    if size["never"]:
        verb = "is" if len(size["never"]) == 1 else "are"
        sentences.append(
            f"{counted(len(size['never']), 'feature')} {verb} provably in no better set: "
            f"{listed(size['never'], 12)}."
        )
    if size["always"]:
        verb = "is" if len(size["always"]) == 1 else "are"
        sentences.append(
            f"{counted(len(size['always']), 'feature')} {verb} provably in every better set: "
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
