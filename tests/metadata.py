"""Checks the files of a release before they are published: ``python -m tests.metadata dist``.

What registries refuse: a description that cannot be shown, missing or different metadata, files that do not
belong into a wheel.
"""

from __future__ import annotations

import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIRED = (
    "Metadata-Version",
    "Name",
    "Version",
    "Summary",
    "License-Expression",
    "Requires-Python",
    "Author",
)
MAX_SUMMARY = 512  # characters that registries accept


def metadata_of(path: Path) -> Message:
    """The metadata of a wheel or of a source archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            name = next(one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
            return Parser().parsestr(wheel.read(name).decode())
    with tarfile.open(path) as archive:
        name = next(one for one in archive.getnames() if one.count("/") == 1 and one.endswith("/PKG-INFO"))
        file = archive.extractfile(name)
        assert file is not None
        return Parser().parsestr(file.read().decode())


def problems(path: Path, version: str) -> list[str]:
    """What is wrong with a file of a release."""
    found, metadata = [], metadata_of(path)
    found += [f"{name} is missing" for name in REQUIRED if not metadata.get(name)]
    if metadata["Name"] != PROJECT["name"] or metadata["Version"] != version:
        found.append(f"is {metadata['Name']} {metadata['Version']}, expected {PROJECT['name']} {version}")
    if metadata["Description-Content-Type"] != "text/markdown" or not str(metadata.get_payload()).strip():
        found.append("the description is not Markdown, or empty")
    if "\n" in metadata["Summary"] or len(metadata["Summary"]) > MAX_SUMMARY:
        found.append("the summary is not one short line")
    extras = set(metadata.get_all("Provides-Extra", []))
    if extras != set(PROJECT["optional-dependencies"]):
        found.append(f"has the extras {sorted(extras)}")
    for line in metadata.get_all("Requires-Dist", []):
        if " @ " in line:
            found.append(f"depends on a place, not on a version: {line}")
    return found + (_wheel_problems(path) if path.suffix == ".whl" else [])


def _wheel_problems(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        top = {name.partition("/")[0] for name in names}
        entry = next(one for one in names if one.endswith("/entry_points.txt"))
        found = [] if "ranksieve = ranksieve.cli:main" in wheel.read(entry).decode() else ["has no command"]
    outside = [name for name in top if name != "ranksieve" and not name.endswith(".dist-info")]
    found += [f"has files outside the package: {', '.join(sorted(outside))}"] if outside else []
    needed = ("ranksieve/py.typed", "ranksieve/__init__.pyi", "ranksieve/report/figure.js")
    found += [f"lacks {name}" for name in needed if name not in names]
    return found + (["lacks the licence"] if not any(name.endswith("LICENSE") for name in names) else [])


def main(folder: str) -> int:
    import ranksieve

    paths = sorted([*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")])
    kinds = {path.suffix for path in paths}
    wrong = [] if kinds == {".whl", ".gz"} else [f"{folder}: expected a wheel and a source archive"]
    wrong += [f"{path.name}: {text}" for path in paths for text in problems(path, ranksieve.__version__)]
    print("\n".join(wrong) or f"The metadata of {', '.join(path.name for path in paths)} are complete.")  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
