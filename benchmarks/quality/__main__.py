"""Quality of rankers: ``python -m benchmarks.quality [--short] [--methods A;B] [--data A;B] [--again]``.

Fits every method on every data set and split that benchmarks/results/quality does not contain yet, split by
split, so an interrupted run has measured all methods on the same splits. ``--short``: only the first five
splits. ``--again``: measure again what is stored, for these methods and data sets. Then docs/quality.md and
its figure are written.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence

from joblib import Parallel, delayed

from benchmarks.harness import Skipped, our_version
from benchmarks.page import write_readme
from benchmarks.quality.data_sets import N_SHORT_SPLITS, N_SPLITS, SOURCES, read_source, split
from benchmarks.quality.methods import FITS, quality
from benchmarks.quality.page import write_page
from benchmarks.quality.results import Row, read_rows, save_rows
from ranksieve._parallel import use_threads


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    n_splits = N_SHORT_SPLITS if options.short else N_SPLITS
    done = {name: {} if options.again else read_rows(name) for name in options.methods}
    parts = [
        (name, data, number)
        for number, data, name in itertools.product(range(n_splits), options.data, options.methods)
        if (data, number) not in done[name]
    ]
    start = time.perf_counter()
    for k, (name, row) in enumerate(measured(parts), 1):
        done[name] = {**read_rows(name), (row.data, row.split): row}
        save_rows(name, done[name])
        print(
            f"{k} of {len(parts)}, {time.perf_counter() - start:.0f} s: {name}, {row.data} {row.split}",
            flush=True,
        )
    write_page()
    write_readme()


def measured(parts: Sequence[tuple[str, str, int]]) -> Iterator[tuple[str, Row]]:
    """Rows as they are finished, by one process per core; prints why parts are skipped."""
    skipped = set()
    for name, result in Parallel(n_jobs=-1, return_as="generator_unordered")(
        delayed(measure)(*part) for part in parts
    ):
        if isinstance(result, str):
            if result not in skipped:
                print(f"skipped: {result}", flush=True)
            skipped.add(result)
        else:
            yield name, result


def measure(name: str, data: str, number: int) -> tuple[str, Row | str]:
    """One method on one split: its row, or the reason why it was skipped."""
    with warnings.catch_warnings(), use_threads(1):
        warnings.simplefilter("ignore")
        try:
            train, valid, test = split(read_source(data), number)
            profile = SOURCES[data].profile
            start = time.perf_counter()
            fitted = FITS[name](train, valid, profile)
            seconds = time.perf_counter() - start
        except Skipped as reason:
            return name, str(reason)
        value = quality(fitted.predict, test, profile)
    return name, Row(data, number, round(value, 6), fitted.n_features, round(seconds, 3), our_version())


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--short", action="store_true", help="only the first five splits")
    parser.add_argument("--again", action="store_true", help="repeat stored measurements")
    for option, names in (("methods", list(FITS)), ("data", list(SOURCES))):
        parser.add_argument(
            f"--{option}",
            type=lambda text: text.split(";"),
            default=names,
            help=f"choose from: {'; '.join(names)}",
        )
    options = parser.parse_args(arguments)
    for option, names in (("methods", list(FITS)), ("data", list(SOURCES))):
        if unknown := sorted(set(getattr(options, option)) - set(names)):
            parser.error(f"unknown {option}: {'; '.join(unknown)}; known: {'; '.join(names)}")
    return options


if __name__ == "__main__":
    main()
