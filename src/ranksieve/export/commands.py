"""Shell commands that load exported files into an engine."""

from __future__ import annotations

import shlex
from pathlib import PurePath


def curl(method: str, address: str, folder: str, file: str) -> str:
    """Send a JSON file of a folder."""
    body = shlex.quote(f"@{PurePath(folder, file)}")
    return f"curl -X {method} -H 'Content-Type: application/json' '{address}' --data-binary {body}"
