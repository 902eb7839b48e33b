"""The numbers that the papers print, by our names of methods and metrics."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
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
METRICS = {"MAP": "map", "sparsity": "sparsity", "seconds": "seconds"}
PAIR = re.compile(r"(.+) vs (.+)")


@dataclass(frozen=True)
class Printed:
    """One number of a paper; ``against`` is the second method of a p-value, ``fold`` 0 if it is a mean."""

    source: str
    data_set: str
    method: str
    metric: str
    value: float
    fold: int = 0
    against: str = ""


@cache
def published() -> tuple[Printed, ...]:
    """All numbers whose method and metric have a name here."""
    text = files("ranksieve.experiment").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(printed for row in csv.DictReader(text.splitlines()) for printed in _printed(row))


def means_of(data_set: str, method: str) -> dict[str, dict[str, float]]:
    """By source and metric, what the papers print for a method on a data set, averaged over folds."""
    found: dict[str, dict[str, list[float]]] = {}
    for entry in published():
        if (entry.data_set, entry.method, entry.against) == (data_set, method, ""):
            found.setdefault(entry.source, {}).setdefault(entry.metric, []).append(entry.value)
    return {source: {m: fmean(values) for m, values in printed.items()} for source, printed in found.items()}


def p_values_of(data_set: str) -> list[Printed]:
    """The p-values that the papers print for a data set."""
    return [entry for entry in published() if entry.data_set == data_set and entry.against]


def _printed(row: dict[str, str]) -> Iterator[Printed]:
    pair = PAIR.fullmatch(row["method"])
    written, against = (pair[1], pair[2]) if pair else (row["method"].removesuffix(" (best)"), "")
    metric = metric_name(row["metric"].removeprefix("p-value "))
    if written not in NAMES or metric is None or (against and against not in NAMES):
        return
    source = f"{row['paper']}, table {row['table']}"
    fold = int(row["fold"].removeprefix("Fold") or 0)
    other = NAMES[against] if against else ""
    yield Printed(source, row["dataset"], NAMES[written], metric, float(row["value"]), fold, other)


def metric_name(written: str) -> str | None:
    """N@10 -> ndcg@10; None for what we do not measure."""
    return f"ndcg@{written[2:]}" if re.fullmatch(r"N@\d+", written) else METRICS.get(written)
