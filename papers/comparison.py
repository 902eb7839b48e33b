"""Comparison of each published number with our value, selected and evaluated by the protocol of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from papers.choices import PaperResults, SelectionResult
from papers.published import PublishedNumber, published_numbers, unmatched_numbers
from ranksieve._types import FloatArray
from ranksieve.metrics import Profile
from ranksieve.metrics.profiles import (
    STANDARD_PROFILE,
    Empty,
    exponential_gain,
    letor_discount,
    linear_gain,
    log2_discount,
)
from ranksieve.metrics.significance import paired_t

SMALL_DIFFERENCE, MEDIUM_DIFFERENCE = 0.003, 0.01
NDCG_AND_MAP, SPARSITY, P_VALUES, SECONDS, OTHER = "NDCG and MAP", "sparsity", "p-values", "seconds", "other"
KINDS = (NDCG_AND_MAP, SPARSITY, P_VALUES, SECONDS, OTHER)

# Known reasons for a difference, by paper and method, or for all other methods of a paper (method "").
REMARKS = {
    ("FenchelRank", "fenchelrank"): "the fourth digit decides the selection on validation data",
    ("FenchelRank", "tgrank"): "the grid and the step sizes are not published",
    ("FenchelRank", "rsrank"): "the grid is not published; the original starts from random models",
    ("FenchelRank", ""): "the values of C tried for RankSVM-Primal are not published",
    ("FSMRank", "gas"): "the numbers of features and the values of C tried are not published",
    ("FSMRank", "fsmsvm"): "the numbers of features and the values of C tried are not published",
    ("FSMRank", ""): "the grids are not published; |Pearson| is not positive semidefinite (here: projected)",
    (
        "MinBatSRank",
        "minbatsrank",
    ): "passes, query order, selection and number of runs are not published",
    ("MinBatSRank", "fenchelrank"): "the settings are not published; the FenchelRank paper has other values",
    ("MinBatSRank", ""): "the settings are not published",
    ("NonconvexRankSVM", "fenchelrank"): "",
    ("NonconvexRankSVM", "fsmrank"): "the grids of FSMRank are not published",
    ("NonconvexRankSVM", ""): "the grid is not published, and sparsity changes fast along it",
}
CITED_REMARK = "run by others for LETOR's site, with other software and grids"


def top_label_gain(labels: FloatArray) -> FloatArray:
    """Return 1 for labels of at least 2, else 0."""
    return np.where(labels >= 2.0, 1.0, 0.0)


def relevance_gain(labels: FloatArray) -> FloatArray:
    """Return 1 for labels of at least 1, else 0."""
    return np.where(labels >= 1.0, 1.0, 0.0)


GAINS = {
    "gain 2^y − 1": exponential_gain,
    "gain y": linear_gain,
    "gain 1 from label 1": relevance_gain,
    "label 2 alone, gain 1": top_label_gain,
}
DISCOUNTS = {"1/log2(1 + i)": log2_discount, "LETOR's discount": letor_discount}
EMPTY: dict[str, Empty] = {"": 0.0, ", empty queries 1": 1.0, ", empty queries left out": "skip"}
SHORT = {"": False, ", short lists 0": True}
CONVENTIONS = tuple(
    Profile(
        f"{gain}, {discount}{short}{empty}",
        GAINS[gain],
        DISCOUNTS[discount],
        SHORT[short],
        2.0 if GAINS[gain] is top_label_gain else 1.0,
        EMPTY[empty],
        max_label=2.0,
    )
    for gain, discount, short, empty in product(GAINS, DISCOUNTS, SHORT, EMPTY)
)
"""Empty queries have no relevant document, short lists fewer than k documents."""
LABEL_2 = next(one for one in CONVENTIONS if one.name == "label 2 alone, gain 1, LETOR's discount")


@dataclass(frozen=True)
class PaperProtocol:
    """How to select and evaluate our model for the comparison with a published number.

    Parameters
    ----------
    select : str
        The metric for model selection on validation data, as in the paper.
    sparsity : str
        "sparsity" counts all features, "density" those that vary within some query.
    profile : Profile, optional
        Set if the paper does not use the conventions of LETOR's scripts: the profile closest to its own. The
        tables then show our value, but no difference.
    """

    select: str = "ndcg@10"
    sparsity: str = "sparsity"
    profile: Profile | None = None

    def __str__(self) -> str:
        parts = ["chosen by " + self.select.replace("ndcg", "NDCG").replace("map", "MAP")]
        if self.sparsity == "density":
            parts.append("sparsity of varying features")
        if self.profile is not None:
            parts.append(f"closest conventions: {self.profile.name}")
        return ", ".join(parts)


# FenchelRank selects by NDCG@10 on validation data. FSMRank only states "by cross-validation", MinBatSRank
# nothing; both follow FenchelRank's protocol. The RankSVM paper selects by MAP, also for FenchelRank and
# FSMRank, and leaves out features that are zero for all queries. Sparse CS-ListMLE states neither its metric
# nor its conventions.
PAPERS = {
    "FenchelRank": PaperProtocol(),
    "FSMRank": PaperProtocol(),
    "MinBatSRank": PaperProtocol(),
    "NonconvexRankSVM": PaperProtocol("map", "density"),
    "SparseCSListMLE": PaperProtocol(),
}
CLOSEST_PROFILES = {
    ("SparseCSListMLE", "OHSUMED"): LABEL_2,
    ("SparseCSListMLE", "MQ2008"): STANDARD_PROFILE,
}

# FenchelRank and FSMRank cite these numbers from LETOR's site, which states that most of its baselines were
# selected by MAP on validation data. RankSVM-Primal on MQ2008 was run by the FenchelRank paper itself.
CITING_PAPERS = ("FenchelRank", "FSMRank")
OWN_METHODS, BASELINES, CITED = (
    "its own methods",
    "baselines it ran itself",
    "baselines cited from LETOR's site",
)
OWN_METHOD_PREFIXES = {
    "FenchelRank": ("fenchelrank",),
    "FSMRank": ("fsmrank", "fsmsvm"),
    "MinBatSRank": ("minbatsrank",),
    "NonconvexRankSVM": ("ranksvm-",),
    "SparseCSListMLE": ("sparselistmle", "cslistmle"),
}
LETOR_BASELINES = {"ranksvmstruct", "listnet", "adarank-ndcg", "rankboost", "svmmap"}


def protocol_of(paper: str, data_set: str, method: str) -> PaperProtocol:
    """The protocol for comparing our value with a paper's numbers for a method on a data set."""
    protocol = replace(PAPERS[paper], profile=CLOSEST_PROFILES.get((paper, data_set)))
    return replace(protocol, select="map") if is_cited(paper, data_set, method) else protocol


def is_cited(paper: str, data_set: str, method: str) -> bool:
    """Whether the paper cites its numbers for the method from LETOR's site."""
    on_site = method in LETOR_BASELINES or (method == "ranksvm" and data_set != "MQ2008")
    return paper in CITING_PAPERS and on_site


def origin_of(paper: str, data_set: str, method: str) -> str:
    """The origin of a published number: OWN_METHODS, BASELINES or CITED."""
    if is_cited(paper, data_set, method):
        return CITED
    return OWN_METHODS if method.startswith(OWN_METHOD_PREFIXES[paper]) else BASELINES


def other_profiles(method: str) -> dict[str, tuple[Profile, ...]]:
    """By data set: the profiles, other than letor, for the papers with other conventions and this method."""
    papers = {number.paper for number in published_numbers() if number.method == method}
    data_sets = [data_set for paper, data_set in CLOSEST_PROFILES if paper in papers]
    return dict.fromkeys(data_sets, (*CONVENTIONS, STANDARD_PROFILE))


@dataclass(frozen=True)
class NumberComparison:
    """A published number and our value; a missing value, or spread over seeds, is NaN."""

    published: PublishedNumber
    protocol: PaperProtocol
    our_value: float
    spread: float = math.nan

    @property
    def kind(self) -> str:
        return kind_of(self.published.metric, self.published.against)

    @property
    def comparable(self) -> bool:
        """Whether both were measured in the same way."""
        return self.protocol.profile is None and self.kind != SECONDS

    @property
    def difference(self) -> float:
        """Our value − published number; NaN if they are not comparable."""
        return self.our_value - self.published.value if self.comparable else math.nan

    @property
    def remark(self) -> str:
        """Known reason for the difference, or empty."""
        paper, method = self.published.paper, self.published.method
        if is_cited(paper, self.published.data_set, method):
            return CITED_REMARK
        return REMARKS.get((paper, method), REMARKS.get((paper, ""), ""))


@dataclass(frozen=True)
class Agreement:
    """Number of published numbers of one kind, and how many of them we reproduce."""

    kind: str
    n_published: int
    n_small: int
    n_medium: int
    n_large: int
    n_not_comparable: int
    n_unmatched: int

    @property
    def n_compared(self) -> int:
        return self.n_small + self.n_medium + self.n_large

    @property
    def n_not_run(self) -> int:
        return self.n_published - self.n_compared - self.n_not_comparable - self.n_unmatched


@lru_cache(maxsize=8)
def comparisons(results: PaperResults) -> tuple[NumberComparison, ...]:
    """All published numbers on the data set for methods in the results."""
    numbers = (number for number in published_numbers() if number.data_set == results.name)
    return tuple(comparison for number in numbers if (comparison := _compare(results, number)) is not None)


def agreement(results: PaperResults) -> list[Agreement]:
    """Count for each kind of number how many differ from ours by at most 0.003, 0.01, or more."""
    all_comparisons = comparisons(results)
    matched = [kind_of(n.metric, n.against) for n in published_numbers() if n.data_set == results.name]
    unmatched = [kind_of(u.metric) for u in unmatched_numbers(results.name) for _ in range(u.n_numbers)]
    rows = []
    for kind in KINDS:
        of_kind = [comparison for comparison in all_comparisons if comparison.kind == kind]
        sizes = difference_sizes(of_kind)
        n_published, n_unmatched = matched.count(kind) + unmatched.count(kind), unmatched.count(kind)
        n_not_comparable = len(of_kind) - len(sizes.values)
        rows.append(
            Agreement(
                kind, n_published, sizes.n_small, sizes.n_medium, sizes.n_large, n_not_comparable, n_unmatched
            )
        )
    return [row for row in rows if row.n_published]


@dataclass(frozen=True)
class DifferenceSizes:
    """Absolute differences of comparable numbers."""

    values: Sequence[float]

    @property
    def n_small(self) -> int:
        return sum(size <= SMALL_DIFFERENCE for size in self.values)

    @property
    def n_medium(self) -> int:
        return sum(SMALL_DIFFERENCE < size <= MEDIUM_DIFFERENCE for size in self.values)

    @property
    def n_large(self) -> int:
        return sum(size > MEDIUM_DIFFERENCE for size in self.values)


def difference_sizes(group: Sequence[NumberComparison]) -> DifferenceSizes:
    # Published numbers have four digits: rounding makes a difference of 0.003 count as small.
    return DifferenceSizes([round(abs(c.difference), 6) for c in group if c.comparable])


def largest(items: Sequence[NumberComparison], kind: str, most: int) -> list[list[NumberComparison]]:
    """The ``most`` largest differences of a kind; the same number in several tables is one group."""
    groups: dict[tuple[str, str, float, float], list[NumberComparison]] = {}
    for comparison in items:
        if comparison.kind == kind and comparison.comparable:
            number = comparison.published
            groups.setdefault((number.method, number.metric, number.value, comparison.our_value), []).append(
                comparison
            )
    return sorted(groups.values(), key=lambda group: -abs(group[0].difference))[:most]


def kind_of(metric: str, against: str = "") -> str:
    """The kind of a number, by its metric; a number with a second method is a p-value."""
    if against:
        return P_VALUES
    if metric.startswith("ndcg") or metric == "map":
        return NDCG_AND_MAP
    return metric if metric in (SPARSITY, SECONDS) else OTHER


def value_under(result: SelectionResult, metric: str, protocol: PaperProtocol) -> float:
    """The value of a metric under the protocol; NaN if it is not in the result."""
    row = result.to_row()
    if metric == "seconds":
        return row["fit_seconds"] / len(result.folds)
    if metric == "sparsity":
        return row[protocol.sparsity]
    if protocol.profile is None:
        return row[metric]
    return result.other_profiles.get(protocol.profile.name, {}).get(metric, math.nan)


def _compare(results: PaperResults, number: PublishedNumber) -> NumberComparison | None:
    protocol = protocol_of(number.paper, number.data_set, number.method)
    result = results.result_for(number.method, protocol.select)
    if result is None:
        return None
    if not number.against:
        name = protocol.sparsity if number.metric == "sparsity" else number.metric
        spread = result.spread().get(name, math.nan) if protocol.profile is None else math.nan
        return NumberComparison(number, protocol, value_under(result, number.metric, protocol), spread)
    select = protocol_of(number.paper, number.data_set, number.against).select
    other = results.result_for(number.against, select)
    if other is None:
        return None
    return NumberComparison(
        number, protocol, paired_t(result.pooled(number.metric), other.pooled(number.metric), "greater")
    )
