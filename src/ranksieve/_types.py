"""Type aliases for arrays, matrices and paths."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any
"""A feature matrix: dense float32/float64 (also memory-mapped), scipy CSR, or streamed from a file."""
PathLike: TypeAlias = str | os.PathLike[str]
