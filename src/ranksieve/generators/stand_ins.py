"""Synthetic stand-ins: data with the shapes of collections that cannot be passed on.

They have as many queries, documents, features and levels, and as many relevant documents per query, as the
collection they stand for; features and labels are drawn. They serve for claims about time, sparsity and
convergence, never about accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksieve._types import IntArray
from ranksieve._util.messages import lookup
from ranksieve.data.dataset import Dataset
from ranksieve.generators.ranking import labels_of_best, noisy_scores, planted_features

N_INFORMATIVE = 10
NOISE, CORRELATION = 0.5, 0.5


@dataclass(frozen=True)
class Shape:
    """What a collection looks like; ``divisor`` is by how much the stand-in has fewer queries."""

    n_queries: int
    n_docs: int
    n_features: int
    n_levels: int
    relevant: float  # documents per query with a label above 0
    divisor: int = 1


# LETOR 3.0 and MQ2007: Table III of Laporte et al. 2014, whose preferences / documents of a query give the
# relevant documents of sets with two levels. MSLR-WEB10K and set 1 of Yahoo's challenge: their data pages.
SHAPES = {
    "TD2003": Shape(50, 49_058, 64, 2, 8.2),
    "TD2004": Shape(75, 74_146, 64, 2, 14.8),
    "HP2003": Shape(150, 147_606, 64, 2, 1.23),
    "HP2004": Shape(75, 74_409, 64, 2, 1.08),
    "NP2003": Shape(150, 148_657, 64, 2, 1.01),
    "NP2004": Shape(75, 73_834, 64, 2, 1.03),
    "MQ2007": Shape(1_692, 69_623, 46, 3, 10.6),
    "MSLR": Shape(10_000, 1_200_192, 136, 5, 57.5, divisor=20),
    "Yahoo": Shape(29_921, 709_877, 519, 5, 17.5, divisor=40),
}


def make_stand_in(name: str, seed: int = 0) -> Dataset:
    """The stand-in for a collection of SHAPES; the same seed gives the same bits.

    Features are those of :func:`ranksieve.make_ranking`, in correlated blocks, scaled to [0, 1] within each
    query. The best documents by a planted linear score with noise are the relevant ones; of those with more
    than two levels 0.4 have label 2 or more, 0.4 of these 3 or more, and so on.
    """
    shape = lookup(SHAPES, name, "name")
    rng = np.random.default_rng(seed)
    n_queries = shape.n_queries // shape.divisor
    sizes = spread(rng, shape.n_docs // shape.divisor, n_queries)
    d = shape.n_features
    X, truth = planted_features(rng, sizes, d, N_INFORMATIVE, d // 20, CORRELATION)
    relevant = spread(rng, round(shape.relevant * n_queries), n_queries).astype(np.float64)
    y = labels_of_best(noisy_scores(rng, X, truth, NOISE), sizes, relevant, shape.n_levels)
    return Dataset(X, y, np.repeat(np.arange(1, n_queries + 1), sizes), truth=truth)


def spread(rng: np.random.Generator, total: int, n: int) -> IntArray:
    """n whole numbers that differ by at most one and add up to ``total``, in random order."""
    return rng.permutation(total // n + (np.arange(n) < total % n))
