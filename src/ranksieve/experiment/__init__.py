"""Experiments: any methods on any folds, resumable, their results and tables."""

from ranksieve.experiment.benching import bench
from ranksieve.experiment.fold_run import Place, Study
from ranksieve.experiment.results import FoldResult, MethodResult, Results, load_results

__all__ = ["FoldResult", "MethodResult", "Place", "Results", "Study", "bench", "load_results"]
