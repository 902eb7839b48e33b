"""Run every benchmark: ``make bench``."""

from __future__ import annotations

import pkgutil
import runpy

import benchmarks

HELPERS = {"__main__", "harness"}


def main() -> None:
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name not in HELPERS:
            print(f"== {module.name}", flush=True)
            runpy.run_module(f"benchmarks.{module.name}", run_name="__main__")


if __name__ == "__main__":
    main()
