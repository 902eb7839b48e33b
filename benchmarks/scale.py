"""Data larger than memory: time, resident memory and bytes read, from 10⁴ to 2·10⁷ documents.

``python -m benchmarks.scale`` runs all measurements, each in a separate process, and stores them in
results/scale.json; ``--only paths,growth`` updates only these. Synthetic data are stored under
benchmarks/out. Everything together needs 35 GB of disk space and half an hour.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.competitors import celer_, skglm_
from benchmarks.data_sets import large
from benchmarks.harness import (
    OUT,
    RESULTS,
    Skipped,
    current_megabytes,
    in_subprocess,
    peak_megabytes,
    save_result,
    seconds,
)
from benchmarks.pairs import build_pairs
from ranksieve import SparseRanker
from ranksieve._types import FloatArray, IntArray
from ranksieve.data.dataset import Dataset
from ranksieve.data.disk import DiskMatrix, write_block
from ranksieve.data.inputs import numbered_names
from ranksieve.io.batches import BatchSource, dataset_source, write_source
from ranksieve.io.folder import is_folder_dataset, open_dataset
from ranksieve.io.letor import read_letor, write_letor
from ranksieve.io.stream import stream_letor
from ranksieve.objective import make_objective
from ranksieve.path import sparse_path
from ranksieve.penalties import L1
from ranksieve.solvers import Problem

MEGABYTE = 1e6
MILLION = 1_000_000
TOL = 1e-4


def folder_of(n_docs: int) -> Path:
    """Folder with synthetic data of this size; written if it does not exist."""
    folder = OUT / "data" / f"large-{n_docs}.ranksieve"
    if not is_folder_dataset(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        parts = (large.draw_part(number) for number in range(n_docs // large.PART))
        batches = itertools.chain.from_iterable(dataset_source(part, None).batches for part in parts)
        about = {"source": None, "profile": None}
        write_source(
            BatchSource(batches, np.dtype(np.float32), numbered_names, np.array, about), folder, "keep"
        )
    return folder


def in_memory(folder: Path) -> Dataset:
    """Read the data of a folder into memory, block by block."""
    data = open_dataset(folder)
    X = np.empty(data.X.shape, data.X.dtype)
    for a, b in itertools.pairwise(data.X.starts.tolist()):
        X[a:b] = data.X[a:b]
    return Dataset(X, np.array(data.y), data.qid)


# --- Parts: each runs in a separate process and prints its result as JSON ----------------------------------


def path(folder: str, where: str, n_alphas: str) -> dict[str, Any]:
    """The path for data in memory or on disk."""
    data = in_memory(Path(folder)) if where == "memory" else open_dataset(folder)
    sparse_path(large.draw_part(0), n_alphas=2, tol=TOL)  # compile
    start = time.perf_counter()
    solved = sparse_path(data, n_alphas=int(n_alphas), tol=TOL)
    seconds_taken = time.perf_counter() - start
    result: dict[str, Any] = {
        "seconds": seconds_taken,
        "resident_mb": peak_megabytes(),
        "data_mb": data.X.nbytes / MEGABYTE,
        "steps": int(solved.n_iter.sum()),
        "features": int(solved.n_nonzero[-1]),
        "largest_relative_gap": float(solved.relative_gaps.max()),
        "coefficients": hashlib.sha256(solved.coefs.tobytes()).hexdigest()[:16],
    }
    if solved.passes is not None:
        result |= {"full_passes": solved.passes.full, "partial_passes": solved.passes.partial}
        result |= {"read_mb": data.X.bytes_read / MEGABYTE, "passes": str(solved.passes)}
    return result


def one_pass(folder: str) -> dict[str, Any]:
    """Times of one pass over a folder: reading, and the parts of value, gradient and Hessian."""
    data = open_dataset(folder)
    objective: Any = make_objective(data)
    w = np.zeros(data.n_features)
    w[10::13] = 0.1
    all_columns, few_columns = np.arange(data.n_features), np.flatnonzero(w)

    def read(columns: IntArray) -> None:
        for a, b in itertools.pairwise(data.X.starts.tolist()):
            data.X.read(a, b, columns)

    point = objective.evaluate(w)
    g = objective.loss.queries.restore(point.at.gradient)
    times = {
        "read_all": min(seconds(lambda: read(all_columns), 3)),
        "read_few": min(seconds(lambda: read(few_columns), 3)),
        "transposed": min(seconds(lambda: objective.features.transposed(g), 3)),
        "scores_of_few": min(seconds(lambda: objective.scores(w), 3)),
        "loss": min(seconds(lambda: objective.loss.evaluate(point.scores), 3)),
        "hessian_of_few": min(seconds(lambda: objective.hessian(point, few_columns), 3)),
    }
    speeds = _disk_and_memory_speed(data)
    return {**{f"{name}_s": t for name, t in times.items()}, "resident_mb": peak_megabytes(), **speeds}


def _disk_and_memory_speed(data: Dataset) -> dict[str, float]:
    """Speed of reading 1 GB from disk without the page cache, and of copying in memory."""
    file, size = data.X.path, min(data.X.nbytes, 2**30)
    with file.open("rb", buffering=0) as raw:
        os.posix_fadvise(raw.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
        buffer, start, n_read = bytearray(2**23), time.perf_counter(), 0
        while n_read < size:
            n_read += raw.readinto(buffer)
        disk = n_read / (time.perf_counter() - start)
    block = np.ones(2**25)
    memory = 2 * block.nbytes / min(seconds(block.copy, 5))
    return {"disk_mb_per_s": disk / MEGABYTE, "memory_mb_per_s": memory / MEGABYTE}


def gradient(n_docs: str) -> dict[str, Any]:
    """Value and gradient for ``n_docs`` documents in memory."""
    n = int(n_docs)
    data = large.draw(max(n, large.PART)) if n < large.PART else in_memory(folder_of(n))
    if n < large.PART:
        data = data.select_queries(np.flatnonzero(np.cumsum(data.queries.sizes) <= n))
    objective = make_objective(data)
    w = np.zeros(data.n_features)
    w[10::13] = 0.1
    objective.gradient(objective.evaluate(w))
    repeats = max(3, min(30, 3 * MILLION // n))
    return {
        "documents": data.n_docs,
        "seconds": min(seconds(lambda: objective.gradient(objective.evaluate(w)), repeats)),
        "pairs": int(data.pairs_per_query.sum()),
        "resident_mb": peak_megabytes(),
    }


def pairs(lists: str, n_levels: str) -> dict[str, Any]:
    """The path for a million documents in ``lists`` lists, which determine the number of pairs."""
    rng = np.random.default_rng(0)
    X = rng.random((MILLION, 20), dtype=np.float32)
    noise = rng.standard_normal(MILLION)
    y = np.clip((X[:, :3].sum(axis=1) + noise - 1.0).round(), 0, int(n_levels) - 1).astype(float)
    data = Dataset(X, y, np.repeat(np.arange(int(lists)), MILLION // int(lists)))
    start = time.perf_counter()
    solved = sparse_path(data, n_alphas=20, tol=TOL)
    return {
        "pairs": float(data.pairs_per_query.sum()),
        "seconds": time.perf_counter() - start,
        "resident_mb": peak_megabytes(),
        "largest_relative_gap": float(solved.relative_gaps.max()),
    }


def wide(min_ratio: str) -> dict[str, Any]:
    """The path for 20,000 documents in lists of 20 with 5,000 sparse features, many of which are selected."""
    data = large.draw_wide(20_000, 5_000)
    sparse_path(large.draw_wide(400, 1_000), n_alphas=5)  # compile
    memory_before, start, cpu_start = current_megabytes(), time.perf_counter(), time.process_time()
    solved = sparse_path(data, min_ratio=float(min_ratio))
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "data_mb": sparse_megabytes(data.X),
        "beyond_data_mb": peak_megabytes() - memory_before,
        "features": int(solved.n_nonzero[-1]),
        "largest_relative_gap": float(solved.relative_gaps.max()),
    }


def sparse_megabytes(X: Any) -> float:
    return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / MEGABYTE


def wide_ranker() -> dict[str, Any]:
    """SparseRanker for 20,000 documents with 5,000 sparse features."""
    data = large.draw_wide(20_000, 5_000)
    SparseRanker(max_features=3).fit(large.draw_wide(2_000, 1_000))  # compile
    current_megabytes()
    start, cpu_start = time.perf_counter(), time.process_time()
    ranker = SparseRanker().fit(data)
    times = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    return {**times, "resident_mb": peak_megabytes(), "features": len(ranker.support_)}


WIDE_SIZE = (100_000, 100_000)
WIDE_FEATURES = 500  # the path ends after the first point with more


def wide_path(solver: str, tol: str, ratio: str) -> dict[str, Any]:
    """The path of 100,000 documents × 100,000 features by ranksieve, or on pairs down to ``ratio``.

    The memory is the peak beyond that of the process with the data, and includes the pairs.
    """
    data = large.draw_wide(*WIDE_SIZE)
    ratios = np.logspace(0.0, -3.0, 100)
    ratios = ratios[ratios >= float(ratio) * (1.0 - 1e-9)]
    wide_path_of(solver, large.draw_wide(400, 1_000), ratios[:10], 1e-3)  # compile
    memory_before, cpu_start = current_megabytes(), time.process_time()
    result = wide_path_of(solver, data, ratios, float(tol))
    result["cpu_seconds"] = time.process_time() - cpu_start
    w, alpha = result.pop("w"), result.pop("alpha")
    result["beyond_data_mb"] = peak_megabytes() - memory_before
    if alpha is not None:
        problem = Problem(make_objective(data), L1(alpha))
        result["objective"] = problem.value(problem.start(w))
    return {**result, "features": int(np.count_nonzero(w)), "data_mb": sparse_megabytes(data.X)}


def wide_path_of(solver: str, data: Dataset, ratios: FloatArray, tol: float) -> dict[str, Any]:
    """Seconds, and the last weights and α (None for another objective), of one path."""
    start = time.perf_counter()
    if solver == "ranksieve":
        path = sparse_path(data, tol=tol, max_features=WIDE_FEATURES // 2)
        taken, ratio = time.perf_counter() - start, float(path.alphas[-1] / path.alphas[0])
        steps = {"ratio": ratio, "steps": int(path.n_iter.sum())}
        return {"seconds": taken, "points": len(path), **steps, "w": path.coefs[-1], "alpha": path.alphas[-1]}
    K, signs = build_pairs(data)
    K = K.tocsc()
    times = {"pairs_seconds": time.perf_counter() - start, "pairs": len(signs)}
    times["pairs_mb"] = sparse_megabytes(K)
    start = time.perf_counter()
    alpha = None
    if solver == "celer":
        w = celer_.path_of_pairs(K, signs, ratios, tol)[:, -1]
    else:
        largest = 2.0 * np.abs(K.T @ signs).max() / len(signs)
        *_, w = skglm_.path_of_pairs(K, signs, largest * ratios, tol * largest)
        alpha = float(largest * ratios[-1])
    return {"seconds": time.perf_counter() - start, **times, "points": len(ratios), "w": w, "alpha": alpha}


def online(file: str, what: str) -> dict[str, Any]:
    """One pass over a LETOR file: only parse it, or fit MinBatSRank."""
    from ranksieve import MinBatSRank

    ranker = MinBatSRank(n_epochs=1)
    small = Path(file).with_suffix(".small.txt")
    ranker.fit_file(small)  # compile
    start = time.perf_counter()
    if what == "parse":
        for _ in stream_letor(file):
            pass
    else:
        ranker.fit_file(file)
    return {"seconds": time.perf_counter() - start, "resident_mb": peak_megabytes()}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "path": path,
    "one_pass": one_pass,
    "gradient": gradient,
    "pairs": pairs,
    "wide": wide,
    "wide_ranker": wide_ranker,
    "wide_path": wide_path,
    "online": online,
}


# --- Measurements ------------------------------------------------------------------------------------------


def storage() -> Iterator[tuple[str, Any]]:
    """Reading all columns, and 20 of 136 columns, of raw numbers and of Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    raw, parquet = OUT / "data" / "storage.bin", OUT / "data" / "storage.parquet"
    raw.parent.mkdir(parents=True, exist_ok=True)
    writer: Any = None
    starts = [0]
    with raw.open("wb") as file:
        for number in range(8):
            X = large.draw_part(number).X
            write_block(file, X, np.float32)
            starts.append(starts[-1] + len(X))
            table = pa.table({f"f{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})
            if writer is None:
                writer = pq.ParquetWriter(parquet, table.schema, compression="none", use_dictionary=False)
            writer.write_table(table)
    writer.close()
    matrix, stored = DiskMatrix(raw, starts, X.shape[1], np.float32), pq.ParquetFile(parquet)
    for name, columns in (("all", np.arange(X.shape[1])), ("20", np.arange(3, 123, 6))):

        def read_raw(columns: IntArray = columns) -> None:
            for a, b in itertools.pairwise(starts):
                matrix.read(a, b, columns)

        def read_parquet(columns: IntArray = columns) -> None:
            for group in range(stored.num_row_groups):
                for column in stored.read_row_group(group, columns=[f"f{j}" for j in columns]).columns:
                    column.to_numpy()

        times = [min(seconds(work, 3)) for work in (read_raw, read_parquet)]
        yield f"storage_{name}_columns_raw_s", times[0]
        yield f"storage_{name}_columns_parquet_s", times[1]
        yield f"storage_{name}_columns_ratio", times[1] / times[0]
    raw.unlink()
    parquet.unlink()


def paths() -> Iterator[tuple[str, Any]]:
    """The path for 4,000,000 documents in memory and on disk, 50 points."""
    folder = folder_of(4 * MILLION)
    results = {
        where: in_subprocess("benchmarks.scale", "--part", "path", str(folder), where, "50")
        for where in WHERE
    }
    for where, result in results.items():
        yield from ((f"path_4m_{where}_{name}", value) for name, value in result.items())
    yield "path_4m_same_coefficients", len({result["coefficients"] for result in results.values()}) == 1
    yield "path_4m_memory_resident_over_data", results["memory"]["resident_mb"] / results["memory"]["data_mb"]


def larger() -> Iterator[tuple[str, Any]]:
    """The path for 20,000,000 documents on disk, 20 points; times of one pass."""
    folder = folder_of(20 * MILLION)
    for name, arguments in (("path", ("disk", "20")), ("one_pass", ())):
        result = in_subprocess("benchmarks.scale", "--part", name, str(folder), *arguments)
        yield from ((f"{name}_20m_{key}", value) for key, value in result.items())
    shutil.rmtree(folder)


def passes() -> Iterator[tuple[str, Any]]:
    """Times of one pass over 4,000,000 documents on disk."""
    result = in_subprocess("benchmarks.scale", "--part", "one_pass", str(folder_of(4 * MILLION)))
    yield from ((f"one_pass_4m_{key}", value) for key, value in result.items())


def growth() -> Iterator[tuple[str, Any]]:
    """Value and gradient for 10⁴ to 4·10⁶ documents."""
    sizes = (10_000, 62_500, 250_000, MILLION, 4 * MILLION)
    results = [in_subprocess("benchmarks.scale", "--part", "gradient", str(n)) for n in sizes]
    for n, result in zip(sizes, results, strict=True):
        yield f"gradient_{n}_ms", 1e3 * result["seconds"]
    logs = [np.log([result[key] for result in results]) for key in ("documents", "seconds")]
    yield "gradient_exponent", float(np.polyfit(logs[0], logs[1], 1)[0])
    yield "gradient_exponent_from_62500", float(np.polyfit(logs[0][1:], logs[1][1:], 1)[0])


def many_pairs() -> Iterator[tuple[str, Any]]:
    """The path for a million documents in lists of 20, of 1,000, and in one list."""
    for lists in (50_000, 1_000, 1):
        result = in_subprocess("benchmarks.scale", "--part", "pairs", str(lists), "5")
        yield from ((f"million_in_{lists}_lists_{key}", value) for key, value in result.items())


def wide_sparse() -> Iterator[tuple[str, Any]]:
    """The path for 5,000 sparse features, to a hundredth and to a thousandth of the first α."""
    for min_ratio in ("1e-2", "1e-3"):
        result = in_subprocess("benchmarks.scale", "--part", "wide", min_ratio)
        yield from ((f"wide_{min_ratio}_{key}", value) for key, value in result.items())
    result = in_subprocess("benchmarks.scale", "--part", "wide_ranker")
    yield from ((f"wide_ranker_{key}", value) for key, value in result.items())


WIDE_RACE = (("skglm", "1e-3"), ("celer", "1e-4"))
"""Competitors on pairs with their tolerances, relative to the largest gradient and to the first objective."""


def wide_race() -> Iterator[tuple[str, Any]]:
    """The path of 100,000 × 100,000 sparse data to 500 features, against skglm and celer on pairs.

    skglm minimises the same objective; celer has no squared hinge and minimises the logistic loss of the same
    pairs.
    """
    ours = in_subprocess("benchmarks.scale", "--part", "wide_path", "ranksieve", "1e-6", "0")
    yield from ((f"wide_path_ranksieve_{key}", value) for key, value in ours.items())
    for name, tol in WIDE_RACE:
        theirs = in_subprocess("benchmarks.scale", "--part", "wide_path", name, tol, str(ours["ratio"]))
        yield from ((f"wide_path_{name}_{key}", value) for key, value in theirs.items())
        if "objective" in theirs:
            yield f"wide_path_{name}_distance", theirs["objective"] / ours["objective"] - 1.0


def texts() -> Iterator[tuple[str, Any]]:
    """Writing and reading LETOR text, and online learning from 2 GB of it."""
    small, file = OUT / "data" / "large.small.txt", OUT / "data" / "large.txt"
    part = large.draw_part(0)
    write_letor(part, small)
    yield "write_62500_s", min(seconds(lambda: write_letor(part, small), 3))
    yield "read_62500_s", min(seconds(lambda: read_letor(small, dtype=np.float32), 3))
    with file.open("wb") as out:
        for number in range(-(-2_000_000_000 // small.stat().st_size)):
            write_letor(large.draw_part(number), small)
            out.write(small.read_bytes())
    yield "text_mb", file.stat().st_size / MEGABYTE
    for what in ("parse", "learn"):
        runs = [in_subprocess("benchmarks.scale", "--part", "online", str(file), what) for _ in range(3)]
        yield f"online_{what}_s", min(run["seconds"] for run in runs)
        yield f"online_{what}_resident_mb", max(run["resident_mb"] for run in runs)
    file.unlink()


def cluster() -> Iterator[tuple[str, Any]]:
    """The path with two and four worker processes."""
    try:
        from benchmarks.scale_dask import measure
    except ImportError as error:
        raise Skipped(f"Dask is not installed ({error})") from None
    yield from ((f"cluster_{name}", value) for name, value in measure().items())


WHERE = ("memory", "disk")
MEASUREMENTS = {
    function.__name__: function
    for function in (
        storage,
        growth,
        many_pairs,
        wide_sparse,
        wide_race,
        paths,
        passes,
        larger,
        texts,
        cluster,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default=",".join(MEASUREMENTS), help=f"measurements: {', '.join(MEASUREMENTS)}"
    )
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()  # ignore the arguments of python -m benchmarks --full
    if options.part:
        print(json.dumps(PARTS[options.part[0]](*options.part[1:])))
        return
    file = RESULTS / "scale.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    results.pop("about", None)
    for name in options.only.split(","):
        try:
            for key, value in MEASUREMENTS[name]():
                results[key] = value
                print(f"{key}  {value:.4g}" if isinstance(value, float) else f"{key}  {value}", flush=True)
        except Skipped as reason:
            print(f"skipped {name}: {reason}")
        save_result("scale", results, quiet=True)


if __name__ == "__main__":
    main()
