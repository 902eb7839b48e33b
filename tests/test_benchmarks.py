"""What ``make bench`` runs."""

import pkgutil
import runpy
from pathlib import Path

import benchmarks
from benchmarks.__main__ import main


def test_bench_runs_the_benchmarks_and_does_not_write_the_results_page(monkeypatch):
    started = []
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: started.append(name))
    main()
    folder = Path(benchmarks.__file__).parent
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    measuring = [name for name in modules if " keep(" in (folder / f"{name}.py").read_text(encoding="utf-8")]
    assert started == [f"benchmarks.{name}" for name in measuring if name != "harness"]
    assert "benchmarks.results_page" not in started
