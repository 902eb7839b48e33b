"""Install the packages of the extra ``bench`` one by one: ``python -m benchmarks.peers``.

Reports packages that cannot be installed; the benchmarks run without them.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

WITHOUT_DEPENDENCIES = {  # these state NumPy below 2 but run with it; here with what else they import
    "rank2plan": ("pulp<3", "bayesian-optimization<2", "colorama")
}
PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def peers() -> list[str]:
    """Requirements of the extra."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return list(extras["bench"])


def install(requirement: str) -> bool:
    """Install a requirement with pip; return whether that worked."""
    more = WITHOUT_DEPENDENCIES.get(requirement.partition(">")[0], ())
    options = ["--quiet", "--disable-pip-version-check", *(["--no-deps"] if more else [])]
    command = [sys.executable, "-m", "pip", "install", *options, requirement, *more]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> None:
    for requirement in peers():
        if not install(requirement):
            print(f"skipped: {requirement.partition('>')[0]} could not be installed", flush=True)


if __name__ == "__main__":
    main()
