"""Sparse linear learning to rank: few features, and a proof of how near the optimum the weights are.

The public names stand in ``__init__.pyi`` and are loaded when they are first used.
"""

import lazy_loader

from ranksieve._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
