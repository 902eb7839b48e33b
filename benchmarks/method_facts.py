"""Generated parts of a method's page: facts from the table of methods, parameters from docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ranksieve.baselines import FeatureSelector
from ranksieve.methods import METHODS, Method

SHARED_MEANINGS = {
    "normalise": "Scaling of the features before the fit; part of the model ([raw data](../raw-data.md)).",
    "missing": "How missing values are filled; part of the model ([raw data](../raw-data.md)).",
    "C": "If set, the base is `RankSVM(C, average=True)`: C weights the mean loss against ½‖w‖².",
}
SECTION = r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)"
ENTRY = re.compile(r"^(\S[^:\n]*?)(?: : [^\n]*)?\n((?:    [^\n]*\n|\n)+)", re.M)


def facts(name: str) -> str:
    """The table of facts at the top of a method's page, and the table of its parameters."""
    method = METHODS[name]
    ranker = method.make()
    kind, page = type(ranker).__name__, "selectors" if isinstance(ranker, FeatureSelector) else "rankers"
    rows = {
        "name": f"`ranksieve fit --method {name}`",
        "class": f"[`{kind}`](../api/{page}.md)",
        "source": method.source,
        "loss": method.loss,
        "penalty": method.penalty,
        "solver": method.solver,
        "model": "linear: one weight per feature" if method.linear else "steps or trees, not linear",
        "grid": grid_text(method),
        "choice": f"by {method.select} on validation data",
    }
    head = "".join(f"| **{key}** | {value} |\n" for key, value in rows.items() if value)
    return f"| | |\n|---|---|\n{head}\n{parameters_table(name)}"


def parameters_table(name: str) -> str:
    """Table of parameter, default and meaning; parameters with the same description share a row."""
    method = METHODS[name]
    values = method.parameters
    meanings = parameter_meanings(type(method.make()))
    meanings |= {key: text for key, text in SHARED_MEANINGS.items() if key != "C" or "C" not in meanings}
    if unknown := values.keys() - meanings.keys():
        raise ValueError(f"the docstring of {name} does not describe {', '.join(sorted(unknown))}")
    shared: dict[str, list[str]] = {}
    for key in sorted(values, key=list(meanings).index):
        shared.setdefault(meanings[key], []).append(key)
    lines = (
        f"| {', '.join(f'`{key}`' for key in keys)} | {', '.join(_code(values[key]) for key in keys)} "
        f"| {_cell(text)} |\n"
        for text, keys in shared.items()
    )
    return "| parameter | default | meaning |\n|---|---|---|\n" + "".join(lines)


def parameter_meanings(kind: type) -> dict[str, str]:
    """Descriptions of the parameters in the docstrings of a class and its bases."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        section = re.search(SECTION, inspect.cleandoc(base.__dict__.get("__doc__") or "") + "\n", re.S | re.M)
        for names, text in ENTRY.findall(section[1] + "\n" if section else ""):
            meanings |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return meanings


def grid_text(method: Method) -> str:
    """The values of each parameter in the grid."""
    values: dict[str, list[object]] = {}
    for point in method.grid:
        for key, value in point.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return "; ".join(f"`{key}`: {_values_text(distinct)}" for key, distinct in values.items()) or "–"


def _values_text(values: list[object]) -> str:
    texts = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(texts) if len(texts) <= 3 else f"{texts[0]} … {texts[-1]} ({len(texts)})"


def _code(value: Any) -> str:
    return f"`{value!r}`" if not isinstance(value, float) else f"`{value:g}`"


def _cell(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:ranksieve\.)?([^`]*)`", r"`\1`", text)
    return re.sub(r"``([^`]*)``", r"`\1`", plain).replace("|", "\\|")
