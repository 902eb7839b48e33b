"""How the functions of this package are compiled: once, cached on disk, without the interpreter's lock.

Each function comes with as few ways in as it needs, since every one of them has to be compiled: a ``kernel``
is called from Python, and a ``helper`` from other compiled functions only.
"""

from functools import partial

from numba import njit

kernel = partial(njit, cache=True, nogil=True, no_cfunc_wrapper=True)
helper = partial(kernel, no_cpython_wrapper=True)
