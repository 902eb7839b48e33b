"""How a model ranks queries that neither it nor its choice has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranksieve.report.gains import mean_with_interval
from ranksieve.report.words import counted, metric_text, metric_title

if TYPE_CHECKING:
    from ranksieve.metrics import Evaluation


@dataclass(frozen=True, eq=False)
class Unseen:
    """The evaluation of a file of queries that chose nothing; ``metric`` is what the model was chosen by."""

    name: str
    evaluation: Evaluation
    metric: str

    @property
    def label(self) -> str:
        """What the table of metrics calls it."""
        return f"{self.name}, test queries that chose nothing"

    @property
    def sentence(self) -> str:
        """The metric with its interval over queries."""
        found = self.evaluation
        mean, low, high = mean_with_interval(found.per_query[self.metric])
        queries = counted(len(found.query_ids), "query", "queries")
        return (
            f"Test {metric_title(self.metric)} ({found.profile.name} profile): {metric_text(mean)}, "
            f"95 % interval {metric_text(low)} to {metric_text(high)}, over the {queries} of "
            f"{self.name}, which chose nothing: neither features nor weights nor this model among others."
        )
