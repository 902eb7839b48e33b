"""Random models and data whose features have hostile names."""

from __future__ import annotations

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import Preparation
from tests.hostile import CONTROLS, SHOWN

LETTERS = "ab_09.-'\"`\\<>&|=+@$%{}()[]/*#;:, \u2028\u202e\u00a0é名😀"
VESPA_FORMS = ("attribute({})", "bm25({})", "fieldMatch({}).proximity", "{}", "dotProduct(a,query({}))")
KINDS = ("none", "z", "min_max", "query_min_max")
MOST_FEATURES, N_DOCS = 5, 6


def random_name(rng):
    """One to three pieces: hostile names or letters with a special meaning in some format."""
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
    """A model, data for it, and the names of its features."""
    n = int(rng.integers(1, MOST_FEATURES + 1))
    names = list(dict.fromkeys(random_name(rng) for _ in range(n)))
    qid, y = np.ones(N_DOCS, dtype=int), np.arange(N_DOCS) % 3
    data = Dataset(rng.gamma(2.0, 1.0, (N_DOCS, len(names))), y, qid, names)
    positive = rng.random() < 0.5
    if rng.random() < 0.3:
        return curves_of(data, rng), data, names
    weights = rng.uniform(0.1, 2.0, len(names)) * (1 if positive else rng.choice([-1, 1], len(names)))
    preparation = Preparation.learn(data, str(rng.choice(KINDS, p=[0.4, 0.2, 0.2, 0.2])), "keep")
    terms = tuple(Term(name, j, float(weights[j])) for j, name in enumerate(names))
    intercept = float(rng.choice([0.0, -1.5]))
    return LinearModel(terms, len(names), intercept, preparation.of(names)), data, names


def curves_of(data, rng):
    """A model with a curve for each feature; the thresholds are numbers in float32."""
    terms = []
    for j, name in enumerate(data.feature_names):
        thresholds = np.unique(rng.uniform(0.1, 4.0, 2).astype(np.float32)).tolist()
        levels = tuple(rng.normal(size=len(thresholds) + 1))
        terms.append(Term(name, j, 1.0, Curve(tuple(thresholds), levels, float(rng.choice([0.0, 0.5])))))
    return LinearModel(tuple(terms), data.n_features, float(rng.choice([0.0, -1.5])))


def random_names(rng, target, features):
    """A map to hostile engine names; for Vespa in its syntax, for boosters mostly short, for RankLib none."""
    if target.startswith("vespa"):
        return {name: str(rng.choice(VESPA_FORMS)).format(_inside(rng, j)) for j, name in enumerate(features)}
    if target == "qdrant":
        return {name: _qdrant_name(rng, j) for j, name in enumerate(features)}
    if target == "ranklib":
        return {} if rng.random() < 0.9 else {features[0]: random_name(rng)}
    if target in ("lightgbm", "xgboost") and rng.random() < 0.8:
        return {name: f"{''.join(rng.choice(list(LETTERS), 1))}{j}" for j, name in enumerate(features)}
    return {name: random_name(rng) for name in features if rng.random() < 0.3}


def _inside(rng, number):
    return f"w_a{number}" if rng.random() < 0.7 else random_name(rng)[:50]


def _qdrant_name(rng, number):
    return f'"{random_name(rng)[:50]}{number}"' if rng.random() < 0.8 else random_name(rng)
