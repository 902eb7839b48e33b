"""Judgements, TREC files and feature logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from ranksieve.io.tables import Judgements
from tests.fuzz.targets.base import Files

QRELS = b"1 0 7555 4\n1 0 1370 0\n2 0 a-b 1\n"
RUN = b"1 Q0 7555 1 9.5 tag\n1 Q0 1370 2 -1e-3 tag\n2 Q0 a-b 1 0 tag\n"
GRADES = Judgements({"1": {"7555": 4.0, "1370": 0.0}, "2": {"a-b": 1.0}}, {"rambo": "1"})


def _hit(document: str, *values: Any, entry: str = "log_entry1") -> dict[str, Any]:
    pairs = [{"name": f"f{j}", "value": value} for j, value in enumerate(values, 1)]
    return {"_id": document, "fields": {"_ltrlog": [{entry: pairs}]}}


def _response(query: Any, *hits: dict[str, Any]) -> dict[str, Any]:
    return {"qid": query, "hits": {"hits": list(hits)}}


FIRST = _response(1, _hit("7555", 9.5, 1), _hit("1370", 2.5, None))
SECOND = _response("2", _hit("a-b", 0.5, 3))
KEYED = {"rambo": {"hits": {"hits": [_hit("7555", 1.5, 2.0)]}}}


def _lines(value: Any) -> bytes:
    """JSON lines for a list, otherwise one JSON value."""
    import json

    return "\n".join(map(json.dumps, value if isinstance(value, list) else [value])).encode()


def _is_data(data: rs.Dataset, path: Path) -> None:
    assert np.isfinite(data.y).all()
    assert not np.isinf(data.X).any()
    assert len(data.doc_ids or ()) == data.n_docs


def _check_numbers(grades: Any, path: Path) -> None:
    assert all(np.isfinite(value) for documents in grades.values() for value in documents.values())


def _measured(run: Any, path: Path) -> None:
    _check_numbers(run, path)
    rs.evaluate_run(run, {"1": {"7555": 4.0}, "2": {"a-b": 1.0}}, ["ndcg@10", "map"])


JUDGEMENTS = Files(
    "judgements.csv",
    rs.io.read_judgements,
    lambda judgements, path: _check_numbers(judgements.grades, path),
    examples=[
        b"# qid:1: rambo\n4 qid:1 # 7555 Rambo\n3 qid:1 # 1370 First Blood\n",
        QRELS,
        b'query,doc,grade\nred shoe,7,2\n"a,b",8,0\n',
        b"grade\tkeywords\tdocId\n4\trambo\t7555\n# note\n0\trambo\t1\n",
    ],
    gzip=True,
)
TREC_QRELS = Files("qrels.txt", rs.io.read_qrels, _check_numbers, examples=[QRELS], gzip=True)
TREC_RUN = Files("model.run", rs.io.read_run, _measured, examples=[RUN], gzip=True)
LOG = Files(
    "log.jsonl",
    lambda path: rs.io.read_ltr_log(path, GRADES),
    _is_data,
    values=[
        [FIRST, SECOND],
        KEYED,
        {"qid": "2", "response": SECOND},
        {"responses": [FIRST, SECOND]},
        [FIRST],
    ],
    encode=_lines,
    gzip=True,
)
