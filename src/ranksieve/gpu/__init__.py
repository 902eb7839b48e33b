"""GPU support by PyTorch and Triton, which are imported only when needed."""

from ranksieve.gpu.matrix import check_device, find_device

__all__ = ["check_device", "find_device"]
