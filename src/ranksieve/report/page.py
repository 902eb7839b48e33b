"""Render a report into one HTML file that needs no network."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from ranksieve._util.atomic import atomic_write
from ranksieve._util.extras import how_to_install
from ranksieve.report.canvas import compact
from ranksieve.report.content import Content
from ranksieve.report.figures import colours, gains_figure, path_figure
from ranksieve.report.gains import Gains
from ranksieve.report.paths import Curves, explorer
from ranksieve.report.words import certificate, metric_title

EXTRA = f"the HTML report needs plotly and jinja2: {how_to_install('report')}"


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
    """The page of a fit as text."""
    named = [term["name"] for term in content.terms]
    metrics = dict.fromkeys(metric for means in content.measured.values() for metric in means)
    explorers = {} if content.curves is None else {"path": [explore(content.curves, named)]}
    gains = {} if content.gains is None else {"gains": gains_data(content.gains)}
    data = {"figures": {}, "explorers": explorers, "gains": gains, "features": {}}
    return render_page("fit.html.j2", data, content=content, colours=colours(named), metrics=list(metrics))


def explore(curves: Curves, named: list[str]) -> dict[str, Any]:
    """The explorer of a path with its figure; ``named`` features have colours."""
    return explorer(curves, path_figure(curves, named), colours(named))


def gains_data(gains: Gains) -> dict[str, Any]:
    """Gains with the frame of their figure."""
    return {**gains.to_dict(), "figure": gains_figure(gains)}


def render_page(template: str, data: dict[str, Any], **context: Any) -> str:
    """A template with plotly.js and the data of its scripts included."""
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
    environment.filters |= {"certificate": certificate, "metric_title": metric_title}
    return environment.get_template(template).render(
        page_data=compact(data), plotly_js=get_plotlyjs(), **context
    )
