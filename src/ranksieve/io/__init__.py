"""File formats: LETOR text, parquet and frames, feature logs, judgements, TREC runs, feature tables.

The public names stand in ``__init__.pyi`` and are loaded when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
