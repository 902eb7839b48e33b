"""Why a document stands where it stands, what each feature is worth, and which queries go wrong."""

from ranksieve.explain.drops import FeatureDrop, drop_costs
from ranksieve.explain.queries import PairExplanation, Part, QueryExplanation, explain_pair, explain_query
from ranksieve.explain.worst import WorstQuery, worst_queries

__all__ = [
    "FeatureDrop",
    "PairExplanation",
    "Part",
    "QueryExplanation",
    "WorstQuery",
    "drop_costs",
    "explain_pair",
    "explain_query",
    "worst_queries",
]
