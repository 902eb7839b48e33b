"""Install the peers of the extra ``bench``, each on its own: ``python -m benchmarks.peers``.

One that does not install is skipped with a word; the others still race.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def peers() -> list[str]:
    """The requirements of the extra."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return list(extras["bench"])


def install(requirement: str) -> bool:
    """Whether pip could install it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> None:
    for requirement in peers():
        if not install(requirement):
            print(f"skipped: {requirement.partition('>')[0]} did not install", flush=True)


if __name__ == "__main__":
    main()
