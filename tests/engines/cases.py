"""Models and documents that every engine scores, and the comparison of its scores with the model's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import Preparation
from ranksieve.rankers.hybrid import preparation_of
from tests.contracts.test_export_contract import reported_shift, unscaled

N_QUERIES, SIZE = 40, 30
KINDS = ("none", "z", "within_z", "min_max")
ODD_NAMES = [
    "it's",
    'a "quoted" name',
    "two  spaces",
    "dots.in.names",
    "back\\slash",
    "größe 名 😀",
    "semi;colon--",
    "n" * 200,
]


@dataclass(frozen=True)
class Case:
    """A model and the documents to score."""

    label: str
    model: LinearModel
    data: Dataset


def documents(n_features=6, names=None, seed=0, date=False):
    """Scores with zeros, prices, counts, shares and centred values; with ``date`` the last is in seconds."""
    rng = np.random.default_rng(seed)
    n = N_QUERIES * SIZE
    makers = (
        lambda: rng.gamma(2.0, 4.0, n) * (rng.random(n) < 0.8),
        lambda: rng.lognormal(3, 1, n),
        lambda: rng.poisson(30, n).astype(float),
        lambda: rng.random(n),
        lambda: rng.normal(size=n),
    )
    X = np.column_stack([makers[j % len(makers)]() for j in range(n_features)]).astype(np.float32)
    X = X.astype(np.float64)
    if date:
        X[:, -1] = 1.7e9 + np.floor(rng.random(n) * 3e7)
    names = names or [f"f{j + 1}" for j in range(n_features)]
    return Dataset(X, rng.integers(0, 3, n), np.repeat(np.arange(N_QUERIES), SIZE), names)


def with_holes(data, seed=1, share=0.2):
    """The same documents, with missing values."""
    holes = np.random.default_rng(seed).random(data.X.shape) < share
    return data.replace_features(np.where(holes, np.nan, data.X))


def linear(data, kind="none", intercept=0.0, missing="keep", negative=True, seed=2):
    """A model of all features, each of about the same effect."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 1.0, data.n_features)
    if negative:
        weights *= rng.choice([-1.0, 1.0], data.n_features)
    preparation = Preparation.learn(data, kind, missing)
    if not preparation.normalisation.learns:
        weights /= np.nanstd(data.X, axis=0)
    if kind == "min_max":
        weights *= 5
    names = data.feature_names
    terms = tuple(Term(name, j, float(w)) for j, (name, w) in enumerate(zip(names, weights, strict=True)))
    return LinearModel(terms, data.n_features, intercept, preparation.of(names))


def linear_cases(odd_names=True, policies=("zero", "column_mean"), kinds=KINDS):
    """Every normalisation, sign and intercept; 1 and 200 features; odd names; missing values."""
    plain = documents()
    for kind, negative, intercept in product(kinds, (False, True), (0.0, -2.5)):
        sign = "any sign" if negative else "positive"
        label = f"{kind}, {sign}, intercept {intercept:g}"
        yield Case(label, linear(plain, kind, intercept, negative=negative), plain)
    one, many = documents(1), documents(200)
    yield Case("1 feature", linear(one, "none", 0.5), one)
    yield Case("200 features", linear(many, "none", 0.5), many)
    yield Case("200 features, z", linear(many, "z", 0.5), many)
    if odd_names:
        named = documents(len(ODD_NAMES), ODD_NAMES)
        yield Case("odd names", linear(named, "z", 0.5), named)
    for policy in policies:
        holes = with_holes(plain)
        yield Case(f"missing values, {policy}", linear(holes, "z", 1.0, policy), holes)


def curves(data, missing=0.0, seed=3, n_steps=(1, 2, 3, 63, 32, 0)):
    """A model with a curve of each feature, whose thresholds are values of documents."""
    rng = np.random.default_rng(seed)
    terms = []
    for j, name in enumerate(data.feature_names):
        column = data.X[:, j][~np.isnan(data.X[:, j])]
        n = n_steps[j % len(n_steps)]
        values = np.quantile(column, np.linspace(0.01, 0.99, n), method="nearest") if n else []
        # A number that every float32 comparison keeps apart from its neighbours, also after Solr's slack.
        thresholds = np.unique(np.float32(values).astype(np.float64))
        thresholds = thresholds[np.abs(thresholds) > 1e-3]
        levels = np.concatenate([[0.0], rng.normal(size=len(thresholds))])
        curve = Curve(tuple(thresholds), tuple(levels), missing * float(rng.normal()))
        terms.append(Term(name, j, 1.0 if j % 2 else -0.5, curve))
    return LinearModel(tuple(terms), data.n_features, 0.25)


def curve_cases(odd_names=True, missing=True):
    """Curves of 1, 6 and 200 features, without an intercept, with odd names and missing values."""
    plain, one, many = documents(), documents(1), documents(200)
    model = curves(plain)
    yield Case("curves", model, plain)
    yield Case("curves, no intercept", replace(model, intercept=0.0), plain)
    yield Case("curves, 1 feature", curves(one, n_steps=(20,)), one)
    yield Case("curves, 200 features", curves(many, n_steps=(3,)), many)
    if odd_names:
        named = documents(len(ODD_NAMES), ODD_NAMES)
        yield Case("curves, odd names", curves(named, n_steps=(6,)), named)
    if missing:
        holes = with_holes(plain)
        yield Case("curves, missing values", curves(holes, missing=1.0), holes)


CLAUSES = ("bm25", "dense", "phrase", "clicks")


def result_lists(ties=False, seed=4):
    """Scores of four clauses, of which each returned about two thirds of the documents."""
    rng = np.random.default_rng(seed)
    n = N_QUERIES * SIZE
    X = rng.gamma(2.0, 3.0, (n, len(CLAUSES))) + 0.1
    if ties:
        X = np.where(rng.random(X.shape) < 0.4, np.ceil(X), X)
    X[rng.random(X.shape) < 0.3] = np.nan
    alone = np.isnan(X).all(axis=1)
    X[alone, 0] = rng.random(int(alone.sum())) + 1.0
    X = X.astype(np.float32).astype(np.float64)
    return Dataset(X, rng.integers(0, 3, n), np.repeat(np.arange(N_QUERIES), SIZE), CLAUSES)


def hybrid_model(kind, weights=(0.4, 0.3, 0.2, 0.1)):
    """A model as HybridRanker fits them."""
    terms = tuple(Term(name, j, w) for j, (name, w) in enumerate(zip(CLAUSES, weights, strict=True)))
    return LinearModel(terms, len(CLAUSES), preparation=preparation_of(kind), method="HybridRanker")


def size_of_sums(model, data):
    """The largest intermediate sum of each document, if nothing cancels."""
    X = data.X[:, [term.index for term in model.terms]]
    if model.has_curves:
        highest = sum(abs(t.weight) * max(map(abs, (*t.curve.levels, t.curve.missing))) for t in model.terms)
        return np.full(data.n_docs, highest + abs(model.intercept))
    learned = model.preparation.normalisation
    if learned.per_query:  # a deviation of n values is at most √(n − 1) standard deviations
        return np.full(data.n_docs, 6 * np.sum(np.abs(model.weights)) + abs(model.intercept))
    centre, scale = (np.abs(learned.centre), np.array(learned.scale)) if learned.learns else (0.0, 1.0)
    X = np.nan_to_num(np.abs(X), nan=np.nanmax(np.abs(X)))
    return ((X + centre) / scale) @ np.abs(model.weights) + abs(model.intercept)


EPSILON = {"float32": 2.0**-24, "float64": 2.0**-52, "float32 score": 2.0**-52}


@dataclass(frozen=True)
class Comparison:
    """How far an engine's scores are from the model's."""

    documents: int
    difference: float
    orders: int


def compare(case, target, result, theirs, precision="float32", data=None):
    """Check that each score is the model's, to the rounding of the engine's arithmetic.

    The difference is relative to the largest score; ``orders`` counts pairs of documents of a query that the
    engine ranks the other way round.
    """
    data = case.data if data is None else data
    ours, shift = case.model.predict(data), reported_shift(result)
    if "lack the constant" in " ".join(result.notes):  # which the note gives with six digits
        shift = -case.model.folded().intercept
    theirs = unscaled(result, target, np.asarray(theirs, dtype=np.float64)) - shift
    sizes = size_of_sums(case.model, data) + abs(shift) + 1
    k = len(case.model.terms)
    # k + 8 roundings; in a sum of float32 numbers each is of the largest intermediate sum
    allowed = (k + 8) * EPSILON[precision] * sizes
    if precision == "float32 score":  # one rounding of the engine's score, which unscaled may amplify
        allowed += 2.0**-23 * (np.abs(ours) + abs(shift) + 1)
    worst = int(np.argmax(np.abs(theirs - ours) - allowed))
    assert (np.abs(theirs - ours) <= allowed).all(), (
        f"{case.label}: document {worst} has {theirs[worst]!r}, the model {ours[worst]!r}"
    )
    difference = float(np.abs(theirs - ours).max() / max(np.abs(ours).max(), 1e-30))
    return Comparison(data.n_docs, difference, changed_pairs(ours, theirs, data.qid))


def close_times():
    """A model of scores and times within ten minutes, which float32 cannot tell apart, and such documents."""
    data = documents(2)
    X = data.X.copy()
    X[:, 1] = 1.7e9 + np.floor(600 * np.random.default_rng(5).random(data.n_docs))
    data = data.replace_features(X)
    return Case("close times", LinearModel((Term("f1", 0, 1e-4), Term("f2", 1, 0.01)), 2), data)


def close_curves():
    """The same with a curve of the times."""
    case, thresholds = close_times(), tuple(1.7e9 + 60.0 + 120 * np.arange(4))
    curve = Curve(thresholds, (0.0, 0.4, 0.1, 0.9, 0.6))
    return replace(
        case,
        model=LinearModel((Term("f1", 0, 1.0, Curve((4.0,), (0.0, 0.03))), Term("f2", 1, 1.0, curve)), 2),
    )


def check_warning(case, caught, theirs):
    """The numbers in the warning are those of pairs that the engine's scores tie or reverse."""
    ours, pairs, changed = case.model.predict(case.data), 0, 0
    for query in np.unique(case.data.qid):
        rows = case.data.qid == query
        a, b = (np.subtract.outer(one[rows], one[rows]) for one in (ours, np.asarray(theirs, dtype=float)))
        apart = a > 1e-9
        pairs, changed = pairs + int(apart.sum()), changed + int((apart & (b <= 0)).sum())
    assert changed > 100
    (message,) = (str(one.message) for one in caught if "32-bit" in str(one.message))
    assert f"the order of {changed:,} of the {pairs:,} pairs" in message, (changed, pairs)


def changed_pairs(ours, theirs, qid):
    """Pairs of documents of a query that are in the opposite order."""
    count = 0
    for query in np.unique(qid):
        a, b = ours[qid == query], theirs[qid == query]
        count += int(np.sum(np.sign(a[:, None] - a) * np.sign(b[:, None] - b) < 0)) // 2
    return count
