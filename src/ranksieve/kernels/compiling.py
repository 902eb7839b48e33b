"""Compilation by numba: cached on disk, and run without the global interpreter lock.

A ``kernel`` is called from Python, a ``helper`` only by other compiled functions, so it needs no wrapper. If
no cache can be written, every process compiles the functions it calls.
"""

import warnings
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from multiprocessing import current_process

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

NO_CACHE = (
    "no cache folder for compiled functions is writable, so every run recompiles them, which takes seconds; "
    "set the environment variable NUMBA_CACHE_DIR to a writable folder"
)


class KernelFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Cache files of one function, each named after the argument types of the compiled version.

    numba numbers them instead: two processes that compile different versions at the same time may write to
    the same number, and a third process then runs the code of one version with the arguments of the other.
    """

    def _load_index(self):
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # the index names a type of another version of the package
            return {}

    def save(self, key, data):
        name = self._index_name.removesuffix("nbi") + sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)  # before the index refers to it
        self._save_index(self._load_index() | {key: name})


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, safe for concurrent processes; a full disk only costs time."""

    def __init__(self, function):
        super().__init__(function)
        files = self._cache_file
        base = files._index_name.removesuffix(".nbi")
        self._cache_file = KernelFiles(files._cache_path, base, files._source_stamp)

    def save_overload(self, sig, data):
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel(function=None, **options):
    """Compile a function when it is first called; without a function, return a decorator with the options."""
    if function is None:
        return partial(kernel, **options)
    compiled = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:  # no cache folder is writable
        _warn_once()
    return compiled


@cache
def _warn_once():
    if current_process().name == "MainProcess":  # one warning is enough
        warnings.warn(NO_CACHE, UserWarning, stacklevel=2)


helper = partial(kernel, no_cpython_wrapper=True)
