"""What readers of exported files share: what the engine would refuse."""

from __future__ import annotations


class NotAccepted(Exception):
    """The engine would refuse the file."""


def need(condition, reason):
    if not condition:
        raise NotAccepted(reason)
