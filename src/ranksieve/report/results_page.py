"""The page of a results folder."""

from __future__ import annotations

import os

from ranksieve._util.atomic import atomic_write
from ranksieve.experiment.results import Results
from ranksieve.report.page import gains_data, render_page, require_extra
from ranksieve.report.results_content import ResultsContent, build_results_content


def write_results_page(results: Results, path: str | os.PathLike[str], baseline: str | None = None) -> None:
    """Write the page of a results folder, whole or not at all.

    Parameters
    ----------
    results : Results
        As :func:`ranksieve.experiment.results.load_results` gives them.
    path : path
        The HTML file.
    baseline : str, optional
        Method that the others are compared with; default the best dense one of each data set.
    """
    require_extra()
    page = render_results(build_results_content(results, baseline))
    with atomic_write(path) as file:
        file.write(page)


def render_results(content: ResultsContent) -> str:
    """The page as text."""
    numbered = {f"d{k}": data for k, data in enumerate(content.data_sets, start=1)}
    figures = {f"{at}-{p.name}": p.figure for at, data in numbered.items() for p in data.pictures}
    data = {
        "figures": figures | {f"all-{p.name}": p.figure for p in content.overviews},
        "explorers": {at: data.explorers for at, data in numbered.items()},
        "gains": {at: gains_data(data.gains) for at, data in numbered.items()},
        "features": {f"{at}-table": data.features.methods for at, data in numbered.items()},
    }
    return render_page("results.html.j2", data, content=content)
