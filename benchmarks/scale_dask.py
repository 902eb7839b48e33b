"""The path for distributed data compared with data in memory: time, messages, cost of a killed worker.

Workers are processes on this machine with one thread each, so more workers than cores cannot be faster; the
results show the overhead of the distribution. The workers draw the documents chunk by chunk from seeds; the
reference in this process uses the same documents.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import numpy as np

import ranksieve as rs
from ranksieve._parallel import available_threads, use_threads
from ranksieve._types import AnyArray, FloatArray, IntArray

N_DOCS, N_FEATURES, DOCS_PER_QUERY, N_CHUNKS, N_ALPHAS = 200_000, 136, 100, 8, 20
WORKERS = (2, 4)


def draw_chunk(chunk: int, n_docs: int, n_features: int) -> tuple[AnyArray, FloatArray, IntArray]:
    """Features, labels and query ids of one chunk; labels follow a sparse linear score with noise."""
    rng = np.random.default_rng(chunk)
    X = rng.random((n_docs, n_features), dtype=np.float32)
    w = np.zeros(n_features, dtype=np.float32)
    w[:: max(1, n_features // 15)] = 1.0
    noisy = X @ w + rng.normal(scale=1.0, size=n_docs)
    y = np.digitize(noisy, np.quantile(noisy, [0.5, 0.75, 0.9, 0.97])).astype(np.float64)
    qid = (chunk * n_docs + np.arange(n_docs)) // DOCS_PER_QUERY
    return X, y, qid


def in_memory(n_docs: int, n_features: int) -> rs.Dataset:
    """All chunks in this process."""
    parts = [draw_chunk(k, n_docs // N_CHUNKS, n_features) for k in range(N_CHUNKS)]
    X, y, qid = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return rs.Dataset(X, y, qid)


def on_workers(client: Any, n_docs: int, n_features: int) -> Any:
    """The same chunks as Dask arrays, drawn by the workers."""
    import dask
    import dask.array as da

    size = n_docs // N_CHUNKS
    chunks = [dask.delayed(draw_chunk, nout=3)(k, size, n_features) for k in range(N_CHUNKS)]
    X = da.concatenate([da.from_delayed(chunk[0], (size, n_features), np.float32) for chunk in chunks])
    y, qid = (
        da.concatenate([da.from_delayed(chunk[k], (size,), kind) for chunk in chunks])
        for k, kind in ((1, np.float64), (2, np.int64))
    )
    return rs.distribute(X, y=y, qid=qid, client=client)


def timed_path(
    data: Any, n_alphas: int = N_ALPHAS, progress: Any = None
) -> tuple[float, float, rs.SparsePath]:
    """Wall-clock seconds, CPU seconds of this process, and the path."""
    start, cpu = time.perf_counter(), time.process_time()
    path = rs.sparse_path(data, n_alphas=n_alphas, progress=progress)
    return time.perf_counter() - start, time.process_time() - cpu, path


def distributed(
    n_workers: int, n_docs: int, n_features: int, reference: rs.SparsePath, kill: bool
) -> dict[str, Any]:
    """One run with worker processes; with ``kill`` one of them is killed in the middle of the path."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        data = on_workers(client, n_docs, n_features)
        timed_path(data, 2)  # compile, or load from the cache
        setup_seconds = time.perf_counter() - start
        traffic_before = data.traffic.copy()

        def stop(done: int, total: int) -> None:
            if kill and done == total // 2:
                os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)

        seconds, _, path = timed_path(data, progress=stop)
        traffic = data.traffic.since(traffic_before)
    steps = int(path.n_iter.sum())
    return {
        "workers": n_workers,
        "killed": kill,
        "parts": data.n_parts,
        "seconds_to_distribute": setup_seconds,
        "seconds": seconds,
        "seconds_of_work": traffic.working,
        "ms_of_messages_per_round": 1e3 * (seconds - traffic.working) / traffic.rounds,
        "cpu_seconds_of_workers": traffic.cpu,
        "newton_steps": steps,
        "rounds": traffic.rounds,
        "rounds_per_step": traffic.rounds / steps,
        "tasks": traffic.tasks,
        "messages_per_step": traffic.messages / steps,
        "bytes_sent": traffic.sent,
        "bytes_received": traffic.received,
        "bytes_per_step": (traffic.sent + traffic.received) / steps,
        "largest_difference": float(np.abs(path.coefs - reference.coefs).max()),
    }


def measure(
    n_docs: int = N_DOCS, n_features: int = N_FEATURES, workers: tuple[int, ...] = WORKERS
) -> dict[str, Any]:
    """Results of the runs in memory, with one thread and with all threads, and of the distributed runs."""
    data = in_memory(n_docs, n_features)
    with use_threads(1):
        timed_path(data, 2)
        one_thread, cpu, reference = timed_path(data)
    all_threads, _, _ = timed_path(data)
    del data
    runs = [distributed(n, n_docs, n_features, reference, kill) for n in workers for kill in (False, True)]
    for run in runs:
        run["times_one_process"] = run["seconds"] / one_thread
        run["cpu_times_one_process"] = run["cpu_seconds_of_workers"] / cpu
    return {
        "documents": n_docs,
        "features": n_features,
        "points": N_ALPHAS,
        "cores": available_threads(),
        "seconds_one_thread": one_thread,
        "cpu_seconds_one_thread": cpu,
        "seconds_all_threads": all_threads,
        "runs": runs,
    }


def main() -> None:
    print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()
