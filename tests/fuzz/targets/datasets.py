"""Data sets: CSV, files of any kind, and folders."""

from __future__ import annotations

import json
import shutil
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import ranksieve as rs
from tests.fuzz.mutated_json import mutated_json
from tests.fuzz.mutations import mutated
from tests.fuzz.refusals import outcome, scratch
from tests.fuzz.targets.base import Files

TABLES = [
    b"qid,label,bm25,price\n1,2,0.5,3\n1,0,,4\n2,1,NULL,5\n",
    b'qid,label,doc_id,title,f1\nred,1,7,"a, b",0.5\nred,0,8,"c\nd",1e3\n"x y",2,9,,-0\n',
    b"qid;label;a;b\n1;0;0,5;1\n1;1;2,25;3\n",
    b"qid\tlabel\ta\tok\n5\t1\t3\ttrue\n6\t0\t4\tfalse\n",
    b"qid,label,document_weight,a,comment\n1,1,2,3,x\n1,0,0.5,4,y\n",
]
LETOR = [b"1 qid:1 1:0.5 2:3 # docid = a\n0 qid:1 1:0 2:NULL # docid = b\n2 qid:2 2:7\n"]


def same_data(first: rs.Dataset, again: rs.Dataset) -> None:
    """Assert the same features, labels, queries and names."""
    assert again.feature_names == first.feature_names, "names"
    assert np.asarray(again.X).tobytes() == np.asarray(first.X).tobytes(), "features"
    assert again.y.tobytes() == first.y.tobytes(), "labels"
    assert again.qid.tolist() == first.qid.tolist(), "query ids"


def comes_back(data: rs.Dataset, path: Path) -> None:
    """Assert that a round trip through a folder keeps the data of any reader."""
    assert np.isfinite(data.y).all()
    assert len(data.feature_names) == data.n_features
    folder = scratch() / "back.ranksieve"
    rs.write_dataset(data, folder)
    back = rs.read_dataset(folder)
    order = data.queries.order
    assert np.array_equal(np.asarray(back.X[:]), np.asarray(data.X)[order], equal_nan=True), "features"
    assert np.array_equal(back.y, data.y[order]), "labels"
    assert back.query_ids.tolist() == data.query_ids.tolist(), "query ids"
    assert list(back.texts) == list(data.texts), "texts"


def _table_comes_back(data: rs.Dataset, path: Path) -> None:
    again = scratch() / "again.csv"
    rs.write_dataset(data, again)
    if all(name == name.strip() and name for name in data.feature_names):
        back = rs.io.read_csv(again, features=[*data.feature_names])
        assert np.array_equal(back.X, data.X, equal_nan=True), "features"
        assert np.array_equal(back.y, data.y), "labels"


class Folders:
    """A folder whose header or one of whose files is damaged."""

    @cached_property
    def whole(self) -> dict[str, bytes]:
        data = rs.make_ranking(
            n_queries=4, n_features=3, n_informative=1, docs_per_query=(2, 4), random_state=1
        )
        data = rs.Dataset(
            data.X, data.y, [f"q{q}" for q in data.qid], ["a", "b", "c"],
            [f"d{row}" for row in range(data.n_docs)], texts={"title": ["ö"] * data.n_docs},
        )  # fmt: skip
        folder = scratch() / "whole.ranksieve"
        rs.write_dataset(data, folder)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def make(self, rng: Random) -> dict[str, bytes]:
        files = dict(self.whole)
        header = json.loads(files["dataset.json"])
        if rng.random() < 0.6:
            files["dataset.json"] = json.dumps(mutated_json(rng, header)).encode()
            return files
        name = rng.choice(list(files))
        files[name] = mutated(rng, files[name], list(files.values()))
        if name != "dataset.json" and rng.random() < 0.7:  # a header with the checksum of the changed file
            import zlib

            content = files[name]
            edges = zlib.crc32(content[max(0, len(content) - 4096) :], zlib.crc32(content[:4096]))
            header["files"][name] = {"bytes": len(content), "edges": edges}
            files["dataset.json"] = json.dumps(header).encode()
        return files

    def check(self, files: dict[str, bytes]) -> bool:
        folder = scratch() / "damaged.ranksieve"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        result = outcome(rs.open_dataset, folder)
        return result.accepted and outcome(_check_content, result.value).accepted


def _check_content(data: Any) -> None:
    values = np.asarray(data.X[:])
    assert values.shape == (data.n_docs, data.n_features)
    assert len(data.y) == len(data.qid) == data.n_docs
    for column in (data.doc_ids, data.comments, *data.texts.values()):
        assert column is None or len([str(one) for one in column]) == data.n_docs


CSV = Files("data.csv", rs.io.read_csv, _table_comes_back, examples=TABLES, gzip=True)
ANY_DATA = Files("data", rs.read_dataset, comes_back, examples=[*TABLES, *LETOR, *LETOR], gzip=True)
FOLDER = Folders()
