"""What to do when the packages of an optional extra are not installed."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The advice in a message; ranksieve is on no registry, so it is installed from a checkout."""
    return f'run pip install ".[{extra}]" in the checkout of ranksieve'
