"""Like with like: how ours is chosen and measured beside the numbers of each paper."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.metrics import Profile
from ranksieve.metrics.profiles import STANDARD


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
        The metric that chooses on vali, as the source did.
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


# FenchelRank chooses by NDCG@10 on vali. FSMRank says "by cross-validation", MinBatSRank nothing; both follow
# FenchelRank's protocol. The RankSVM paper chooses by MAP, FenchelRank and FSMRank too, and leaves out
# features that are zero for all queries. Sparse CS-ListMLE says neither metric nor conventions.
PAPERS = {
    "FenchelRank": Terms(),
    "FSMRank": Terms(),
    "MinBatSRank": Terms(),
    "NonconvexRankSVM": Terms("map", "varying_sparsity"),
    "SparseCSListMLE": Terms(),
}
NEAREST = {("SparseCSListMLE", "OHSUMED"): LABEL_2, ("SparseCSListMLE", "MQ2008"): STANDARD}

# FenchelRank and FSMRank cite these from LETOR's site, which says that most of its baselines were chosen by
# MAP on vali. RankSVM-Primal on MQ2008 is FenchelRank's own run.
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


def other_profiles(data_set: str) -> tuple[Profile, ...]:
    """The conventions, beside a data set's own, under which a paper's numbers stand beside ours."""
    return tuple(dict.fromkeys(profile for (_, name), profile in NEAREST.items() if name == data_set))
