"""The certified path on a GPU: time, share of the memory's bandwidth, and the processor beside it.

``python -m benchmarks.gpu`` measures everything on the GPU of this machine, in some minutes, and keeps it in
results/gpu.json; ``--only sizes,crossover`` some of it. ``--table`` prints what docs/gpu.md shows.
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
SIZES = {  # lists, documents of each, features
    "4M × 136, lists of 125": (32_000, 125, 136),
    "16M × 136, lists of 125": (128_000, 125, 136),
    "1M × 700, lists of 125": (8_000, 125, 700),
    "4M × 136, lists of 20": (200_000, 20, 136),
    "4M × 136, lists of 1,000": (4_000, 1_000, 136),
}
EVERY = 7  # of so many points, one gap is computed by the processor
CROSSOVER = (16, 64, 256, 1_000, 4_000)  # lists of 125


def drawn(n_lists: int, length: int, n_features: int, seed: int = 0) -> Dataset:
    """Normal features on the GPU, of which 20 tell five labels, with noise."""
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
    """How long some work took, to its end on the GPU, and what it gave."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def timings(work: Callable[[], Any], times: int = REPEATS) -> list[float]:
    return [seconds(work)[0] for _ in range(times)]


def path_of(objective: Any) -> tuple[FloatArray, list[Any]]:
    """α and results of the whole path, as sparse_path walks it."""
    objective._gradient = objective._gradient_at_zero = objective.features._kept = None
    start, grid = path_grid(objective, L1(), POINTS)
    return grid, [replace(result, point=None) for result in solve_path(objective, L1(), grid, start, TOL)]


def evaluated(objective: Objective, w: FloatArray) -> None:
    objective.gradient(objective.evaluate(w))


def recomputed(host: Dataset, results: list[Any], grid: FloatArray, every: int) -> dict[str, float]:
    """The processor's float64 gaps beside those of the GPU."""
    objective, worst, off, off_objective = make_objective(host), 0.0, 0.0, 0.0
    for alpha, result in zip(grid[::every].tolist(), results[::every], strict=True):
        point = objective.evaluate(result.w)
        slopes = L1(alpha).slopes(len(result.w))
        primal, gap = duality_gap(objective, slopes, point, objective.gradient(point))
        worst, off = max(worst, gap / primal), max(off, abs(gap - result.gap) / primal)
        off_objective = max(off_objective, abs(primal - result.objective) / primal)
    return {
        "largest": worst,
        "differ_by": off,
        "objectives_differ_by": off_objective,
        "points": len(results[::every]),
    }


def on_host(data: Dataset) -> Dataset:
    return Dataset(data.X.values.cpu().numpy(), data.y, data.qid)


def measure_sizes(found: dict[str, Any]) -> None:
    import torch

    for name, (n_lists, length, n_features) in SIZES.items():
        data = drawn(n_lists, length, n_features)
        made, objective = seconds(partial(make_objective, data))
        X = data.X.values
        X.sum()
        reading = min(timings(X.sum, 20))
        first, (grid, results) = seconds(partial(path_of, objective))
        w = results[-1].w
        evaluated(objective, w)
        evaluations = timings(partial(evaluated, objective, w), 30)
        paths = timings(partial(path_of, objective))
        again = path_of(objective)[1]
        pairs = objective.loss.normaliser
        del objective
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        whole = timings(partial(sparse_path, data, n_alphas=POINTS, tol=TOL), 3)
        one = {
            "documents": n_lists * length, "features": n_features, "length": length,
            "pairs": pairs, "reading_ms": 1e3 * reading,
            "gigabytes_per_second": X.nbytes / reading / 1e9,
            "evaluation_ms": 1e3 * median(evaluations),
            "times_of_reading_twice": median(evaluations) / (2.0 * reading),
            "gigabytes": torch.cuda.max_memory_allocated() / 1e9,
            "objective_s": made, "first_path_s": first, "path_s": median(paths), "paths_s": paths,
            "sparse_path_s": median(whole), "steps": sum(one.n_iter for one in results),
            "features_at_the_end": int(np.count_nonzero(w)),
            "largest_relative_gap": max(one.gap / one.objective for one in results),
            "same_bits_again": all(
                np.array_equal(a.w, b.w) and a.gap == b.gap for a, b in zip(results, again, strict=True)
            ),
        }  # fmt: skip
        if X.numel() <= 2.2e9:
            host = on_host(data)
            one["recomputed"] = recomputed(host, results, grid, EVERY)
            if name.startswith("4M") and length in (125,):
                processor = make_objective(host)
                path_of(make_objective(host.select_queries(np.arange(20))))  # compiles
                start = time.perf_counter()
                results = path_of(processor)[1]
                one["processor_path_s"] = time.perf_counter() - start
                one["processor_threads"] = os.cpu_count()
        found.setdefault("sizes", {})[name] = one
        print(name, json.dumps(one), flush=True)
        del data, X
        torch.cuda.empty_cache()


def both(found: dict[str, Any], name: str, key: str, host: Dataset) -> None:
    """The path of data in memory, by the processor and by the GPU, the moving included."""
    gpu = timings(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL, device="cuda"))
    processor = timings(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL), 3)
    found.setdefault(key, {})[name] = {
        "documents": host.n_docs, "features": host.n_features,
        "gpu_s": median(gpu[1:]), "processor_s": median(processor[1:]),
    }  # fmt: skip
    print(key, name, found[key][name], flush=True)


def measure_compiling(found: dict[str, Any]) -> None:
    """The first path of a process on a machine that has compiled nothing for the GPU yet."""
    host = on_host(drawn(16, 125, 136))
    sparse_path(host, n_alphas=POINTS, tol=TOL)  # compiles what the processor needs
    times = [seconds(lambda: sparse_path(host, n_alphas=POINTS, tol=TOL, device="cuda"))[0] for _ in range(2)]
    found["compiling"] = {"first_s": times[0], "second_s": times[1]}
    print("compiling", found["compiling"], flush=True)


def measure_crossover(found: dict[str, Any]) -> None:
    for n_lists in CROSSOVER:
        both(found, f"{n_lists * 125:,}", "crossover", on_host(drawn(n_lists, 125, 136)))


def measure_letor(found: dict[str, Any]) -> None:
    for name in ("OHSUMED", "MQ2008"):
        file = LETOR / name / "Fold1" / "train.txt"
        if not file.exists():
            print(f"no {file}: set RANKSIEVE_LETOR", flush=True)
            continue
        data = read_letor(file)
        both(found, name, "letor", data.replace_features(data.X.astype(np.float32)))


def fitted(data: Dataset, device: str) -> Any:
    from ranksieve import SparseRanker

    return SparseRanker(10, device=device).fit(data)


def measure_flagship(found: dict[str, Any]) -> None:
    host = on_host(drawn(4_000, 125, 136))
    for device in ("cuda", "cpu"):
        times = []
        for _ in range(2):
            took, chosen = seconds(partial(fitted, host, device))
            times.append(took)
        found.setdefault("flagship", {})[device] = {
            "documents": host.n_docs, "features": 136, "s": times, "chosen": chosen.support_.tolist(),
            "metric": float(chosen.choice_.confidence.mean),
        }  # fmt: skip
        print("flagship", device, found["flagship"][device], flush=True)


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


def table(found: dict[str, Any]) -> str:
    """What docs/gpu.md shows."""
    lines = [
        "| data | pairs | value and gradient | of reading X twice | path, 50 points to 10⁻⁴ | first path | "
        "memory | gap, in float64 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, one in found["sizes"].items():
        gap = one.get("recomputed", {}).get("largest")
        lines.append(
            f"| {name} | {one['pairs']:.2g} | {one['evaluation_ms']:.2f} ms | "
            f"{one['times_of_reading_twice']:.2f}× | {one['path_s']:.2f} s | {one['first_path_s']:.1f} s | "
            f"{one['gigabytes']:.1f} GB | {'not computed' if gap is None else f'{gap:.1e}'} |"
        )
    lines += [
        "",
        "| data in memory | documents | GPU, with moving | processor |",
        "| --- | --- | --- | --- |",
    ]
    rows = [*found.get("letor", {}).items(), *(("drawn", one) for one in found["crossover"].values())]
    for name, one in rows:
        lines.append(f"| {name} | {one['documents']:,} | {one['gpu_s']:.3f} s | {one['processor_s']:.3f} s |")
    if fits := found.get("flagship"):
        gpu, processor = (fits[device]["s"][-1] for device in ("cuda", "cpu"))
        what = f"SparseRanker(10) | {fits['cuda']['documents']:,}"
        lines.append(f"| {what} | {gpu:.1f} s | {processor:.1f} s |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.table:
        print(table(found))
        return
    found["machine"] = machine()
    for name in arguments.only.split(","):
        PARTS[name](found)
        arguments.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
