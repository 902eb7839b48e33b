"""Output of fit: the model, how it was selected, changes since a previous model, the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os.path import basename
from typing import TYPE_CHECKING, Any

import ranksieve as rs
from ranksieve.cli.output import print_all, print_text

if TYPE_CHECKING:
    from ranksieve.model.boosted import BoostedModel
    from ranksieve.rankers import Ranker
    from ranksieve.report import ModelTest


LONG_SETTINGS = {"feature_costs": "costs", "signs": "signs"}


def settings_of(model: rs.LinearModel) -> dict[str, Any]:
    """Parameters of a previous model that differ from the defaults of SparseRanker."""
    from ranksieve._util.files import to_plain
    from ranksieve.errors import DataError, warn_caller
    from ranksieve.model.linear import restore_infinities
    from ranksieve.rankers.parameters import check_parameters

    if model.method != rs.SparseRanker.__name__:
        return {name: value for name, value in (model.chosen_by or {}).items() if name != "ties"}
    settings, defaults = restore_infinities(model.parameters), rs.SparseRanker().get_params(deep=False)
    try:
        if model.chosen_by is None:
            raise DataError(None, None, "its profile is a custom object that is not stored in the file")
        settings["profile"] = model.chosen_by["profile"]
        check_parameters(rs.SparseRanker(**settings))
    except (TypeError, ValueError) as error:
        warn_caller(f"the settings of the previous model cannot be reused: {error}")
        return {}
    return {name: value for name, value in settings.items() if to_plain(value) != to_plain(defaults[name])}


def settings_sentence(settings: Mapping[str, Any], file: str) -> str:
    """``Settings of old.json: max_features=10, its costs.``"""
    shown = (
        f"its {LONG_SETTINGS[name]}" if name in LONG_SETTINGS else f"{name}={settings[name]}"
        for name in settings
    )
    return f"Settings of {file}: {', '.join(shown)}."


@dataclass(frozen=True, eq=False)
class Outcome:
    """A fitted ranker and its model.

    ``choice``: what the model was selected on; ``uncounted``: sentence about lists that are too short;
    ``data`` and ``held_out``: training and validation data, None if not in memory; ``texts``: texts of
    queries; ``test``: evaluation on test data.
    """

    ranker: Any
    model: rs.LinearModel | BoostedModel
    choice: str = ""
    uncounted: str = ""
    data: rs.Dataset | None = None
    held_out: rs.Dataset | None = None
    texts: Mapping[Any, str] = field(default_factory=dict)
    test: ModelTest | None = None


def write_page(outcome: Outcome, report: str, valid: str | None, previous_file: str | None) -> None:
    """Write the page of a fit; ``valid`` and ``previous_file`` are input files, shown without folders."""
    from ranksieve.report import build_content, write_report
    from ranksieve.report.calls import feature_strength, valid_metrics
    from ranksieve.show.fit import selection_text

    ranker, test = outcome.ranker, outcome.test
    on_valid = None if valid is None else basename(valid)
    content = build_content(
        ranker, choice=selection_text(ranker, on_valid),
        evaluations=valid_metrics(ranker, on_valid, outcome.held_out),
        support=None if outcome.data is None else feature_strength(ranker, outcome.data),
        uncounted=outcome.uncounted, test=None if test is None else replace(test, name=basename(test.name)),
        query_texts=outcome.texts, previous_file=basename(previous_file or ""), train=outcome.data,
    )  # fmt: skip
    write_report(content, report)


def as_plain_data(outcome: Outcome) -> dict[str, Any]:
    """The outcome for JSON."""
    changes, test = getattr(outcome.ranker, "changes_", None), outcome.test
    return {
        "model": outcome.model.to_dict(),
        "choice": outcome.choice,
        "family": outcome.ranker.choice_.family.label if outcome.ranker.can("valid") else None,
        "confidence": confidence_data(outcome.ranker),
        "uncounted": outcome.uncounted,
        "changes": None if changes is None else changes.to_dict(),
        "test": None if test is None else dict(test.evaluation.mean),
    }


def show(
    outcome: Outcome,
    previous_file: str | None,
    previous_settings: Mapping[str, Any],
    scaled: bool = False,
) -> None:
    """Print the settings, the result on test data, the model, and the changes since the previous model."""
    from ranksieve.show.fit import change_parts

    if previous_file is not None and previous_settings:
        print_text(settings_sentence(previous_settings, previous_file))
    if outcome.test is not None:
        print_text(outcome.test.sentence)
    show_model(outcome.ranker, outcome.model, outcome.choice, outcome.uncounted, scaled)
    if previous_file is not None:
        print_all(change_parts(outcome.ranker.changes_, previous_file, outcome.texts))


def confidence_data(ranker: Any) -> dict[str, Any] | None:
    """Confidence of the selection as plain data, features by name; None for a ranker without selection."""
    if not ranker.can("valid"):
        return None
    confidence = ranker.choice_.confidence
    shares = zip(ranker.choice_.feature_names, confidence.frequency.tolist(), strict=True)
    return {**confidence.to_dict(), "frequency": {name: share for name, share in shares if share > 0}}


def show_model(
    ranker: Ranker,
    model: rs.LinearModel | BoostedModel,
    choice: str,
    uncounted: str = "",
    scaled: bool = False,
) -> None:
    """Print the held-out metric, the features with their weights, and the proof."""
    from ranksieve.show.fit import fit_parts

    print_all(fit_parts(ranker, model, choice, uncounted, scaled))
