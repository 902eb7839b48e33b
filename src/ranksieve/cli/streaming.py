"""fit --stream: learn from a file while it is read, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ranksieve.errors import DataError, ParameterError

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
        raise ParameterError("method", method, f"cannot `stream`; choose {able}, or leave `stream` out")
    if format_of(train) is not FILE_FORMATS["letor"]:
        raise DataError(train, None, "is not LETOR text, which `stream` needs; leave `stream` out")
    for options, need in ((whole_data, "all data at once"), (choice, "held-out queries to choose on")):
        for name, value in options.items():
            if value not in (None, False, "none"):
                raise ParameterError("stream", True, f"`{name}` needs {need}; leave one of them out")
