"""Experiments: the papers' protocols and their results."""

from ranksieve.experiment.protocol import FoldResult, ProtocolResult, five_fold, parameter_grid
from ranksieve.experiment.results import Results, load_results
from ranksieve.experiment.running import bench

__all__ = ["FoldResult", "ProtocolResult", "Results", "bench", "five_fold", "load_results", "parameter_grid"]
