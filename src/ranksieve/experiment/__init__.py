"""Resumable experiments: run methods on the folds of data sets, and read and tabulate the results."""

from ranksieve.experiment.benching import bench
from ranksieve.experiment.fold_run import FoldContext, Study
from ranksieve.experiment.results import FoldResult, MethodResult, Results, load_results

__all__ = ["FoldContext", "FoldResult", "MethodResult", "Results", "Study", "bench", "load_results"]
