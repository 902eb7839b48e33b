"""Sparse linear learning to rank: few features, with a proof of optimality for the weights.

The public names are listed in ``__init__.pyi`` and loaded on first use.
"""

import lazy_loader

from ranksieve._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
