"""What a method's page says of it by itself: facts from the table of methods, parameters from docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ranksieve.baselines import FeatureSelector
from ranksieve.methods import METHODS, Method

IN_ALL = {
    "normalise": "How features are scaled before the fit; the model keeps it ([raw data](../raw-data.md)).",
    "missing": "What is put where values are missing; the model keeps it ([raw data](../raw-data.md)).",
    "C": "If given, the base is `RankSVM(C, average=True)`: C weighs the mean loss against ½‖w‖².",
}
SECTION = r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)"
ENTRY = re.compile(r"^(\S[^:\n]*?)(?: : [^\n]*)?\n((?:    [^\n]*\n|\n)+)", re.M)


def facts(name: str) -> str:
    """The table at the head of a method's page, and that of its parameters."""
    method = METHODS[name]
    made = method.make()
    kind, place = type(made).__name__, "selectors" if isinstance(made, FeatureSelector) else "rankers"
    rows = {
        "name": f"`ranksieve fit --method {name}`",
        "class": f"[`{kind}`](../api/{place}.md)",
        "source": method.source,
        "loss": method.loss,
        "penalty": method.penalty,
        "solver": method.solver,
        "model": "linear: one weight per feature" if method.linear else "steps or trees, not linear",
        "grid": grid_words(method),
        "choice": f"by {method.select} on validation data",
    }
    head = "".join(f"| **{key}** | {value} |\n" for key, value in rows.items() if value)
    return f"| | |\n|---|---|\n{head}\n{parameters_table(name)}"


def parameters_table(name: str) -> str:
    """Parameter, default, meaning; parameters that are explained together share a row."""
    method = METHODS[name]
    values = method.parameters
    meanings = documented(type(method.make()))
    meanings |= {key: text for key, text in IN_ALL.items() if key != "C" or "C" not in meanings}
    if unknown := values.keys() - meanings.keys():
        raise ValueError(f"the docstring of {name} leaves out {', '.join(sorted(unknown))}")
    shared: dict[str, list[str]] = {}
    for key in sorted(values, key=list(meanings).index):
        shared.setdefault(meanings[key], []).append(key)
    lines = (
        f"| {', '.join(f'`{key}`' for key in keys)} | {', '.join(_shown(values[key]) for key in keys)} "
        f"| {_cell(text)} |\n"
        for text, keys in shared.items()
    )
    return "| parameter | default | meaning |\n|---|---|---|\n" + "".join(lines)


def documented(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of parameters."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        section = re.search(SECTION, inspect.cleandoc(base.__dict__.get("__doc__") or "") + "\n", re.S | re.M)
        for names, text in ENTRY.findall(section[1] + "\n" if section else ""):
            found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return found


def grid_words(method: Method) -> str:
    """The values that are tried."""
    values: dict[str, list[object]] = {}
    for point in method.grid:
        for key, value in point.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return "; ".join(f"`{key}`: {_span(seen)}" for key, seen in values.items()) or "–"


def _span(seen: list[object]) -> str:
    words = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in seen]
    return ", ".join(words) if len(words) <= 3 else f"{words[0]} … {words[-1]} ({len(words)})"


def _shown(value: Any) -> str:
    return f"`{value!r}`" if not isinstance(value, float) else f"`{value:g}`"


def _cell(text: str) -> str:
    plain = re.sub(r":\w+:`~?(?:ranksieve\.)?([^`]*)`", r"`\1`", text)
    return re.sub(r"``([^`]*)``", r"`\1`", plain).replace("|", "\\|")
