"""bench: the papers' experiments on a folder of LETOR folds."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from ranksieve._parallel import available_threads
from ranksieve.commands.guard import INTERRUPTED, say
from ranksieve.commands.options import listed
from ranksieve.commands.show import emit_json, progress, table, words
from ranksieve.experiment.benching import PAPER_METHODS, bench
from ranksieve.experiment.table_files import json_table
from ranksieve.experiment.tables import Table, all_tables
from ranksieve.methods import METHODS

SHOWN = ("accuracy", "significance", "times")


def run_bench(
    root: str,
    *,
    methods: str | None,
    data_sets: str | None,
    grid: str,
    select: str | None,
    profile: str | None,
    baseline: str | None,
    jobs: int | None,
    output: str,
    as_json: bool,
) -> None:
    """Run, then show the tables."""
    n_jobs = jobs or available_threads()
    names: str | Sequence[str] = PAPER_METHODS
    if methods is not None:
        names = methods if methods == "all" else listed(methods)
    if baseline is not None and baseline not in (METHODS if names == "all" else names):
        raise ValueError(f"--baseline {baseline} is not among the methods; add it to --methods")
    wanted = None if data_sets is None else listed(data_sets)
    try:
        with progress("fitting") as bar, stopped_like_ctrl_c():
            results = bench(
                root, names, out=output, data_sets=wanted, grid=grid, select=select, profile=profile,
                n_jobs=n_jobs, progress=bar,
            )  # fmt: skip
    except KeyboardInterrupt:
        say(f"interrupted; finished fits are kept in {output}, the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    show_tables(all_tables(results, baseline), as_json)
    if not as_json:
        words(f"All results are in {output}; a page about them: ranksieve report {output} -o report.html")


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end the worker processes too."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show_tables(tables: Sequence[Table], as_json: bool) -> None:
    """Tables on the terminal, or all of them as JSON."""
    if as_json:
        emit_json({"tables": [json_table(one) for one in tables]})
        return
    for one in tables:
        if one.rows and one.name in SHOWN:
            cells = [[f"{c.text}{c.marks}" for c in row] for row in one.rows]
            bold = [[c.bold for c in row] for row in one.rows]
            table(one.columns, cells, one.title, bold)
            words(one.note)
