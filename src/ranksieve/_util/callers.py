"""Warnings that name the line of whoever called ranksieve."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_caller(words: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is not part of ranksieve, however deep the fault was found."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, category, stacklevel=level)
