"""Synthetic data: rankings with known sparse weights, and a shop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from ranksieve._types import FloatArray, IntArray
from ranksieve.data.costs import CostUnit, FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError

BLOCK_FEATURES = 5
MEAN_RELEVANT_SHARE, NEXT_LEVEL_SHARE = 0.25, 0.4
DECIMALS = 6


def make_ranking(
    n_queries: int = 200,
    n_features: int = 60,
    n_informative: int = 8,
    *,
    docs_per_query: int | tuple[int, int] = (5, 40),
    n_levels: int = 3,
    n_constant: int | None = None,
    correlation: float = 0.5,
    noise: float = 0.5,
    random_state: int = 0,
    feature_names: Sequence[str] | None = None,
) -> Dataset:
    """Draw queries whose labels follow a linear score with ``n_informative`` nonzero weights.

    Features come in blocks of five that share a latent factor, ``x = √ρ·factor + √(1−ρ)·own``. Every other
    feature is clipped below at its median, and all are scaled to [0, 1] within each query, as in LETOR.
    Informative features are in different blocks if there are enough blocks, so that each has correlated
    distractors. The score is ``Xw + noise·sd(Xw)·ε``; in each query a random share of the best documents gets
    label 1 or more, a part of these label 2 or more, and so on. ``Dataset.truth`` is w.

    Parameters
    ----------
    docs_per_query : int or (shortest, longest)
        List length, or the range of log-normal list lengths; at least 2.
    n_levels : int
        Labels are 0, …, n_levels − 1; most are 0.
    n_constant : int, optional
        Number of features that are constant within each query, never informative; default a twentieth of all.
    correlation : float
        ρ in [0, 1), the correlation within a block before clipping and scaling.
    noise : float
        Standard deviation of the noise, relative to that of the scores.
    random_state : int
        Seed of the random numbers; the same seed gives the same data.
    """
    if n_constant is None:
        n_constant = min(n_features // 20, n_features - n_informative)
    shortest, longest = (docs_per_query,) * 2 if isinstance(docs_per_query, int) else docs_per_query
    most = n_features - n_informative
    for valid, name, value, reason in (
        (n_queries >= 1, "n_queries", n_queries, "must be at least 1"),
        (
            most >= 0 < n_informative,
            "n_informative",
            n_informative,
            f"must be from 1 to `n_features={n_features}`",
        ),
        (
            0 <= n_constant <= most,
            "n_constant",
            n_constant,
            f"must be from 0 to {most}, the number of other features",
        ),
        (n_levels >= 2, "n_levels", n_levels, "must be at least 2"),
        (
            2 <= shortest <= longest,
            "docs_per_query",
            (shortest, longest),
            "must be an ascending range of integers of at least 2",
        ),
        (0 <= correlation < 1, "correlation", correlation, "must be in [0, 1)"),
        (0 <= noise < np.inf, "noise", noise, "must be a finite number ≥ 0"),
    ):
        if not valid:
            raise ParameterError(name, value, reason)
    rng = np.random.default_rng(random_state)
    sizes = list_lengths(rng, n_queries, shortest, longest)
    X, truth = planted_features(rng, sizes, n_features, n_informative, n_constant, correlation)
    y = graded_labels(rng, noisy_scores(rng, X, truth, noise), sizes, n_levels)
    return Dataset(X, y, np.repeat(np.arange(1, n_queries + 1), sizes), feature_names, truth=truth)


def list_lengths(rng: np.random.Generator, n_queries: int, shortest: int, longest: int) -> IntArray:
    """Log-normal lengths around the geometric mean; the ends are two standard deviations away."""
    middle, spread = np.log(shortest * longest) / 2, np.log(longest / shortest) / 4
    lengths = np.exp(middle + spread * rng.standard_normal(n_queries))
    integers: IntArray = np.clip(np.round(lengths), shortest, longest).astype(np.int64)
    return integers


def planted_features(
    rng: np.random.Generator,
    sizes: IntArray,
    n_features: int,
    n_informative: int,
    n_constant: int,
    correlation: float,
) -> tuple[FloatArray, FloatArray]:
    """Features of lists of these lengths, and the weights of the score that determines the labels."""
    varying = np.sort(rng.permutation(n_features)[n_constant:])
    X = np.repeat(np.round(rng.random((len(sizes), n_features)), DECIMALS), sizes, axis=0)
    X[:, varying] = _varying_features(rng, sizes, len(varying), correlation)
    return X, _planted_weights(rng, varying, n_features, n_informative)


def _varying_features(rng: np.random.Generator, sizes: IntArray, d: int, correlation: float) -> FloatArray:
    n = int(sizes.sum())
    n_blocks = -(-d // BLOCK_FEATURES)
    factors = rng.standard_normal((n, n_blocks))[:, np.arange(d) % n_blocks]
    X = np.sqrt(correlation) * factors + np.sqrt(1 - correlation) * rng.standard_normal((n, d))
    X[:, ::2] = np.maximum(X[:, ::2], 0.0)
    return np.round(_scale_within_queries(X, sizes), DECIMALS)


def _scale_within_queries(X: FloatArray, sizes: IntArray) -> FloatArray:
    """(x − min)/(max − min) over each query, 0 if max = min."""
    starts = np.cumsum(sizes) - sizes
    low = np.minimum.reduceat(X, starts)
    spread = np.maximum.reduceat(X, starts) - low
    spread[spread == 0] = 1.0
    scaled: FloatArray = (X - np.repeat(low, sizes, axis=0)) / np.repeat(spread, sizes, axis=0)
    return scaled


def _planted_weights(rng: np.random.Generator, varying: IntArray, d: int, n_informative: int) -> FloatArray:
    """Weights with |w| from 0.5 to 1.5, a quarter of them negative, in different blocks if possible."""
    chosen = varying[_one_of_each_block_first(rng, len(varying))[:n_informative]]
    weights = np.zeros(d)
    weights[chosen] = rng.uniform(0.5, 1.5, n_informative)
    weights[chosen[: n_informative // 4]] *= -1
    return weights


def _one_of_each_block_first(rng: np.random.Generator, d: int) -> IntArray:
    """Random order of 0, …, d − 1 with one of each block (equal modulo n_blocks) before the second of any."""
    n_blocks = -(-d // BLOCK_FEATURES)
    members = np.arange(BLOCK_FEATURES * n_blocks).reshape(BLOCK_FEATURES, n_blocks)
    keys = rng.random(members.shape)
    keys[members >= d] = np.inf
    shuffled = np.take_along_axis(members, np.argsort(keys, axis=0), axis=0)[:, rng.permutation(n_blocks)]
    return shuffled[shuffled < d]


def noisy_scores(rng: np.random.Generator, X: FloatArray, truth: FloatArray, noise: float) -> FloatArray:
    scores = np.zeros(len(X))
    for j in np.flatnonzero(truth):
        scores += truth[j] * X[:, j]
    scores += noise * scores.std() * rng.standard_normal(len(X))
    return scores


def graded_labels(rng: np.random.Generator, scores: FloatArray, sizes: IntArray, n_levels: int) -> FloatArray:
    """Label l or more for the best n_q·share_q·0.4^(l−1) documents of a query, share_q ~ Beta(2, 6)."""
    shares = rng.beta(8 * MEAN_RELEVANT_SHARE, 8 * (1 - MEAN_RELEVANT_SHARE), len(sizes))
    return labels_of_best(scores, sizes, sizes * shares, n_levels)


def labels_of_best(scores: FloatArray, sizes: IntArray, relevant: FloatArray, n_levels: int) -> FloatArray:
    """Label l or more for the best relevant_q·0.4^(l−1) documents of a query."""
    query = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.empty(len(scores))
    rank[np.lexsort((-scores, query))] = np.arange(len(scores)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    levels = [rank < np.round(relevant * NEXT_LEVEL_SHARE**k)[query] for k in range(n_levels - 1)]
    y: FloatArray = np.sum(levels, axis=0, dtype=np.float64)
    return y


FACTORS = ("words", "meaning", "popular", "quality", "value", "personal", "fresh")
SHOP_DECIMALS = 4
NOISE = 0.6
STORED_COST, QUERY_COST = 0.05, 0.01  # ms for a stored field of the item, and for a property of the query


class Signal(NamedTuple):
    """A feature: the factors it measures, their share of its variance, and its true weight."""

    measures: Mapping[str, float]
    reliability: float
    weight: float = 0.0


class FeatureSource(NamedTuple):
    """Features returned by one call to the engine or a service, and the cost of the call in ms."""

    cost: float
    signals: Mapping[str, Signal]


WORDS, MEANING, POPULAR, QUALITY = {"words": 1.0}, {"meaning": 1.0}, {"popular": 1.0}, {"quality": 1.0}
RELEVANT = {"words": 0.6, "meaning": 0.8}

SOURCES: dict[str, FeatureSource] = {
    "match_title": FeatureSource(
        1.2,
        {
            "bm25_title": Signal(WORDS, 0.6),
            "coverage_title": Signal(WORDS, 0.45),
            "phrase_title": Signal(RELEVANT, 0.4),
        },
    ),
    "match_description": FeatureSource(
        2.5,
        {
            "bm25_description": Signal(WORDS, 0.5),
            "coverage_description": Signal(WORDS, 0.4),
            "proximity_description": Signal(RELEVANT, 0.35),
        },
    ),
    "match_attributes": FeatureSource(
        0.8,
        {
            "bm25_brand": Signal({"words": 0.8, "personal": 0.3}, 0.3),
            "bm25_category": Signal(RELEVANT, 0.35),
            "bm25_colour": Signal(WORDS, 0.15),
        },
    ),
    "text_vectors": FeatureSource(
        6.0, {"cosine_title": Signal(RELEVANT, 0.7), "cosine_description": Signal(MEANING, 0.7)}
    ),
    "image_vector": FeatureSource(9.0, {"cosine_image": Signal({"meaning": 0.8, "quality": 0.4}, 0.5, 0.5)}),
    "reranker": FeatureSource(25.0, {"cross_encoder": Signal(RELEVANT, 0.9, 2.0)}),
    "counters": FeatureSource(
        0.6,
        {
            "clicks_1d": Signal(POPULAR, 0.5),
            "clicks_7d": Signal(POPULAR, 0.8, 1.2),
            "clicks_30d": Signal(POPULAR, 0.75),
            "carts_7d": Signal(POPULAR, 0.65),
            "orders_7d": Signal({"popular": 0.9, "value": 0.3}, 0.7),
            "orders_30d": Signal({"popular": 0.9, "quality": 0.3}, 0.75),
            "ctr_7d": Signal({"popular": 0.6, "quality": 0.5}, 0.5),
        },
    ),
    "query_item_history": FeatureSource(
        3.0,
        {
            "query_clicks_30d": Signal({"popular": 0.5, "meaning": 0.7}, 0.7),
            "query_orders_30d": Signal({"meaning": 0.6, "value": 0.4, "popular": 0.4}, 0.8, 1.0),
        },
    ),
    "profile": FeatureSource(
        4.0,
        {
            "brand_affinity": Signal({"personal": 1.0}, 0.8, 0.8),
            "category_affinity": Signal({"personal": 1.0}, 0.6),
            "price_affinity": Signal({"personal": 0.6, "value": 0.6}, 0.6),
        },
    ),
    "reviews": FeatureSource(2.0, {"review_sentiment": Signal(QUALITY, 0.8)}),
}

STORED_FIELDS: dict[str, Signal] = {
    "price": Signal({"value": -1.0}, 0.9, -0.9),
    "discount": Signal({"value": 1.0}, 0.6),
    "margin": Signal({"value": -0.5}, 0.3),
    "delivery_days": Signal({"value": -0.4, "fresh": -0.3}, 0.3, -0.6),
    "rating_mean": Signal(QUALITY, 0.6, 0.6),
    "rating_count": Signal({"popular": 0.9, "quality": 0.3}, 0.5),
    "return_rate": Signal({"quality": -1.0}, 0.5),
    "seller_rating": Signal(QUALITY, 0.4),
    "image_count": Signal(QUALITY, 0.2),
    "brand_popularity": Signal(POPULAR, 0.4),
    "category_popularity": Signal(POPULAR, 0.2),
    "stock": Signal(POPULAR, 0.15),
    "age_days": Signal({"fresh": -1.0}, 0.8),
    "promoted": Signal({"value": 0.5, "popular": 0.5}, 0.1),
    "title_length": Signal(WORDS, 0.05),
}
QUERY_PROPERTIES = ("query_length", "query_frequency")


def make_shop(
    n_queries: int = 300, *, docs_per_query: tuple[int, int] = (12, 40), random_state: int = 0
) -> Dataset:
    """Draw product searches with 43 named features, all scaled to [0, 1] by the shop's feature store.

    Seven hidden factors determine how well an item fits a query: words, meaning, popularity, quality, value
    for money, freshness, and the customer's taste. A feature is x = Φ(√r·mix + √(1−r)·ε), where r is the
    share of the variance due to its mix of factors; of features with the same mix, expensive ones have a
    larger r.
    The score is ``X·truth`` plus noise with 0.6 times its standard deviation: more clicks and better ratings
    raise it, a higher price and a longer delivery lower it. The properties of the query are constant within a
    query, so they cannot change a ranking. :func:`shop_costs` returns the costs.
    """
    if n_queries < 1:
        raise ParameterError("n_queries", n_queries, "must be at least 1")
    rng = np.random.default_rng(random_state)
    sizes = list_lengths(rng, n_queries, *docs_per_query)
    hidden = rng.standard_normal((int(sizes.sum()), len(FACTORS)))
    signals = _signals()
    items = np.column_stack([_values(rng, hidden, signal) for signal in signals.values()])
    queries = np.repeat(rng.random((n_queries, len(QUERY_PROPERTIES))), sizes, axis=0)
    X: FloatArray = np.round(np.column_stack([items, queries]), SHOP_DECIMALS).astype(np.float64)
    truth = np.array([*(signal.weight for signal in signals.values()), *(0.0 for _ in QUERY_PROPERTIES)])
    y = graded_labels(rng, noisy_scores(rng, X, truth, NOISE), sizes, n_levels=4)
    qid = np.repeat([f"search {q + 1}" for q in range(n_queries)], sizes)
    return Dataset(X, y, qid, (*signals, *QUERY_PROPERTIES), truth=truth)


def shop_costs() -> FeatureCosts:
    """Costs of the features of :func:`make_shop` in milliseconds per query; one call returns a group."""
    calls = [CostUnit(name, source.cost, tuple(source.signals)) for name, source in SOURCES.items()]
    stored = [CostUnit(name, STORED_COST, (name,)) for name in STORED_FIELDS]
    analysed = [CostUnit(name, QUERY_COST, (name,)) for name in QUERY_PROPERTIES]
    return FeatureCosts((*calls, *stored, *analysed))


def _signals() -> dict[str, Signal]:
    from_calls = {name: signal for source in SOURCES.values() for name, signal in source.signals.items()}
    return from_calls | STORED_FIELDS


def _values(rng: np.random.Generator, hidden: FloatArray, signal: Signal) -> FloatArray:
    mix = np.array([signal.measures.get(factor, 0.0) for factor in FACTORS])
    mixed = hidden @ (mix / np.linalg.norm(mix))
    r = signal.reliability
    return np.asarray(
        scipy.special.ndtr(np.sqrt(r) * mixed + np.sqrt(1.0 - r) * rng.standard_normal(len(hidden)))
    )
