"""The command line: one function a command. What they do is in ``ranksieve.commands``.

Help lists the commands in the order of these imports.
"""

from ranksieve.cli import learning, scoring, datasets, engines, experiments  # isort: skip
from ranksieve.cli.app import app, main

__all__ = ["app", "datasets", "engines", "experiments", "learning", "main", "scoring"]
