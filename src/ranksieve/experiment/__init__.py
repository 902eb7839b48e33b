"""Experiments: the papers' protocol on folds, its results, tables and published numbers."""

from ranksieve.experiment.benching import bench
from ranksieve.experiment.results import FoldResult, MethodResult, Results
from ranksieve.experiment.results_folder import load_results

__all__ = ["FoldResult", "MethodResult", "Results", "bench", "load_results"]
