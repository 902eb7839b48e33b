"""Like with like: every printed number with ours beside it, chosen and measured as its paper did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from papers.choices import ChosenResult, PaperResults
from papers.published import Printed, published, unmatched
from ranksieve._types import FloatArray
from ranksieve.metrics import Profile
from ranksieve.metrics.profiles import STANDARD_PROFILE
from ranksieve.metrics.significance import paired_t

NEAR, FAR = 0.003, 0.01
NDCG_AND_MAP, SPARSITY, P_VALUES, SECONDS, OTHER = "NDCG and MAP", "sparsity", "p-values", "seconds", "other"
KINDS = (NDCG_AND_MAP, SPARSITY, P_VALUES, SECONDS, OTHER)

# By paper and method, or by paper alone: what is known of why ours differs; empty where nothing is.
REMARKS = {
    ("FenchelRank", "fenchelrank"): "choices on valid that the fourth digit decides",
    ("FenchelRank", "tgrank"): "its grid and its steps are not printed",
    ("FenchelRank", "rsrank"): "its grid is not printed, and the original starts from random models",
    ("FenchelRank", ""): "the C of RankSVM-Primal that were tried are not printed",
    ("FSMRank", "gas"): "the numbers of features and the C that were tried are not printed",
    ("FSMRank", "fsmsvm"): "the numbers of features and the C that were tried are not printed",
    ("FSMRank", ""): "its grids are not printed; |Pearson| is not positive semidefinite, here projected",
    ("MinBatSRank", "minbatsrank"): "passes, order of queries and number of runs are not printed",
    ("MinBatSRank", "fenchelrank"): "its settings are not printed; FenchelRank prints other numbers itself",
    ("MinBatSRank", ""): "its settings are not printed",
    ("NonconvexRankSVM", "fenchelrank"): "",
    ("NonconvexRankSVM", "fsmrank"): "FSMRank's grids are not printed",
    ("NonconvexRankSVM", ""): "its grid is not printed, and sparsity moves fast along it",
}
CITED_REMARK = "run by others for LETOR's site; software and grids differ"


def top_label_gain(labels: FloatArray) -> FloatArray:
    """1 for label 2 or more, else 0."""
    return np.where(labels >= 2.0, 1.0, 0.0)


LABEL_2 = Profile("label 2 alone", gain=top_label_gain, relevant_from=2.0, max_label=2.0)
"""Documents with label 2 are relevant and gain 1, all others 0; discount 1/log2(1 + i)."""


@dataclass(frozen=True)
class Terms:
    """Which of ours stands beside a printed number.

    Parameters
    ----------
    select : str
        The metric that chooses on valid, as the source did.
    sparsity : str
        "sparsity" counts all features, "varying_sparsity" those that vary within some query.
    profile : Profile, optional
        Conventions that come nearest to the source's where they are not those of LETOR's scripts. Nearest is
        not the same: ours is shown, but no difference.
    """

    select: str = "ndcg@10"
    sparsity: str = "sparsity"
    profile: Profile | None = None

    def __str__(self) -> str:
        words = ["chosen by " + self.select.replace("ndcg", "NDCG").replace("map", "MAP")]
        if self.sparsity == "varying_sparsity":
            words.append("sparsity of varying")
        if self.profile is not None:
            words.append(f"nearest conventions: {self.profile.name}")
        return ", ".join(words)


# FenchelRank chooses by NDCG@10 on valid. FSMRank says "by cross-validation", MinBatSRank nothing; both
# follow FenchelRank's protocol. The RankSVM paper chooses by MAP, FenchelRank and FSMRank too, and leaves out
# features that are zero for all queries. Sparse CS-ListMLE says neither metric nor conventions.
PAPERS = {
    "FenchelRank": Terms(),
    "FSMRank": Terms(),
    "MinBatSRank": Terms(),
    "NonconvexRankSVM": Terms("map", "varying_sparsity"),
    "SparseCSListMLE": Terms(),
}
NEAREST = {("SparseCSListMLE", "OHSUMED"): LABEL_2, ("SparseCSListMLE", "MQ2008"): STANDARD_PROFILE}

# FenchelRank and FSMRank cite these from LETOR's site, which says that most of its baselines were chosen by
# MAP on valid. RankSVM-Primal on MQ2008 is FenchelRank's own run.
CITING = ("FenchelRank", "FSMRank")
OWN_METHODS, BASELINES, CITED = "its own methods", "baselines that it ran", "baselines of LETOR's site"
INTRODUCED = {  # by paper: how the names of its own methods begin
    "FenchelRank": ("fenchelrank",),
    "FSMRank": ("fsmrank", "fsmsvm"),
    "MinBatSRank": ("minbatsrank",),
    "NonconvexRankSVM": ("ranksvm-",),
    "SparseCSListMLE": ("sparselistmle", "cslistmle"),
}
LETOR_RUNS = {"ranksvmstruct", "listnet", "adarank-ndcg", "rankboost", "svmmap"}


def terms_of(paper: str, data_set: str, method: str) -> Terms:
    """How ours is chosen and measured beside what a paper prints for a method on a data set."""
    terms = replace(PAPERS[paper], profile=NEAREST.get((paper, data_set)))
    return replace(terms, select="map") if is_cited(paper, data_set, method) else terms


def is_cited(paper: str, data_set: str, method: str) -> bool:
    """Whether the paper's numbers of the method are those of LETOR's site."""
    on_site = method in LETOR_RUNS or (method == "ranksvm" and data_set != "MQ2008")
    return paper in CITING and on_site


def whose(paper: str, data_set: str, method: str) -> str:
    """Whose run a printed number is of: OWN_METHODS, BASELINES or CITED."""
    if is_cited(paper, data_set, method):
        return CITED
    return OWN_METHODS if method.startswith(INTRODUCED[paper]) else BASELINES


OTHER_PROFILES = {data_set: (profile,) for (_, data_set), profile in NEAREST.items()}
"""By data set: further conventions under which a paper's numbers stand beside ours."""


@dataclass(frozen=True)
class Comparison:
    """A printed number and ours on its terms; NaN for a spread over seeds or a value that there is not."""

    printed: Printed
    terms: Terms
    ours: float
    spread: float = math.nan

    @property
    def kind(self) -> str:
        return kind_of(self.printed.metric, self.printed.against)

    @property
    def alike(self) -> bool:
        """Whether both were measured in the same way, so that a difference means something."""
        return self.terms.profile is None and self.kind != SECONDS

    @property
    def difference(self) -> float:
        """Ours − printed; NaN unless both were measured alike."""
        return self.ours - self.printed.value if self.alike else math.nan

    @property
    def remark(self) -> str:
        """What is known of why ours differs; empty if nothing is."""
        paper, method = self.printed.paper, self.printed.method
        if is_cited(paper, self.printed.data_set, method):
            return CITED_REMARK
        return REMARKS.get((paper, method), REMARKS.get((paper, ""), ""))


@dataclass(frozen=True)
class Agreement:
    """How many printed numbers of one kind there are, and how near ours come to them."""

    kind: str
    n_printed: int
    n_near: int
    n_far: int
    n_beyond: int
    n_unlike: int
    n_unmatched: int

    @property
    def n_compared(self) -> int:
        return self.n_near + self.n_far + self.n_beyond

    @property
    def n_not_run(self) -> int:
        return self.n_printed - self.n_compared - self.n_unlike - self.n_unmatched


@lru_cache(maxsize=8)
def comparisons(results: PaperResults) -> tuple[Comparison, ...]:
    """All printed numbers of the data set whose methods are in the results."""
    entries = (entry for entry in published() if entry.data_set == results.name)
    return tuple(found for entry in entries if (found := _compared(results, entry)) is not None)


def agreement(results: PaperResults) -> list[Agreement]:
    """Of each kind of number: how many are within 0.003 and 0.01 of ours, beyond, and not comparable."""
    found = comparisons(results)
    mapped = [kind_of(e.metric, e.against) for e in published() if e.data_set == results.name]
    lacking = [kind_of(u.metric) for u in unmatched(results.name) for _ in range(u.n_numbers)]
    rows = []
    for kind in KINDS:
        here = [one for one in found if one.kind == kind]
        near = nearness(here)
        printed, none = mapped.count(kind) + lacking.count(kind), lacking.count(kind)
        unlike = len(here) - len(near.sizes)
        rows.append(Agreement(kind, printed, near.n_near, near.n_far, near.n_beyond, unlike, none))
    return [row for row in rows if row.n_printed]


@dataclass(frozen=True)
class Nearness:
    """The sizes of differences, where both numbers were measured alike."""

    sizes: Sequence[float]

    @property
    def n_near(self) -> int:
        return sum(size <= NEAR for size in self.sizes)

    @property
    def n_far(self) -> int:
        return sum(NEAR < size <= FAR for size in self.sizes)

    @property
    def n_beyond(self) -> int:
        return sum(size > FAR for size in self.sizes)


def nearness(found: Sequence[Comparison]) -> Nearness:
    """How near ours come to the printed numbers."""
    # printed numbers have four digits: what is 0.003 but for binary fractions is within 0.003
    return Nearness([round(abs(one.difference), 6) for one in found if one.alike])


def largest(found: Sequence[Comparison], kind: str, most: int) -> list[list[Comparison]]:
    """The largest differences of a kind; a number that several tables print is one of them."""
    groups: dict[tuple[str, str, float, float], list[Comparison]] = {}
    for one in found:
        if one.kind == kind and one.alike:
            groups.setdefault(
                (one.printed.method, one.printed.metric, one.printed.value, one.ours), []
            ).append(one)
    return sorted(groups.values(), key=lambda group: -abs(group[0].difference))[:most]


def kind_of(metric: str, against: str = "") -> str:
    """What kind of number a metric is; with a second method it is a p-value."""
    if against:
        return P_VALUES
    if metric.startswith("ndcg") or metric == "map":
        return NDCG_AND_MAP
    return metric if metric in (SPARSITY, SECONDS) else OTHER


def value_on(result: ChosenResult, metric: str, terms: Terms) -> float:
    """A result as the terms measure it; NaN if it was not measured so."""
    row = result.to_row()
    if metric == "seconds":
        return row["fit_seconds"] / len(result.folds)
    if metric == "sparsity":
        return row[terms.sparsity]
    if terms.profile is None:
        return row[metric]
    return result.elsewhere.get(terms.profile.name, {}).get(metric, math.nan)


def _compared(results: PaperResults, entry: Printed) -> Comparison | None:
    terms = terms_of(entry.paper, entry.data_set, entry.method)
    result = results.chosen_by(entry.method, terms.select)
    if result is None:
        return None
    if not entry.against:
        name = terms.sparsity if entry.metric == "sparsity" else entry.metric
        spread = result.spread().get(name, math.nan) if terms.profile is None else math.nan
        return Comparison(entry, terms, value_on(result, entry.metric, terms), spread)
    by = terms_of(entry.paper, entry.data_set, entry.against).select
    other = results.chosen_by(entry.against, by)
    if other is None:
        return None
    return Comparison(
        entry, terms, paired_t(result.pooled(entry.metric), other.pooled(entry.metric), "greater")
    )
