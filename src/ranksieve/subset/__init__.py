"""The best set of at most k features, with a proof: greedy sets, relaxation bounds, branch and bound."""

from ranksieve.subset.allowed import AllowedSets, Region
from ranksieve.subset.proof import Proof, proven_bound
from ranksieve.subset.search import Effort, SubsetResult, SubsetSearch

__all__ = ["AllowedSets", "Effort", "Proof", "Region", "SubsetResult", "SubsetSearch", "proven_bound"]
