"""Tests of the GPU code; without a GPU Triton's interpreter runs the kernels on small data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

try:
    import torch
except ImportError:
    torch = None

HAS_GPU = torch is not None and torch.cuda.is_available()
if torch is not None and not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is loaded


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if torch is None:
                item.add_marker(pytest.mark.skip(reason="needs the extra gpu"))
