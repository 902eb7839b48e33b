"""The certified path on a GPU: time, use of the memory bandwidth, and comparison with the CPU.

``python -m benchmarks.gpu`` measures everything on the GPU of this machine, which takes some minutes, and
stores it in results/gpu.json; ``--only sizes,crossover`` measures only these parts. ``--table`` prints the
table of docs/gpu.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ranksieve._types import FloatArray
from ranksieve.data.dataset import Dataset
from ranksieve.io.letor import read_letor
from ranksieve.objective import Objective, make_objective
from ranksieve.path import path_grid, solve_path, sparse_path
from ranksieve.penalties import L1
from ranksieve.penalties.base import duality_gap

RESULTS = Path(__file__).parent / "results" / "gpu.json"
LETOR = Path(os.environ.get("RANKSIEVE_LETOR", Path(__file__).parents[2] / "shared" / "data"))
POINTS, TOL = 50, 1e-4
REPEATS = 5
SIZES = {  # lists, documents per list, features
    "4M × 136, lists of 125": (32_000, 125, 136),
    "16M × 136, lists of 125": (128_000, 125, 136),
    "1M × 700, lists of 125": (8_000, 125, 700),
    "4M × 136, lists of 20": (200_000, 20, 136),
    "4M × 136, lists of 1,000": (4_000, 1_000, 136),
}
CHECK_EVERY = 7  # recompute the gap of every seventh point on the CPU
CROSSOVER = (16, 64, 256, 1_000, 4_000)  # lists of 125 documents


def random_data(n_lists: int, length: int, n_features: int, seed: int = 0) -> Dataset:
    """Normal features on the GPU; five labels from a noisy linear score of 20 features."""
    import torch

    from ranksieve.gpu.matrix import DeviceMatrix

    generator = torch.Generator(device="cuda").manual_seed(seed)
    n = n_lists * length
    X = torch.randn(n, n_features, generator=generator, device="cuda")
    w = torch.zeros(n_features, device="cuda")
    w[:20] = torch.randn(20, generator=generator, device="cuda")
    scores = X @ w + 3.0 * torch.randn(n, generator=generator, device="cuda")
    edges = torch.quantile(scores[:1_000_000], torch.tensor([0.5, 0.75, 0.9, 0.97], device="cuda"))
    y = torch.bucketize(scores, edges).double().cpu().numpy()
    return Dataset(DeviceMatrix(X), y, np.repeat(np.arange(n_lists), length))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, until the GPU has finished, and its result."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def timings(work: Callable[[], Any], times: int = REPEATS) -> list[float]:
    return [seconds(work)[0] for _ in range(times)]


def path_of(objective: Any) -> tuple[FloatArray, list[Any]]:
    """α and results of the whole path, computed as in sparse_path."""
    objective._gradient = objective._gradient_at_zero = objective.features._prepared = None
    start, grid = path_grid(objective, L1(), POINTS)
    return grid, [replace(result, point=None) for result in solve_path(objective, L1(), grid, start, TOL)]


def evaluate(objective: Objective, w: FloatArray) -> None:
    objective.gradient(objective.evaluate(w))


def recompute_gaps(host: Dataset, results: list[Any], grid: FloatArray, every: int) -> dict[str, float]:
    """Compare the gaps and objectives of the GPU with float64 values from the CPU."""
    objective, largest_gap, gap_error, objective_error = make_objective(host), 0.0, 0.0, 0.0
    for alpha, result in zip(grid[::every].tolist(), results[::every], strict=True):
        point = objective.evaluate(result.w)
        slopes = L1(alpha).slopes(len(result.w))
        primal, gap = duality_gap(objective, slopes, point, objective.gradient(point))
        largest_gap, gap_error = (
            max(largest_gap, gap / primal),
            max(gap_error, abs(gap - result.gap) / primal),
        )
        objective_error = max(objective_error, abs(primal - result.objective) / primal)
    return {
        "largest": largest_gap,
        "differ_by": gap_error,
        "objectives_differ_by": objective_error,
        "points": len(results[::every]),
    }


def on_host(data: Dataset) -> Dataset:
    return Dataset(data.X.values.cpu().numpy(), data.y, data.qid)


def measure_sizes(results: dict[str, Any]) -> None:
    import torch

    for name, (n_lists, length, n_features) in SIZES.items():
        data = random_data(n_lists, length, n_features)
        objective_seconds, objective = seconds(partial(make_objective, data))
        X = data.X.values
        X.sum()
        reading = min(timings(X.sum, 20))
        first_seconds, (grid, points) = seconds(partial(path_of, objective))
        w = points[-1].w
        evaluate(objective, w)
        evaluations = timings(partial(evaluate, objective, w), 30)
        paths = timings(partial(path_of, objective))
        repeated = path_of(objective)[1]
        pairs = objective.loss.normaliser
        del objective
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        whole = timings(partial(sparse_path, data, n_alphas=POINTS, tol=TOL), 3)
        row = {
            "documents": n_lists * length, "features": n_features, "length": length,
            "pairs": pairs, "reading_ms": 1e3 * reading,
            "gigabytes_per_second": X.nbytes / reading / 1e9,
            "evaluation_ms": 1e3 * median(evaluations),
            "times_of_reading_twice": median(evaluations) / (2.0 * reading),
            "gigabytes": torch.cuda.max_memory_allocated() / 1e9,
            "objective_s": objective_seconds, "first_path_s": first_seconds,
            "path_s": median(paths), "paths_s": paths,
            "sparse_path_s": median(whole), "steps": sum(point.n_iter for point in points),
            "features_at_the_end": int(np.count_nonzero(w)),
            "largest_relative_gap": max(point.gap / point.objective for point in points),
            "same_bits_again": all(
                np.array_equal(a.w, b.w) and a.gap == b.gap for a, b in zip(points, repeated, strict=True)
            ),
        }  # fmt: skip
        if X.numel() <= 2.2e9:
            host = on_host(data)
            row["recomputed"] = recompute_gaps(host, points, grid, CHECK_EVERY)
            if name.startswith("4M") and length in (125,):
                cpu_objective = make_objective(host)
                path_of(make_objective(host.select_queries(np.arange(20))))  # compile
                start = time.perf_counter()
                path_of(cpu_objective)
                row["processor_path_s"] = time.perf_counter() - start
                row["processor_threads"] = os.cpu_count()
        results.setdefault("sizes", {})[name] = row
        print(name, json.dumps(row), flush=True)
        del data, X
        torch.cuda.empty_cache()


def measure_both(results: dict[str, Any], name: str, key: str, host: Dataset) -> None:
    """Time of the path on the CPU and on the GPU (with the transfer), for data in memory."""
    gpu = timings(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL, device="cuda"))
    cpu = timings(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL), 3)
    results.setdefault(key, {})[name] = {
        "documents": host.n_docs, "features": host.n_features,
        "gpu_s": median(gpu[1:]), "processor_s": median(cpu[1:]),
    }  # fmt: skip
    print(key, name, results[key][name], flush=True)


def measure_compiling(results: dict[str, Any]) -> None:
    """Time of the first path of a process, with the compilation of the GPU kernels, and of the second."""
    host = on_host(random_data(16, 125, 136))
    sparse_path(host, n_alphas=POINTS, tol=TOL)  # compile the CPU kernels
    times = [seconds(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL, device="cuda"))[0] for _ in range(2)]
    results["compiling"] = {"first_s": times[0], "second_s": times[1]}
    print("compiling", results["compiling"], flush=True)


def measure_crossover(results: dict[str, Any]) -> None:
    for n_lists in CROSSOVER:
        measure_both(results, f"{n_lists * 125:,}", "crossover", on_host(random_data(n_lists, 125, 136)))


def measure_letor(results: dict[str, Any]) -> None:
    for name in ("OHSUMED", "MQ2008"):
        file = LETOR / name / "Fold1" / "train.txt"
        if not file.exists():
            print(f"skipped: {file} does not exist (set RANKSIEVE_LETOR)", flush=True)
            continue
        data = read_letor(file)
        measure_both(results, name, "letor", data.replace_features(data.X.astype(np.float32)))


def fit(data: Dataset, device: str) -> Any:
    from ranksieve import SparseRanker

    return SparseRanker(10, device=device).fit(data)


def measure_flagship(results: dict[str, Any]) -> None:
    host = on_host(random_data(4_000, 125, 136))
    for device in ("cuda", "cpu"):
        times = []
        for _ in range(2):
            fit_seconds, ranker = seconds(partial(fit, host, device))
            times.append(fit_seconds)
        results.setdefault("flagship", {})[device] = {
            "documents": host.n_docs, "features": 136, "s": times, "chosen": ranker.support_.tolist(),
            "metric": float(ranker.choice_.confidence.mean),
        }  # fmt: skip
        print("flagship", device, results["flagship"][device], flush=True)


PARTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "compiling": measure_compiling,
    "sizes": measure_sizes,
    "letor": measure_letor,
    "crossover": measure_crossover,
    "flagship": measure_flagship,
}


def machine() -> dict[str, Any]:
    import torch
    import triton

    return {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__,
        "processor_cores": os.cpu_count(),
    }  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """The table of docs/gpu.md."""
    lines = [
        "| data | pairs | value and gradient | ÷ reading X twice | path, 50 points to 10⁻⁴ | first path | "
        "memory | float64 gap |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in results["sizes"].items():
        gap = row.get("recomputed", {}).get("largest")
        lines.append(
            f"| {name} | {row['pairs']:.2g} | {row['evaluation_ms']:.2f} ms | "
            f"{row['times_of_reading_twice']:.2f}× | {row['path_s']:.2f} s | {row['first_path_s']:.1f} s | "
            f"{row['gigabytes']:.1f} GB | {'not computed' if gap is None else f'{gap:.1e}'} |"
        )
    lines += [
        "",
        "| data in memory | documents | GPU, with transfer | CPU |",
        "|---|---|---|---|",
    ]
    rows = [*results.get("letor", {}).items(), *(("synthetic", row) for row in results["crossover"].values())]
    for name, row in rows:
        lines.append(f"| {name} | {row['documents']:,} | {row['gpu_s']:.3f} s | {row['processor_s']:.3f} s |")
    if fits := results.get("flagship"):
        gpu, cpu = (fits[device]["s"][-1] for device in ("cuda", "cpu"))
        label = f"SparseRanker(10) | {fits['cuda']['documents']:,}"
        lines.append(f"| {label} | {gpu:.1f} s | {cpu:.1f} s |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts to measure: {', '.join(PARTS)}")
    parser.add_argument("--table", action="store_true", help="print the table of docs/gpu.md and exit")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="file for the results")
    arguments = parser.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.table:
        print(table(results))
        return
    results["machine"] = machine()
    for name in arguments.only.split(","):
        PARTS[name](results)
        arguments.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
