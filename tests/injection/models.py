"""Random models and data whose features have hostile names."""

from __future__ import annotations

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.model.linear import LinearModel, Term
from ranksieve.prepare import Preparation
from tests.hostile import CONTROLS, SHOWN

LETTERS = "ab_09.-'\"`\\<>&|=+@$%{}()[]/*#;:, \u2028\u202e\u00a0é名😀"
VESPA_FORMS = ("attribute({})", "bm25({})", "fieldMatch({}).proximity", "{}", "dotProduct(a,query({}))")
KINDS = ("none", "z", "min_max", "query_min_max")
MOST_FEATURES, N_DOCS = 5, 6


def random_name(rng):
    """Pieces of the hostile names, or letters that mean something somewhere, up to three of them."""
    pieces = [_piece(rng) for _ in range(rng.integers(1, 4))]
    return "".join(pieces)[: rng.choice([20, 200, 20_000])]


def _piece(rng):
    kind = rng.random()
    if kind < 0.03:
        return str(rng.choice(CONTROLS))
    if kind < 0.5:
        return SHOWN[rng.integers(len(SHOWN))]
    return "".join(rng.choice(list(LETTERS), rng.integers(1, 12)))


def random_case(rng):
    """A model, data that it scores, and for some of its features an engine's name."""
    n = int(rng.integers(1, MOST_FEATURES + 1))
    own = list(dict.fromkeys(random_name(rng) for _ in range(n)))
    qid, y = np.ones(N_DOCS, dtype=int), np.arange(N_DOCS) % 3
    data = Dataset(rng.gamma(2.0, 1.0, (N_DOCS, len(own))), y, qid, own)
    positive = rng.random() < 0.5
    weights = rng.uniform(0.1, 2.0, len(own)) * (1 if positive else rng.choice([-1, 1], len(own)))
    learned = Preparation.learn(data, str(rng.choice(KINDS, p=[0.4, 0.2, 0.2, 0.2])), "keep")
    terms = tuple(Term(name, j, float(weights[j])) for j, name in enumerate(own))
    intercept = float(rng.choice([0.0, -1.5]))
    return LinearModel(terms, len(own), intercept, learned.of(own)), data, own


def random_names(rng, target, own):
    """A map to the engine's names, as hostile as ours; for Vespa in its forms, for RankLib mostly numbers."""
    if target.startswith("vespa"):
        return {name: str(rng.choice(VESPA_FORMS)).format(_inside(rng, j)) for j, name in enumerate(own)}
    if target == "qdrant":
        return {name: _qdrant_name(rng, j) for j, name in enumerate(own)}
    if target == "ranklib":
        return {} if rng.random() < 0.9 else {own[0]: random_name(rng)}
    return {name: random_name(rng) for name in own if rng.random() < 0.3}


def _inside(rng, number):
    return f"w_a{number}" if rng.random() < 0.7 else random_name(rng)[:50]


def _qdrant_name(rng, number):
    return f'"{random_name(rng)[:50]}{number}"' if rng.random() < 0.8 else random_name(rng)
