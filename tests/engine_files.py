"""Shared by the readers of exported files: the error for files that the engine would reject."""

from __future__ import annotations


class NotAccepted(Exception):
    """The engine would reject the file."""


def need(condition, reason):
    if not condition:
        raise NotAccepted(reason)
