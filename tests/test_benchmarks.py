"""What ``make bench`` runs."""

import pkgutil
import runpy
from pathlib import Path

import benchmarks
from benchmarks.__main__ import main
from benchmarks.results_page import page

from ranksieve.experiment.benching import bench
from ranksieve.experiment.comparison import agreement


def test_bench_runs_the_benchmarks_and_does_not_write_the_results_page(monkeypatch):
    started = []
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: started.append(name))
    main()
    folder = Path(benchmarks.__file__).parent
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    measuring = [name for name in modules if " keep(" in (folder / f"{name}.py").read_text(encoding="utf-8")]
    assert started == [f"benchmarks.{name}" for name in measuring if name != "harness"]
    assert "benchmarks.results_page" not in started


def test_the_results_page_says_what_was_compared(synthetic_folds, tmp_path):
    folds = dict.fromkeys(("OHSUMED", "MQ2008"), synthetic_folds[:2])
    results = bench(folds, ["ranksvm", "listnet", "fenchelrank"], out=tmp_path, grid="fast", studies=False)
    text = page(results)
    counts = [row for data in results.data_sets.values() for row in agreement(data)]
    assert sum(row.n_printed for row in counts) == 508
    assert f"print 508 for these data. {sum(row.n_compared for row in counts)} are compared;" in text
    assert "5 have no counterpart" in text
    accuracy = [row for row in counts if row.kind == "NDCG and MAP"]
    assert f"**{sum(row.n_near for row in accuracy)} are within 0.003 of ours**" in text
    first = text[: text.index("## What differs, and why")]
    assert "### NDCG and MAP, paper by paper" in first
    assert "### What the papers claim, and whether it holds here" in first
    assert "HP2004 (282)" in text
    assert "### OHSUMED: how near ours come to the published numbers" in text
    assert "### MQ2008: what has no counterpart" in text
