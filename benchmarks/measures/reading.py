"""Time of read_letor and of scikit-learn's load_svmlight_file, and peak memory relative to the arrays.

The files are repetitions of MQ2008's test data (without LETOR data: synthetic text of the same kind).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.competitors import RANKSIEVE
from benchmarks.harness import OUT, letor_folder, peak_megabytes, timings
from benchmarks.measures.base import Measure, Row, Run, row
from ranksieve.data.dataset import Dataset, TextColumn
from ranksieve.io.letor import read_letor
from ranksieve.synthetic import make_ranking

MISSING_PAIR = re.compile(rb" \d+:(?:NULL|NaN)", re.IGNORECASE)
SIZES = {"5 MB": 5_000_000, "28 MB": 28_000_000}


def reading(run: Run) -> Iterator[Row]:
    small, large = text_file(100_000), text_file(SIZES[run.data])
    is_ranksieve = run.competitor.name == RANKSIEVE
    read, size = (read_letor, bytes_of_dataset) if is_ranksieve else (scikit_learn, bytes_of_svmlight)
    read(small)  # compile
    initial = peak_megabytes()
    arrays = size(read(large)) / 2**20
    peak = peak_megabytes() - initial
    if is_ranksieve:
        check_equal(small)
    megabytes = large.stat().st_size / 1e6
    yield row(
        "reading LETOR text", "s", timings(lambda: read(large), run.repeats, run.budget), megabytes=megabytes
    )
    yield row("peak over arrays", "×", [peak / arrays], arrays_megabytes=arrays)


def text_file(size: int) -> Path:
    """File of about this size; written if it does not exist."""
    path = OUT / "data" / f"reading_{size}.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = source_text()
        lines = (text * -(-size // len(text)))[:size]
        path.write_bytes(lines[: lines.rindex(b"\n") + 1])
    return path


def source_text() -> bytes:
    """Test data of all folds, without missing values, which scikit-learn cannot read."""
    files = sorted((letor_folder() / "MQ2008").glob("Fold*/test.txt"))
    text = b"".join(file.read_bytes() for file in files) or synthetic_text()
    return MISSING_PAIR.sub(b"", text)


def synthetic_text() -> bytes:
    """LETOR text of 46 features with six decimals, and document ids in comments."""
    data = make_ranking(n_queries=784, n_features=46, docs_per_query=(5, 120))
    rows = []
    for k, (label, query, values) in enumerate(zip(data.y, data.qid, data.X, strict=True)):
        pairs = " ".join(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))
        rows.append(f"{label:.0f} qid:{query} {pairs} #docid = GX{k:03}-00-{k:07} inc = 1 prob = 0.5")
    return "\n".join([*rows, ""]).encode()


def scikit_learn(path: Path) -> Any:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), query_id=True)


def bytes_of_dataset(data: Dataset) -> int:
    texts = [text for text in (data.comments, data.doc_ids) if isinstance(text, TextColumn)]
    positions = [array for text in texts for array in (text.begins, text.ends)]
    block = [text.block for text in texts if text is data.comments]
    return sum(array.nbytes for array in [data.X, data.y, data.qid, *positions, *block])


def bytes_of_svmlight(result: Any) -> int:
    X, y, qid = result
    return sum(array.nbytes for array in (X.data, X.indices, X.indptr, y, qid))


def check_equal(path: Path) -> None:
    """Raise an error unless both readers give the same numbers."""
    data, (X, y, qid) = read_letor(path), scikit_learn(path)
    same = np.array_equal(data.X, X.toarray()) and np.array_equal(data.y, y) and np.array_equal(data.qid, qid)
    if not same:
        raise ValueError(f"{path}: the two readers give different numbers")


MEASURE = Measure("reading", "Reading LETOR text", reading, tuple(SIZES))
