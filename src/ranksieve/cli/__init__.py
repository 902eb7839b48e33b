"""The command line: one module per command.

``--help`` lists the commands in the order of these imports; no module imports a later one at its top.
"""

# isort: off
from ranksieve.cli import demo, methods, fit, frontier, subset, path
from ranksieve.cli import rank, evaluate, compare, hybrid, explain, scorecard, verify
from ranksieve.cli import inspect, convert
from ranksieve.cli import export, bench, tables
from ranksieve.cli.app import app, main
# isort: on

__all__ = [
    "app", "bench", "compare", "convert", "demo", "evaluate", "explain", "export", "fit", "frontier",
    "hybrid", "inspect", "main", "methods", "path", "rank", "scorecard", "subset", "tables", "verify",
]  # fmt: skip
