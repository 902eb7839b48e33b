"""Runs the README as a new user would: its Python, then its commands where the demo left its data.

``python -m tests.readme`` runs it with the ranksieve of that Python's environment (see ``make dist``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
SET_UP = ("make ", "git ")  # commands that make the environment, which is there already


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [str(block) for block in found]


def commands() -> list[str]:
    """The lines to type, without those that set up."""
    lines = "".join(blocks("console")).splitlines()
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in typed if not line.startswith(SET_UP)]


def run(folder: Path) -> None:
    """Run all of it in a folder, which gets the environment and the demo as a checkout has them."""
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    (folder / "example.py").write_text("".join(blocks("python")), encoding="utf-8")
    script = ["python example.py", "ranksieve demo -o demo", *commands()]
    activate = Path(".venv", "Scripts" if sys.platform == "win32" else "bin", "activate").as_posix()
    text = "\n".join(["set -e", f". {activate}", *script])
    subprocess.run(["bash", "-c", text], cwd=folder, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        run(Path(made))
    print("The README runs.")  # noqa: T201
