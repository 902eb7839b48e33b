"""Run every benchmark: ``make bench``.

Not among them: results_page, which fits every method and rewrites docs/results.md (``make results``), and
structure, a report on the source.
"""

from __future__ import annotations

import runpy

BENCHMARKS = (
    "bench_reader",
    "choice",
    "costs",
    "fenchelrank_vs_ranksvm",
    "listmle_scaling",
    "minbatsrank_epoch",
    "path_vs_linearsvc",
    "predict_speed",
    "scorecards",
    "solvers_agree",
    "subset",
)


def main() -> None:
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
