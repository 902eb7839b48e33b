"""The published numbers under our names of methods and metrics, and variants of methods in the papers."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from statistics import fmean
from typing import Any

from ranksieve import baselines
from ranksieve import rankers as e
from ranksieve.experiment import tables as cells
from ranksieve.methods import METHODS, Method, decades, parameter_grid

# Our names for the methods in the papers; other methods have no counterpart here.
NAMES = {
    "FenchelRank": "fenchelrank",
    "FSMRank": "fsmrank",
    "MinBatSRank": "minbatsrank",
    "RankSVM-l1": "ranksvm-l1",
    "RankSVM-log": "ranksvm-log",
    "RankSVM-MCP": "ranksvm-mcp",
    "RankSVM-l0.5": "ranksvm-l0.5",
    "Sparse CS ListMLE": "sparselistmle",
    "Sparse CS ListMLE@10": "sparselistmle",
    "CS ListMLE": "cslistmle",
    "CS ListMLE@10": "cslistmle",
    "CS RankSVM": "csranksvm",
    "RankSVM-Primal": "ranksvm",
    "RankSVM-primal": "ranksvm",
    "RankSVM-Struct": "ranksvmstruct",
    "RankSVM-struct": "ranksvmstruct",
    "TGRank": "tgrank",
    "RSRank": "rsrank",
    "SparseRank": "proxrank",
    "ListNet": "listnet",
    "AdaRank-NDCG": "adarank-ndcg",
    "AdaRank": "adarank-ndcg",
    "RankBoost": "rankboost",
    "SVM MAP": "svmmap",
    "LambdaMart": "lambdamart",
    "GAS-E": "gas",
    "FSMSVM": "fsmsvm",
    **{f"FS-Rank(k={k})": f"fsrank-k{k}" for k in (5, 10, 15, 20, 25)},
    "$s=S^I$": "fsmrank-plain",
    "$s=S^{PC}$": "fsmrank-importance",
    **{f"Sparse CS ListMLE@{k}": f"sparselistmle@{k}" for k in (1, 3, 5, 8)},
    **{f"CS ListMLE@{k}": f"cslistmle@{k}" for k in (1, 3, 5)},
}
# By paper, table and published name: table 5 is about k = 1, according to section 4.6.
CORRECTED_NAMES = {("SparseCSListMLE", "5", "Sparse CS ListMLE"): "sparselistmle@1"}
NO_COUNTERPART = {  # by paper and published metric: the reason
    ("SparseCSListMLE", "lambda"): "the λ selected in a fold; the paper uses its own split into folds",
    ("FenchelRank", "r"): "a radius matched to another method for a table of times, not a result",
    ("FenchelRank", "C"): "a parameter fixed for a table of times, not a result",
    ("NonconvexRankSVM", "MAP relative loss %"): "relative to a mean that is not published",
    ("NonconvexRankSVM", "N@10 relative loss %"): "relative to a mean that is not published",
}
METRIC_NAMES = {"MAP": "map", "sparsity": "sparsity", "seconds": "seconds"}
PAIR = re.compile(r"(.+) vs (.+)")

# Variants of methods with numbers of their own: number of features, part of the objective, k of NDCG@k.
_FS_RANK, _FSM_RANK = METHODS["fsrank"], METHODS["fsmrank"]
IMPORTANCE_WEIGHTS = decades(-0.5, -5, 4)
"""λ2 in quarters of a decade; on half decades the gain from importance is lost."""
_WITHOUT_SIMILARITY = parameter_grid(similarity_weight=[0.0], alpha=IMPORTANCE_WEIGHTS)
_SPARSE, _DENSE = METHODS["sparselistmle"], METHODS["cslistmle"]


def _points_with(method: Method, **fixed: Any) -> Sequence[Mapping[str, Any]]:
    """The points of a method's grid with these values."""
    return [point for point in method.grid if fixed.items() <= point.items()]


VARIANTS: dict[str, Method] = {
    **{
        f"fsrank-k{k}": replace(
            _FS_RANK, title=f"FS-Rank, k = {k}", grid=_points_with(_FS_RANK, max_features=k)
        )
        for k in (5, 10, 15, 20, 25)
    },
    "fsmrank-importance": replace(
        _FSM_RANK, title="FSMRank, λ1 = 0", grid=_WITHOUT_SIMILARITY
    ),
    "fsmrank-plain": replace(
        _FSM_RANK, title="FSMRank, λ1 = 0, s = 1", make=partial(e.FSMRank, importance="ones"),
        grid=_WITHOUT_SIMILARITY,
    ),
    **{
        f"sparselistmle@{k}": replace(
            _SPARSE, title=f"Sparse CS-ListMLE@{k}", make=partial(e.SparseListMLE, k=k, solver="newton")
        )
        for k in (1, 3, 5, 8)
    },
    **{
        f"cslistmle@{k}": replace(_DENSE, title=f"CS-ListMLE@{k}", make=partial(baselines.CSListMLE, k=k))
        for k in (1, 3, 5)
    },
}  # fmt: skip


def title(name: str) -> str:
    """Title of a method or variant."""
    return VARIANTS[name].title if name in VARIANTS else cells.method_title(name)


@dataclass(frozen=True)
class PublishedNumber:
    """One number in a table of a paper.

    ``against`` is the second method of a p-value; ``fold`` is 0 for a mean over folds.
    """

    paper: str
    table: str
    data_set: str
    method: str
    metric: str
    value: float
    fold: int = 0
    against: str = ""

    @property
    def source(self) -> str:
        return _source(self.paper, [self.table])


@dataclass(frozen=True)
class UnmatchedNumbers:
    """Numbers in a table of a paper that have no counterpart here, with the reason."""

    paper: str
    table: str
    data_set: str
    method: str
    metric: str
    reason: str
    n_numbers: int = 1

    @property
    def source(self) -> str:
        return _source(self.paper, [self.table])


@dataclass(frozen=True)
class PublishedRow:
    """The numbers of one paper for a method on a data set, from some of its tables, as means over folds."""

    paper: str
    source: str
    means: Mapping[str, float]


@cache
def published_numbers() -> tuple[PublishedNumber, ...]:
    """All numbers that have a counterpart here."""
    return tuple(row for row in _rows() if isinstance(row, PublishedNumber))


def unmatched_numbers(data_set: str) -> list[UnmatchedNumbers]:
    """The numbers on a data set that have no counterpart here."""
    counts = Counter(row for row in _rows() if isinstance(row, UnmatchedNumbers) and row.data_set == data_set)
    return [replace(row, n_numbers=times) for row, times in counts.items()]


@cache
def numbers_by_data_set() -> dict[str, int]:
    """Number of published numbers for each data set."""
    return dict(Counter(row.data_set for row in _rows()))


def rows_of(data_set: str, method: str) -> list[PublishedRow]:
    """The numbers of each paper for a method on a data set.

    Tables of one paper are merged unless they contradict each other.
    """
    by_table: dict[tuple[str, str], dict[str, list[float]]] = {}
    for number in published_numbers():
        if (number.data_set, number.method, number.against) == (data_set, method, ""):
            by_metric = by_table.setdefault((number.paper, number.table), {})
            by_metric.setdefault(number.metric, []).append(number.value)
    groups: list[tuple[str, list[str], dict[str, float]]] = []
    for (paper, table), by_metric in by_table.items():
        means = {metric: fmean(values) for metric, values in by_metric.items()}
        for other, tables, group_means in groups:
            if other == paper and all(
                group_means.get(metric, mean) == mean for metric, mean in means.items()
            ):
                tables.append(table)
                group_means.update(means)
                break
        else:
            groups.append((paper, [table], means))
    return [PublishedRow(paper, _source(paper, tables), means) for paper, tables, means in groups]


def _source(paper: str, tables: Sequence[str]) -> str:
    return f"{paper}, table{'s' if len(tables) > 1 else ''} {', '.join(tables)}"


@cache
def _rows() -> tuple[PublishedNumber | UnmatchedNumbers, ...]:
    text = files("papers").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(_read(row) for row in csv.DictReader(text.splitlines()))


def _read(row: dict[str, str]) -> PublishedNumber | UnmatchedNumbers:
    pair = PAIR.fullmatch(row["method"])
    method, against = (pair[1], pair[2]) if pair else (row["method"].removesuffix(" (best)"), "")
    metric = metric_name(row["metric"].removeprefix("p-value "))
    source = (row["paper"], row["table"], row["dataset"])
    if method not in NAMES or metric is None or (against and against not in NAMES):
        return UnmatchedNumbers(*source, method, row["metric"], NO_COUNTERPART[row["paper"], row["metric"]])
    name = CORRECTED_NAMES.get((row["paper"], row["table"], method), NAMES[method])
    other = NAMES[against] if against else ""
    fold = int(row["fold"].removeprefix("Fold") or 0)
    return PublishedNumber(*source, name, metric, float(row["value"]), fold, other)


def metric_name(published_name: str) -> str | None:
    """Convert N@10 to ndcg@10; None for a metric that is not measured here."""
    is_ndcg = re.fullmatch(r"N@\d+", published_name)
    return f"ndcg@{published_name[2:]}" if is_ndcg else METRIC_NAMES.get(published_name)
