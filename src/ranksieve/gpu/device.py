"""The GPU: whether there is one, and how much memory it has left."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ranksieve._util.messages import how_to_install
from ranksieve.errors import DataError, ParameterError

NAMES = re.compile(r"cuda(:\d+)?")
NO_GPU = "needs an NVIDIA GPU that PyTorch can use; leave it out, or look at torch.cuda.is_available()"


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    if device != "cpu":
        find_device(device)


def find_device(device: str) -> Any:
    """The torch device of that name; a sentence where there is none.

    Where Triton interprets its kernels (TRITON_INTERPRET=1), the processor stands in for the GPU.
    """
    if not (isinstance(device, str) and NAMES.fullmatch(device)):
        raise ParameterError("device", device, 'must be "cpu", "cuda", "cuda:0", "cuda:1", …')
    try:
        import torch
        import triton  # noqa: F401
    except ImportError:
        raise ParameterError(
            "device", device, f"needs PyTorch with Triton: {how_to_install('gpu')}"
        ) from None
    if is_interpreted():
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ParameterError("device", device, NO_GPU)
    number = torch.device(device).index or 0
    if number >= torch.cuda.device_count():
        raise ParameterError("device", device, f"this machine has {torch.cuda.device_count()} GPUs")
    return torch.device("cuda", number)


def is_interpreted() -> bool:
    """Whether Triton interprets kernels instead of compiling them."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def check_memory(device: Any, needed: Mapping[str, int]) -> None:
    """Refuse what does not fit on the GPU, before any of it is copied; ``needed`` in bytes."""
    if device.type != "cuda":
        return
    import torch

    free = torch.cuda.mem_get_info(device)[0] + _unused(device)
    total = sum(needed.values())
    if total > free:
        parts = ", ".join(f"{in_gigabytes(n)} for {what}" for what, n in needed.items())
        reason = (
            f"the data need {in_gigabytes(total)} of GPU memory ({parts}), and {in_gigabytes(free)} are "
            "free; leave `device` out, or fit on a part of the queries"
        )
        raise DataError(None, None, reason)


def _unused(device: Any) -> int:
    """Memory that PyTorch holds for later."""
    import torch

    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def in_gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.3g} GB"
