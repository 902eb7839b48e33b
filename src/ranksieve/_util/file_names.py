"""Names that become names of files and folders: which ones stay where they are put, on every system."""

from __future__ import annotations

import re
from pathlib import Path

from ranksieve.errors import DataError

MOST_BYTES = 200  # of the 255 that file systems take, with room for endings
FORBIDDEN = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE | re.DOTALL)


def fault_of_file_name(name: str) -> str | None:
    """Why a name cannot be that of a file on every system; None if it can."""
    if not name.strip():
        return "it is empty"
    if found := FORBIDDEN.search(name):
        return f"it holds {found[0]!r}"
    if name != name.strip() or name.endswith(".") or name.startswith("."):
        return "it begins or ends with a blank or a dot"
    if DEVICE.fullmatch(name):
        return "Windows has a device of this name"
    try:
        n_bytes = len(name.encode())
    except UnicodeEncodeError:
        return "it holds half of a pair of characters"
    return f"it has {n_bytes} bytes, and {MOST_BYTES} are the most" if n_bytes > MOST_BYTES else None


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a file whose place is outside the folder, because something on the way there is a link."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(path, None, f"leads out of {folder} by a link; remove the link")
