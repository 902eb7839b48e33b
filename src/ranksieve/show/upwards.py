"""The one way up: methods of results that draw pictures and write pages name functions of ``report``.

Results lie below the room of the pages, which imports them. So the function is looked up when it is called.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def report_function(path: str) -> Any:
    """A function of the room ``report``: ``displays.plot_ranker``."""
    module, _, name = path.partition(".")
    return getattr(import_module(f"ranksieve.report.{module}"), name)


class Drawn:
    """A result that draws itself with matplotlib."""

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the picture of this result with matplotlib and return its axes.

        ``interactive=True`` returns the figure of the pages instead, which notebooks show without network
        access. The extra ``plot`` installs matplotlib.
        """
        return report_function("displays.plot_result")(self, ax=ax, **options)
