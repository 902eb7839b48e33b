"""The best set of at most k features, with a proof: greedy sets, bounds by relaxation, branch and bound."""

from ranksieve.subset.limits import Limits, Region
from ranksieve.subset.proof import Proof, proven_bound
from ranksieve.subset.search import Effort, Found, SubsetSearch

__all__ = ["Effort", "Found", "Limits", "Proof", "Region", "SubsetSearch", "proven_bound"]
