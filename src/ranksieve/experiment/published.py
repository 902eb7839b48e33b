"""The numbers that the papers print, by our names of methods and metrics."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean

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
    "SparseRank": "sparserank",
    "ListNet": "listnet",
    "AdaRank-NDCG": "adarank-ndcg",
    "AdaRank": "adarank-ndcg",
    "RankBoost": "rankboost",
    "SVM MAP": "svmmap",
    "LambdaMart": "lambdamart",
    "GAS-E": "gas",
    "FSMSVM": "fsmsvm",
}
METRIC_NAMES = {"MAP": "map", "sparsity": "sparsity", "seconds": "seconds"}
PAIR = re.compile(r"(.+) vs (.+)")


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


@cache
def published() -> tuple[Printed, ...]:
    """All numbers whose method and metric have a name here."""
    text = files("ranksieve.experiment").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(printed for row in csv.DictReader(text.splitlines()) for printed in _printed(row))


def means_of(data_set: str, method: str) -> dict[str, dict[str, float]]:
    """What each paper prints for a method on a data set, by metric, as a mean over folds.

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
    return {_source(paper, tables): means for paper, tables, means in groups}


def _source(paper: str, tables: Sequence[str]) -> str:
    return f"{paper}, table{'s' if len(tables) > 1 else ''} {', '.join(tables)}"


def p_values_of(data_set: str) -> list[Printed]:
    """The p-values that the papers print for a data set."""
    return [entry for entry in published() if entry.data_set == data_set and entry.against]


def _printed(row: dict[str, str]) -> Iterator[Printed]:
    pair = PAIR.fullmatch(row["method"])
    written, against = (pair[1], pair[2]) if pair else (row["method"].removesuffix(" (best)"), "")
    metric = metric_name(row["metric"].removeprefix("p-value "))
    if written not in NAMES or metric is None or (against and against not in NAMES):
        return
    fold = int(row["fold"].removeprefix("Fold") or 0)
    other = NAMES[against] if against else ""
    place = (row["paper"], row["table"], row["dataset"])
    yield Printed(*place, NAMES[written], metric, float(row["value"]), fold, other)


def metric_name(written: str) -> str | None:
    """N@10 -> ndcg@10; None for what we do not measure."""
    return f"ndcg@{written[2:]}" if re.fullmatch(r"N@\d+", written) else METRIC_NAMES.get(written)
