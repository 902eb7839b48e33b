"""path: the certified path as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ranksieve.commands.files import beside, check_outputs, read_data, write_text
from ranksieve.commands.guard import while_doing
from ranksieve.commands.show import emit_json, json_text, progress, table, words
from ranksieve.path import SparsePath, sparse_path
from ranksieve.report.words import certificate

SHOWN_POINTS = 10
SHOWN_NAMES = 6


def walk_path(train: str, *, missing: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Fit the path, write and show it."""
    if options.get("l1_ratio") is not None and options["penalty"] == "l1":
        raise ValueError("--l1-ratio belongs to --penalty elastic_net; with l1 leave it out")
    check_outputs([output], [train])
    data = read_data(train, missing)
    with progress(f"fitting {train}") as bar, while_doing(f"fitting {train}"):
        path = sparse_path(data, progress=bar, **options)
    if output is not None:
        write_text(json_text(path.to_dict()), output)
    with beside(output):
        _show(path, output, as_json)


def _show(path: SparsePath, output: str | None, as_json: bool) -> None:
    if as_json:
        emit_json(path.to_dict())
        return
    table(["alpha", "features", "objective", "relative gap", "features that enter"], _rows(path))
    words(f"All {len(path)} points are {certificate(float(path.relative_gaps.max()))}.")
    if output is not None:
        words(f"Wrote {output}.")


def _rows(path: SparsePath) -> Iterator[tuple[Any, ...]]:
    seen = np.zeros(path.coefs.shape[1], dtype=bool)
    for k in np.unique(np.linspace(0, len(path) - 1, SHOWN_POINTS).round().astype(int)):
        used = (path.coefs[: k + 1] != 0).any(axis=0)
        entering = [path.feature_names[j] for j in np.flatnonzero(used & ~seen)]
        seen = used
        yield (
            float(path.alphas[k]),
            int(path.n_nonzero[k]),
            f"{path.objectives[k]:.6g}",
            f"{path.relative_gaps[k]:.1e}",
            _listed(entering),
        )


def _listed(names: list[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
