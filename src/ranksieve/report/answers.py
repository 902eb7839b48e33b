"""The questions that a team asks first, answered in words."""

from __future__ import annotations

from dataclasses import dataclass

from ranksieve.report.gains import Difference, Gains
from ranksieve.report.words import counted, metric_title, p_value, signed

WHICH, SURE = "Which features?", "How sure?"
LOST, SIGNIFICANT = "What is lost per query?", "Is it significant?"


@dataclass(frozen=True)
class Answer:
    """A question, its answer in a few words, and the rest of it."""

    question: str
    short: str
    words: str


def lost(gains: Gains, name: str, change: Difference) -> Answer:
    """How many queries win and lose, and the worst of them."""
    query, worst = gains.worst(name)
    words = (
        f"{gains.where.capitalize()}, against {gains.baseline}: {counted(change.wins, 'query', 'queries')} "
        f"better, {change.ties} equal, {change.losses} worse."
    )
    if worst < 0:
        words += f" Worst: query {query} with {signed(worst, 2)}."
    return Answer(LOST, f"{signed(change.mean)} {metric_title(gains.metric)}", words)


def significant(change: Difference, guided: bool = False) -> Answer:
    """The interval of the mean difference, and the tests; ``guided`` if these queries guided the choice."""
    interval = f"{signed(change.low)} to {signed(change.high)}"
    words = (
        f"Mean difference {signed(change.mean)}, 95 % interval {interval}. "
        f"Two-sided: {p_value(change.p_t)} (paired t), {p_value(change.p_randomisation)} (randomisation). "
        f"One-sided as in the papers, is it better: {p_value(change.p_t_greater)}, "
        f"{p_value(change.p_randomisation_greater)}."
    )
    if not guided:
        return Answer(SIGNIFICANT, change.verdict, words)
    better = "better" in change.verdict
    warning = "The choice was made on these queries, which favours the chosen model; test queries would tell."
    return Answer(SIGNIFICANT, "no fair test here" if better else change.verdict, f"{warning} {words}")
