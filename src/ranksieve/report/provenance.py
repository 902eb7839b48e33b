"""Where results come from, and what is proved of each fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ranksieve.experiment.results import DataSetResults
from ranksieve.experiment.tables import Cell, Table, title, word
from ranksieve.report.words import certificate


def certificate_table(results: DataSetResults) -> Table:
    """Of each method, the largest relative gap of its folds' chosen fits."""
    rows = []
    for name, folds in results.methods.items():
        gaps = [(fold.chosen or {})["certificate"].get("relative_gap") for fold in folds]
        worst = None if None in gaps else max(gaps)
        text = "–" if worst is None else f"{worst:.1e}".replace("-", "−")
        rows.append((word(title(name)), Cell(worst, text), word(certificate(worst))))
    return Table(
        "certificates",
        f"{results.name}: certificates",
        ("method", "largest relative gap", "in words"),
        tuple(rows),
        "Of the folds' chosen fits the one furthest from its proof, by the duality gap as a share of the "
        "objective: each method's own training objective, not its accuracy. Methods that stop early or are "
        "not convex have a large gap or none.",
    )


def provenance_tables(results: DataSetResults) -> list[Table]:
    """Software and data, then parameters, grids and choices."""
    header = results.header
    identity, notes = header["identity"], header["notes"]
    software = {"ranksieve": header["version"], **notes["versions"]}
    facts = {
        "software": ", ".join(f"{name} {version}" for name, version in software.items()),
        "metric profile": identity["profile"],
        "folds": identity["n_folds"],
        "features": f"{len(notes['features'])}, of which {sum(notes['varying'])} vary within a query",
        **{f"fold {k} data": text for k, text in enumerate(_data(results), start=1)},
    }
    rows = tuple((word(name), word(str(text))) for name, text in facts.items())
    return [
        Table("provenance", f"{results.name}: software and data", ("what", "value"), rows),
        _parameter_table(results),
    ]


def _data(results: DataSetResults) -> list[str]:
    folds = next(iter(results.methods.values()))
    return [
        "; ".join(
            f"{part} {print_} ({fold.header['notes']['n_queries'][part]} queries, "
            f"{fold.header['notes']['n_docs'][part]} documents)"
            for part, print_ in fold.header["identity"]["fingerprints"].items()
        )
        for fold in folds
    ]


def _parameter_table(results: DataSetResults) -> Table:
    rows = []
    for name, folds in results.methods.items():
        identity = folds[0].header["identity"]
        grid = identity["grid"]
        chosen = "; ".join(_settings((fold.chosen or {})["parameters"]) for fold in folds)
        rows.append(
            tuple(
                word(text)
                for text in (
                    title(name),
                    identity["select"],
                    f"{len(grid)}: {_ranges(grid)}",
                    chosen,
                    _settings(identity["parameters"]),
                )
            )
        )
    return Table(
        "parameters",
        f"{results.name}: grids, choices, parameters",
        ("method", "chosen by", "grid points", "chosen in each fold", "parameters and seeds"),
        tuple(rows),
        "The parameters are those of the first fold; what the grid varies is overridden by it.",
    )


def _ranges(grid: list[Mapping[str, Any]]) -> str:
    values: dict[str, list[Any]] = {}
    for point in grid:
        for name, value in point.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    return "; ".join(f"{name} ∈ {{{', '.join(map(_short, of))}}}" for name, of in values.items()) or "one"


def _settings(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in parameters.items()) or "defaults"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
