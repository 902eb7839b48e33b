"""Small tables: costs, signs, weights of queries, names of features, texts of queries, scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ranksieve as rs
from ranksieve.cli.options import read_scores
from ranksieve.data.costs import FeatureCosts, make_costs
from ranksieve.io.letor import FeatureNames, read_names
from ranksieve.io.tables import read_queries
from tests.fuzz.targets.base import Files

NAMES = ("f1", "f2", "bm25_title", "bm25_body", "price")


def _costs_come_back(costs: FeatureCosts, path: Path) -> None:
    again = make_costs(json.loads(json.dumps(costs.to_dict())))
    assert again.to_dict() == costs.to_dict()
    costs.columns(NAMES)


def _names_come_back(names: FeatureNames, path: Path) -> None:
    if not names.exact and len(names.names) < 1000:
        path.write_text("".join(f"{j}:{name}\n" for j, name in enumerate(names.names, 1)), encoding="utf-8")
        assert read_names(path).names == names.names


def _all_finite(numbers: Any, path: Path) -> None:
    values = numbers.values() if isinstance(numbers, dict) else numbers
    assert all(abs(value) < float("inf") for value in values)


COSTS = Files(
    "costs.csv",
    rs.io.read_costs,
    _costs_come_back,
    examples=[
        b"feature,cost\nf1,2\nf2,0.5\nbm25_*,1\n*,3\n",
        b"feature,cost,group\nf1,2,\nbm25_title,4,index\nbm25_body,4,index\n*,1,\n",
        b'feature;cost\n"f1";1\n"a\nb";2\n',
        b"feature\tcost\nf1\t1e3\nprice\t0\n",
    ],
    values=[
        {"f1": 1, "f2": 2.5, "*": 0},
        {
            "features": {"f1": 1, "*": 2},
            "groups": {"index": {"cost": 4, "features": ["bm25_title", "bm25_body"]}},
        },
    ],
    gzip=True,
)
SIGNS = Files(
    "signs.csv",
    rs.io.read_signs,
    examples=[b"feature,sign\nf1,+\nf2,-\nbm25_*,0\n", b"feature\tsign\nf1\t1\n"],
)
QUERY_WEIGHTS = Files(
    "weights.csv",
    rs.io.read_query_weights,
    _all_finite,
    examples=[b"query,weight\n1,2\n2,0.5\n", b"q7\t1\nq8\t0\n", b'"a,b",1\n"c\nd",2\n'],
)
FEATURE_NAMES = Files(
    "d.txt.names",
    read_names,
    _names_come_back,
    examples=[b"bm25\nprice\nclicks\n", b"1:bm25\n3:price\n", b"index,name\n1,bm25\n2,price\n"],
)
QUERY_TEXTS = Files(
    "queries.tsv",
    read_queries,
    examples=[b"1\tred shoe\n2\tboot\n", b'qid,query\n1,"red, shoe"\n2,hat\n', "q1;größe\n".encode()],
)
SCORES = Files(
    "scores.txt",
    lambda path: read_scores(str(path)),
    _all_finite,
    examples=[b"0.5\n-1e3\n2\n", b"1\r\n2\r\n"],
)
