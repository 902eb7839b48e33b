"""The numbers that the papers print, by our names of methods and metrics; methods that they print apart."""

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

# How the papers write the methods of our table; a name that is not here has no counterpart.
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
MEANT = {("SparseCSListMLE", "5", "Sparse CS ListMLE"): "sparselistmle@1"}  # so its section 4.6 says
NO_COUNTERPART = {  # by paper and metric as written: why nothing of ours can stand beside it
    ("SparseCSListMLE", "lambda"): "the λ chosen in a fold, but the paper dealt its folds anew",
    ("FenchelRank", "r"): "a radius matched to another method for a table of times, not a result",
    ("FenchelRank", "C"): "a parameter fixed for a table of times, not a result",
    ("NonconvexRankSVM", "MAP relative loss %"): "a share of a mean that the paper does not print",
    ("NonconvexRankSVM", "N@10 relative loss %"): "a share of a mean that the paper does not print",
}
METRIC_NAMES = {"MAP": "map", "sparsity": "sparsity", "seconds": "seconds"}
PAIR = re.compile(r"(.+) vs (.+)")

# Methods as a paper prints them apart: a number of features, a part of the objective, another NDCG@k.
_FS_RANK, _FSM_RANK = METHODS["fsrank"], METHODS["fsmrank"]
IMPORTANCE_WEIGHTS = decades(-0.5, -5, 4)
"""λ2 in quarters of a decade: on half decades what importance brings is lost."""
_WITHOUT_SIMILARITY = parameter_grid(similarity_weight=[0.0], alpha=IMPORTANCE_WEIGHTS)
_SPARSE, _DENSE = METHODS["sparselistmle"], METHODS["cslistmle"]


def _where(method: Method, **fixed: Any) -> Sequence[Mapping[str, Any]]:
    """The points of a method's grid that have these values."""
    return [point for point in method.grid if fixed.items() <= point.items()]


VARIANTS: dict[str, Method] = {
    **{
        f"fsrank-k{k}": replace(_FS_RANK, title=f"FS-Rank, k = {k}", grid=_where(_FS_RANK, max_features=k))
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
    """What a method or a variant is called in words."""
    return VARIANTS[name].title if name in VARIANTS else cells.method_title(name)


@dataclass(frozen=True)
class Printed:
    """One number of a paper's table.

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
class Unmatched:
    """Numbers of a paper's table that nothing of ours can stand beside, and why."""

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
class PrintedRow:
    """What some tables of one paper print for a method on a data set, by metric, as means over folds."""

    paper: str
    source: str
    means: Mapping[str, float]


@cache
def published() -> tuple[Printed, ...]:
    """All numbers that ours can stand beside."""
    return tuple(row for row in _rows() if isinstance(row, Printed))


def unmatched(data_set: str) -> list[Unmatched]:
    """The other numbers of a data set."""
    counts = Counter(row for row in _rows() if isinstance(row, Unmatched) and row.data_set == data_set)
    return [replace(row, n_numbers=times) for row, times in counts.items()]


@cache
def numbers_by_data_set() -> dict[str, int]:
    """How many numbers the papers print for each data set."""
    return dict(Counter(row.data_set for row in _rows()))


def rows_of(data_set: str, method: str) -> list[PrintedRow]:
    """What each paper prints for a method on a data set.

    Tables of one paper are taken together unless they contradict each other.
    """
    by_table: dict[tuple[str, str], dict[str, list[float]]] = {}
    for entry in published():
        if (entry.data_set, entry.method, entry.against) == (data_set, method, ""):
            place = by_table.setdefault((entry.paper, entry.table), {})
            place.setdefault(entry.metric, []).append(entry.value)
    groups: list[tuple[str, list[str], dict[str, float]]] = []
    for (paper, table), values in by_table.items():
        means = {metric: fmean(found) for metric, found in values.items()}
        for other, tables, known in groups:
            if other == paper and all(known.get(metric, mean) == mean for metric, mean in means.items()):
                tables.append(table)
                known.update(means)
                break
        else:
            groups.append((paper, [table], means))
    return [PrintedRow(paper, _source(paper, tables), means) for paper, tables, means in groups]


def _source(paper: str, tables: Sequence[str]) -> str:
    return f"{paper}, table{'s' if len(tables) > 1 else ''} {', '.join(tables)}"


@cache
def _rows() -> tuple[Printed | Unmatched, ...]:
    text = files("papers").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(_read(row) for row in csv.DictReader(text.splitlines()))


def _read(row: dict[str, str]) -> Printed | Unmatched:
    pair = PAIR.fullmatch(row["method"])
    written, against = (pair[1], pair[2]) if pair else (row["method"].removesuffix(" (best)"), "")
    metric = metric_name(row["metric"].removeprefix("p-value "))
    place = (row["paper"], row["table"], row["dataset"])
    if written not in NAMES or metric is None or (against and against not in NAMES):
        return Unmatched(*place, written, row["metric"], NO_COUNTERPART[row["paper"], row["metric"]])
    name = MEANT.get((row["paper"], row["table"], written), NAMES[written])
    other = NAMES[against] if against else ""
    fold = int(row["fold"].removeprefix("Fold") or 0)
    return Printed(*place, name, metric, float(row["value"]), fold, other)


def metric_name(written: str) -> str | None:
    """N@10 -> ndcg@10; None for what we do not measure."""
    return f"ndcg@{written[2:]}" if re.fullmatch(r"N@\d+", written) else METRIC_NAMES.get(written)
