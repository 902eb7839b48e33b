"""Runs the README as a new user would: the Python code, then the commands in the folder of the demo.

``python -m tests.readme`` uses the ranksieve of that Python's environment (see ``make dist``).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
SET_UP = ("make ", "git ")  # commands that create the environment, which already exists


def blocks(language: str) -> list[str]:
    texts = re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [str(block) for block in texts]


def commands() -> list[str]:
    """The commands without those that create the environment."""
    lines = "".join(blocks("console")).splitlines()
    typed_lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in typed_lines if not line.startswith(SET_UP)]


def run(folder: Path) -> None:
    """Run the README in a folder with an environment and the demo, like a checkout."""
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    (folder / "example.py").write_text("".join(blocks("python")), encoding="utf-8")
    script = ["python example.py", "ranksieve demo -o demo", *commands()]
    activate = Path(".venv", "Scripts" if sys.platform == "win32" else "bin", "activate").as_posix()
    text = "\n".join(["set -e", f". {activate}", *script])
    subprocess.run(["bash", "-c", text], cwd=folder, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        run(Path(temporary))
    print("The README runs.")  # noqa: T201
