"""One extreme fit: a method, its parameters and the description of its data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.methods import METHODS
from ranksieve.prepare.scaling import NORMALISE_KINDS
from tests.extremes.data import FEATURES, IDS, KINDS, LEVELS, SHAPES, WEIGHTS, labels_of

SMALL = {
    "n_rounds": 5, "n_alphas": 5, "n_subsamples": 4, "n_epochs": 2, "max_nodes": 5, "k": 2,
    "max_iter": 50, "cv": 2, "max_features": 2,
}  # fmt: skip
TABLES = {"shape": SHAPES, "features": FEATURES, "labels": LEVELS, "ids": IDS, "kind": KINDS}
STRENGTHS = (
    "C",
    "alpha",
    "radius",
    "rate",
    "l1",
    "l2",
    "ridge",
    "similarity_weight",
    "learning_rate",
    "gamma",
)
TOLERANCES = ("tol", "epsilon", "gap", "smoothing")
NUMBERS = (1e-308, 1e-28, 1e-17, 1e-8, 1e-4, 1e4, 1e8, 1e17, 1e28, 1e308)


@dataclass(frozen=True)
class Case:
    """A method, its parameters, and the properties of its data by name (:mod:`tests.extremes.data`)."""

    method: str
    shape: str = "plain"
    features: str = "plain"
    labels: str = "plain"
    ids: str = "plain"
    kind: str = "plain"
    query_weight: str = "none"
    document_weight: str = "none"
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        default = Case(self.method)
        changed = [name for name, value in vars(self).items() if value != getattr(default, name)]
        parts = [f"{name}={getattr(self, name)!r}" for name in changed if name != "method"]
        return f"Case({', '.join([repr(self.method), *parts])})"

    def ranker(self):
        """The ranker with small limits, unless the parameters set them."""
        method = METHODS[self.method]
        small = {name: value for name, value in SMALL.items() if name in method.parameters}
        if self.shape == "one feature":
            small |= {name: 1 for name in ("k", "max_features") if name in small}
        return method.make(**{**small, **self.parameters})

    def arrays(self, seed=0):
        """Features, labels and query ids."""
        rng = np.random.default_rng(seed)
        sizes, width = SHAPES[self.shape]
        query = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(len(query), width))
        signal = X[:, 0] - X[:, -1] + 0.5 * rng.normal(size=len(query))
        y = labels_of(signal, np.array(LEVELS[self.labels], dtype=float))
        with np.errstate(all="ignore"):
            return KINDS[self.kind](FEATURES[self.features](rng, X)), y, IDS[self.ids](query)

    def data(self):
        X, y, qid = self.arrays()
        return Dataset(X, y, qid, document_weight=WEIGHTS[self.document_weight](len(y)))

    def weights(self, data):
        """One weight per query, or None."""
        return WEIGHTS[self.query_weight](data.n_queries)


def draw(seed, number, methods=tuple(METHODS)):
    """Case ``number``: a method with about two extreme properties."""
    rng = np.random.default_rng([seed, number])
    method = methods[number % len(methods)]

    def choose(table, usual, share):
        return str(rng.choice([*table])) if rng.random() < share else usual

    properties = {
        name: choose(table, "plain", 0.55 if name == "features" else 0.2) for name, table in TABLES.items()
    }
    weights = {"query_weight": choose(WEIGHTS, "none", 0.2)}
    if METHODS[method].can("document_weight"):
        weights["document_weight"] = choose(WEIGHTS, "none", 0.1)
    return Case(method, **properties, **weights, parameters=_parameters(rng, method))


def _parameters(rng, method):
    allowed, parameters = METHODS[method].parameters, {}
    if rng.random() < 0.4:
        parameters["normalise"] = str(rng.choice(NORMALISE_KINDS))
    numbers = [name for name in (*STRENGTHS, *TOLERANCES) if name in allowed]
    if numbers and rng.random() < 0.3:
        parameters[str(rng.choice(numbers))] = float(rng.choice(NUMBERS))
    return parameters
