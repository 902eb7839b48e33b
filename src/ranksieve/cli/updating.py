"""fit --from: the settings of the model before, and what changed, in words and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ranksieve as rs
from ranksieve.cli.output import table, words

if TYPE_CHECKING:  # these take long to load
    from ranksieve.estimators.changes import Changes

CONTENTS = {"feature_costs": "costs", "signs": "signs"}  # what is too long to be shown
SHOWN_QUERIES = 3


def settings_of(old: rs.LinearModel) -> dict[str, Any]:
    """The parameters of the model before that are not the defaults of SparseRanker, which learns again."""
    from ranksieve._util.json_values import plain
    from ranksieve._util.messages import warn_caller
    from ranksieve.verification.rebuild import chooser_of
    from ranksieve.verification.verdict import NotChecked

    if old.method != rs.SparseRanker.__name__:
        return dict(old.chosen_by or {})
    try:
        held = chooser_of(old).get_params(deep=False)
    except NotChecked as reason:
        warn_caller(f"the settings of the model before are not used again: {reason}")
        return {}
    usual = rs.SparseRanker().get_params(deep=False)
    return {name: value for name, value in held.items() if plain(value) != plain(usual[name])}


def settings_in_words(settings: Mapping[str, Any], file: str) -> str:
    """Settings of old.json: max_features=10, its costs."""
    shown = (f"its {CONTENTS[name]}" if name in CONTENTS else f"{name}={settings[name]}" for name in settings)
    return f"Settings of {file}: {', '.join(shown)}." if settings else ""


def show_changes(found: Changes, file: str, texts: Mapping[Any, str]) -> None:
    """What changed from the model before."""
    from ranksieve.report.change_words import change_table

    shown = change_table(found, file, texts, SHOWN_QUERIES)
    for sentence in shown.sentences:
        words(sentence)
    table(["feature", "weight before", "weight now", ""], shown.features, "What changed")
    if shown.queries:
        title = f"Most lost and won ({found.metric})"
        table(["query", "before", "now", "change"], shown.queries, title)
