"""Render a report into one HTML file that needs no network."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from ranksieve.data.atomic import atomic_write
from ranksieve.report.content import Content
from ranksieve.report.figures import colours, path_figure
from ranksieve.report.words import certificate

EXTRA = 'the HTML report needs plotly and jinja2: pip install "ranksieve[report]"'


def require_extra() -> None:
    """Raise an ImportError that names the cure unless the packages of the extra ``report`` are there."""
    if find_spec("plotly") is None or find_spec("jinja2") is None:
        raise ImportError(EXTRA)


def write_report(content: Content, path: str | os.PathLike[str]) -> None:
    """Write the page whole or not at all."""
    page = render(content)
    with atomic_write(path) as file:
        file.write(page)


def render(content: Content) -> str:
    """The page as text, plotly.js included."""
    require_extra()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("ranksieve.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["certificate"] = certificate
    template = environment.get_template("template.html.j2")
    return template.render(content=content, plotly_js=get_plotlyjs(), **_derived(content))


def _derived(content: Content) -> dict[str, Any]:
    named = [term["name"] for term in content.terms]
    metrics = dict.fromkeys(metric for means in content.measured.values() for metric in means)
    return {
        "colours": colours(named),
        "heaviest": max((abs(term["weight"]) for term in content.terms), default=1.0),
        "metrics": list(metrics),
        "figures": {} if content.curves is None else {"path": path_figure(content.curves, named)},
    }
