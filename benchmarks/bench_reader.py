"""read_letor against scikit-learn's load_svmlight_file: time, memory and compile time.

``python -m benchmarks.bench_reader`` takes MQ2008, repeated to 20 MB or more (without LETOR data: synthetic
text of its kind). Times are the best of five in one process. Memory is the rise of the peak resident size
(VmHWM, else ru_maxrss) over one call, in a fresh process that has read a small file before.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.harness import in_subprocess, keep, letor_root, peak_megabytes, seconds
from ranksieve.data.dataset import Dataset
from ranksieve.formats.letor import read_letor, write_letor
from ranksieve.generators.ranking import make_ranking

LEAST_BYTES = 20_000_000
REPEATS = 5
MISSING_PAIR = re.compile(rb" \d+:(?:NULL|NaN)", re.IGNORECASE)


def mq2008_text() -> tuple[str, bytes]:
    """The test parts of all folds, repeated; scikit-learn cannot read missing values, so they are cut out."""
    root = letor_root()
    files = sorted((root / "MQ2008").glob("Fold*/test.txt")) if root else []
    text = b"".join(file.read_bytes() for file in files) or synthetic_text()
    text = MISSING_PAIR.sub(b"", text)
    return "MQ2008" if files else "synthetic", text * -(-LEAST_BYTES // len(text))


def synthetic_text() -> bytes:
    """46 features in six decimals, document ids in comments."""
    data = make_ranking(n_queries=784, n_features=46, docs_per_query=(5, 120))
    rows = []
    for row, (label, query, values) in enumerate(zip(data.y, data.qid, data.X, strict=True)):
        pairs = " ".join(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))
        rows.append(f"{label:.0f} qid:{query} {pairs} #docid = GX{row:03}-00-{row:07} inc = 1 prob = 0.5")
    return "\n".join([*rows, ""]).encode()


def scikit_learn(path: str) -> Any:
    return load_svmlight_file(path, query_id=True)


def bytes_of_dataset(data: Dataset) -> int:
    texts = [part for text in (data.comments, data.doc_ids) if text for part in (text.begins, text.ends)]
    block = [data.comments.block] if data.comments else []
    return sum(array.nbytes for array in [data.X, data.y, data.qid, *texts, *block])


def bytes_of_svmlight(result: Any) -> int:
    X, y, qid = result
    return sum(array.nbytes for array in (X.data, X.indices, X.indptr, y, qid))


READERS: dict[str, tuple[Callable[[str], Any], Callable[[Any], int]]] = {
    "ours": (read_letor, bytes_of_dataset),
    "theirs": (scikit_learn, bytes_of_svmlight),
}


def memory(reader: str, small: str, large: str) -> dict[str, float]:
    read, size = READERS[reader]
    start = time.perf_counter()
    read(small)
    first = time.perf_counter() - start
    before = peak_megabytes()
    result = read(large)
    return {"first_seconds": first, "peak": peak_megabytes() - before, "arrays": size(result) / 2**20}


def check_equal(path: str) -> Dataset:
    """Both readers must have read the same numbers."""
    ours, (X, y, qid) = read_letor(path), scikit_learn(path)
    if not (
        np.array_equal(ours.X, X.toarray()) and np.array_equal(ours.y, y) and np.array_equal(ours.qid, qid)
    ):
        raise SystemExit("the two readers disagree")
    return ours


def compare(folder: Path) -> dict[str, Any]:
    name, text = mq2008_text()
    large, small = str(folder / "large.txt"), str(folder / "small.txt")
    Path(large).write_bytes(text)
    Path(small).write_bytes(b"\n".join(text.split(b"\n", 200)[:200]) + b"\n")
    data = check_equal(large)
    ours, theirs = (min(seconds(lambda: READERS[reader][0](large), REPEATS)) for reader in READERS)  # noqa: B023
    os.environ["NUMBA_CACHE_DIR"] = str(folder / "cache")
    compiling, cached = (in_subprocess("benchmarks.bench_reader", "ours", small, large) for _ in range(2))
    peer = in_subprocess("benchmarks.bench_reader", "theirs", small, large)
    return {
        "data": name,
        "megabytes": len(text) / 1e6,
        "documents": data.n_docs,
        "read_letor_seconds": ours,
        "load_svmlight_file_seconds": theirs,
        "times_faster": theirs / ours,
        "read_letor_megabytes_per_second": len(text) / 1e6 / ours,
        "read_letor_arrays_mebibytes": cached["arrays"],
        "read_letor_peak_mebibytes": cached["peak"],
        "read_letor_peak_over_arrays": cached["peak"] / cached["arrays"],
        "load_svmlight_file_peak_over_arrays": peer["peak"] / peer["arrays"],
        "first_call_seconds_compiling": compiling["first_seconds"],
        "first_call_seconds_cached": cached["first_seconds"],
        "write_letor_seconds": min(seconds(lambda: write_letor(data, folder / "copy.txt"), 2)),
    }


def main() -> None:
    if len(sys.argv) == 4:
        print(json.dumps(memory(*sys.argv[1:])))
        return
    with tempfile.TemporaryDirectory() as folder:
        keep("reader_vs_svmlight", compare(Path(folder)))


if __name__ == "__main__":
    main()
