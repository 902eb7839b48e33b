"""Sparse linear learning to rank: few features, each fit with a proof of how near the optimum it is."""

from ranksieve._version import __version__
from ranksieve.data import (
    Dataset,
    describe,
    fill_missing,
    from_frame,
    load_letor_folds,
    make_ranking,
    read_dataset,
    read_letor,
    write_dataset,
    write_letor,
)
from ranksieve.estimators import SparseRanker
from ranksieve.metrics import evaluate
from ranksieve.model import LinearModel, load_model
from ranksieve.path import Path, sparse_path
from ranksieve.significance import compare

__all__ = [
    "Dataset",
    "LinearModel",
    "Path",
    "SparseRanker",
    "__version__",
    "compare",
    "describe",
    "evaluate",
    "fill_missing",
    "from_frame",
    "load_letor_folds",
    "load_model",
    "make_ranking",
    "read_dataset",
    "read_letor",
    "sparse_path",
    "write_dataset",
    "write_letor",
]
