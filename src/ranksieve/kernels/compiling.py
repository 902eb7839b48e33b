"""How the functions of this package are compiled: once, cached on disk, without the interpreter's lock.

A ``kernel`` is called from Python, a ``helper`` only from other compiled functions, so it needs no wrapper.
Where no cache can be written, every process compiles what it needs.
"""

import warnings
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from multiprocessing import current_process

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

NO_CACHE = (
    "no folder for compiled functions can be written, so every run compiles them anew, which takes seconds; "
    "name a folder of your own in the environment variable NUMBA_CACHE_DIR"
)


class KernelFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one function's versions, each named after the types that it is compiled for.

    numba numbers them, without a hook to lock or name them: two processes that compile different versions at
    the same time may use the same number, and a third one then runs the code of one with the arguments of the
    other.
    """

    def _load_index(self):
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # it names a type that another version of the package had
            return {}

    def save(self, key, data):
        name = self._index_name.removesuffix("nbi") + sha256(repr(key).encode()).hexdigest()[:16] + ".nbc"
        self._save_data(name, data)  # before the index names it
        self._save_index(self._load_index() | {key: name})


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, but processes that compile at the same time or a full disk cost only time."""

    def __init__(self, function):
        super().__init__(function)
        files = self._cache_file
        base = files._index_name.removesuffix(".nbi")
        self._cache_file = KernelFiles(files._cache_path, base, files._source_stamp)

    def save_overload(self, sig, data):
        with suppress(OSError):
            super().save_overload(sig, data)


def kernel(function=None, **options):
    """Have a function compiled when it is first called; without a function, a decorator with options."""
    if function is None:
        return partial(kernel, **options)
    compiled = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        compiled._cache = KernelCache(function)
    except RuntimeError:  # none of numba's places can be written
        _tell_once()
    return compiled


@cache
def _tell_once():
    if current_process().name == "MainProcess":  # workers need not say it too
        warnings.warn(NO_CACHE, UserWarning, stacklevel=2)


helper = partial(kernel, no_cpython_wrapper=True)
