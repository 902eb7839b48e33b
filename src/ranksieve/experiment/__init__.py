"""Experiments: the papers' protocols and their results."""

from ranksieve.experiment.protocol import FoldResult, ProtocolResult, five_fold, parameter_grid

__all__ = ["FoldResult", "ProtocolResult", "five_fold", "parameter_grid"]
