"""What all pages share: answers, the table of features, and rendering into one HTML file without network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

from ranksieve._util.messages import how_to_install
from ranksieve.report.canvas import compact
from ranksieve.report.words import certificate, metric_title

EXTRA = f"the HTML report needs jinja2: {how_to_install('report')}"
WHICH, SURE = "Which features?", "How sure?"
LOST, SIGNIFICANT = "What is lost per query?", "Is it significant?"
MAX_ROWS = 300  # of the widest data only what matters most


@dataclass(frozen=True)
class Answer:
    """A question that a team asks first, its answer in a few words, and the details."""

    question: str
    short: str
    details: str


@dataclass(frozen=True)
class Column:
    """A column of numbers: its key, its heading, how a value is written, and what it means."""

    key: str
    title: str
    write: Callable[[float], str]
    meaning: str


@dataclass(frozen=True)
class FeatureTable:
    """One row per feature with a value for each column.

    ``methods`` holds, for a page where the method can be chosen, its values of the columns that depend on it.
    """

    columns: Sequence[Column]
    rows: Sequence[tuple[str, Mapping[str, float]]]
    n_features: int
    methods: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def largest_weight(self) -> float:
        """The largest |weight|, for the bars."""
        return max((abs(values.get("weight", 0.0)) for _, values in self.rows), default=0.0) or 1.0


def feature_table(columns: Sequence[Column], names: Sequence[str], values: Mapping[str, Any]) -> FeatureTable:
    """Rows by falling |weight|, then by the other columns, at most ``MAX_ROWS``; one array per column.

    A column without values is left out.
    """
    kept = [column for column in columns if column.key in values]
    rows = [
        (name, {column.key: float(values[column.key][j]) for column in kept}) for j, name in enumerate(names)
    ]
    rows.sort(key=lambda row: [-abs(value) for value in row[1].values()])
    return FeatureTable(kept, rows[:MAX_ROWS], len(names))


def sort_value(cell: Any) -> str:
    """What a cell of a table is sorted by, if its text does not do."""
    try:
        float(cell.text.replace("−", "-").removesuffix(" %"))
        told = not cell.marks
    except ValueError:
        told = isinstance(cell.value, str)
    return "" if told or cell.value is None else f"{cell.value:.6g}"


def digest(script: str) -> str:
    """What a page's policy names a script by, so that no other one runs."""
    return b64encode(sha256(script.encode()).digest()).decode()


def require_extra() -> None:
    """Raise an ImportError that says how to install the extra ``report`` unless jinja2 is there."""
    if find_spec("jinja2") is None:
        raise ImportError(EXTRA)


def render_page(template: str, data: dict[str, Any], **context: Any) -> str:
    """A template with the data of its scripts included; the same text on every run."""
    require_extra()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ranksieve.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {
        "certificate": certificate, "digest": digest, "metric_title": metric_title, "sort_value": sort_value
    }  # fmt: skip
    return environment.get_template(template).render(page_data=with_shared_parts(compact(data)), **context)


def with_shared_parts(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a page with what several traces share, looks and x values, written once."""
    looks: dict[str, int] = {}
    lists: dict[str, int] = {}

    def place(part: Any, places: dict[str, int]) -> int:
        return places.setdefault(json.dumps(part), len(places))

    def shorter(trace: dict[str, Any]) -> dict[str, Any]:
        own = {key: value for key, value in trace.items() if isinstance(value, list) or key == "yaxis"}
        look = {key: value for key, value in trace.items() if key not in own}
        x = {"x": place(own.pop("x"), lists)} if "x" in own else {}
        return {"look": place(look, looks), **own, **x}

    def figure(whole: dict[str, Any]) -> dict[str, Any]:
        return {**whole, "data": [shorter(trace) for trace in whole["data"]]}

    figures = {name: figure(whole) for name, whole in data["figures"].items()}
    explorers = {
        name: [{**path, "figure": figure(path["figure"])} for path in paths]
        for name, paths in data.get("explorers", {}).items()
    }
    shared = {
        "looks": [json.loads(look) for look in looks],
        "lists": [json.loads(values) for values in lists],
    }
    return {**data, "figures": figures, "explorers": explorers, **shared}
