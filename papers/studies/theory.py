"""What the papers' theorems promise beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator

from papers.studies.base import first_row
from ranksieve.experiment.cells import Cell, Table, word
from ranksieve.experiment.journal import Entry
from ranksieve.experiment.results import DataSetResults

Row = tuple[Cell, ...]


def bounds_table(results: DataSetResults) -> Table:
    """All bounds of the first fold."""
    builders = {
        "fenchelrank_bounds": _fenchelrank,
        "listmle_bounds": _listmle,
        "fsmrank_bounds": _fsmrank,
    }
    rows: list[Row] = []
    for study, build in builders.items():
        found = first_row(results, study)
        rows += build(found) if found else []
    return Table(
        "theory",
        f"{results.name}: the theorems in numbers",
        ("theorem", "of what", "setting", "bound", "measured"),
        tuple(rows),
        "First fold. FenchelRank: iterations until the objective is within ε of the minimum over the ball "
        "(in brackets, until the duality gap proves it). Sparse CS-ListMLE: until it is within ε of the "
        "minimum, ε a thousandth of the loss at w = 0, L the bound of theorem 1. FSMRank: distance from the "
        "minimum after so many iterations; and loss on test pairs minus loss on training pairs, a bound that "
        "holds with probability 0.95 if pairs are drawn independently, which pairs of one query are not.",
    )


def _fenchelrank(found: Entry) -> Iterator[Row]:
    for run in found.get("runs", ()):
        stopped = run["stopped"] if run["stopped"] is not None else f"> {run['tried']}"
        needed = run["needed"] if run["needed"] is not None else f"> {run['tried']}"
        setting = f"r = {run['radius']:g}, ε = {found['tol']:g}"
        words = (word("FenchelRank, 1"), word("iterations"), word(setting))
        yield (*words, _big(run["bound"]), word(f"{needed} ({stopped})"))


def _listmle(found: Entry) -> Iterator[Row]:
    for run in found["runs"]:
        needed = str(run["needed"]) if run["needed"] is not None else f"> {run['tried']}"
        words = (word("Sparse CS-ListMLE, 2(d)"), word("iterations"), word(f"λ = {run['alpha']:g}"))
        yield (*words, _big(run["bound"]), word(needed))


def _fsmrank(found: Entry) -> Iterator[Row]:
    if "n_iter" not in found:
        return
    after = word(f"after {found['n_iter']} iterations")
    distances = (_number(found["distance_bound"]), word(f"{found['distance']:.2g}"))
    yield (word("FSMRank, 2"), word("distance from the minimum"), after, *distances)
    setting = word(f"C = {found['radius']:.3g}, p = {found['n_pairs']:.0f}, θ = 0.05")
    excess = (_number(found["excess_bound"]), word(f"{found['excess']:+.2g}"))
    yield (word("FSMRank, 3"), word("loss on unseen pairs − on training pairs"), setting, *excess)


def _big(value: float) -> Cell:
    return Cell(value, f"{math.ceil(value):,}")


def _number(value: float) -> Cell:
    return Cell(value, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}")
