"""What runs on a GPU, by PyTorch and Triton; neither is loaded before it is asked for."""

from ranksieve.gpu.matrix import check_device, find_device

__all__ = ["check_device", "find_device"]
