"""fit --stream: learn from a file while it is read, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # these take long to load
    from ranksieve.methods import Method

Given = Mapping[str, Any]  # options with what they say; None, False or "none" where they say nothing


def check_stream(entry: Method, method: str, train: str, whole_data: Given, choice: Given) -> None:
    """Refuse what --stream does not go with.

    ``whole_data`` are options that need all data at once, ``choice`` those that choose on held-out queries.
    """
    from ranksieve.formats.load import FILE_FORMATS, format_of

    if not entry.streams:
        from ranksieve.methods import METHODS

        able = " or ".join(name for name, other in METHODS.items() if other.streams)
        raise ValueError(
            f"--stream needs a method that learns query by query, and {method} does not; choose --method "
            f"{able}, or leave --stream out"
        )
    if format_of(train) is not FILE_FORMATS["letor"]:
        raise ValueError(
            f"--stream reads LETOR text, and {train} is another kind of file; leave --stream out"
        )
    for options, need in ((whole_data, "all data at once"), (choice, "held-out queries to choose on")):
        for name, value in options.items():
            if value not in (None, False, "none"):
                option = "--" + name.replace("_", "-")
                raise ValueError(
                    f"{option} needs {need}, which --stream does not hold; leave one of them out"
                )
