"""A made-up shop: named features with costs in milliseconds, and what its customers want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy

from ranksieve._types import FloatArray
from ranksieve.data.costs import CostUnit, FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.errors import ParameterError
from ranksieve.generators.ranking import graded_labels, list_lengths, noisy_scores

FACTORS = ("words", "meaning", "popular", "quality", "value", "personal", "fresh")
DECIMALS = 4
NOISE = 0.6
STORED, ANALYSED = 0.05, 0.01  # ms for a stored field of the item, and for a property of the query


class Signal(NamedTuple):
    """A feature: what it measures, how much of its variance is that, and its planted weight."""

    measures: Mapping[str, float]
    reliability: float
    weight: float = 0.0


class Source(NamedTuple):
    """Features that one call to the engine or to a service gives, and what the call costs in ms."""

    cost: float
    signals: Mapping[str, Signal]


WORDS, MEANING, POPULAR, QUALITY = {"words": 1.0}, {"meaning": 1.0}, {"popular": 1.0}, {"quality": 1.0}
RELEVANT = {"words": 0.6, "meaning": 0.8}

SOURCES: dict[str, Source] = {
    "match_title": Source(
        1.2,
        {
            "bm25_title": Signal(WORDS, 0.6),
            "coverage_title": Signal(WORDS, 0.45),
            "phrase_title": Signal(RELEVANT, 0.4),
        },
    ),
    "match_description": Source(
        2.5,
        {
            "bm25_description": Signal(WORDS, 0.5),
            "coverage_description": Signal(WORDS, 0.4),
            "proximity_description": Signal(RELEVANT, 0.35),
        },
    ),
    "match_attributes": Source(
        0.8,
        {
            "bm25_brand": Signal({"words": 0.8, "personal": 0.3}, 0.3),
            "bm25_category": Signal(RELEVANT, 0.35),
            "bm25_colour": Signal(WORDS, 0.15),
        },
    ),
    "text_vectors": Source(
        6.0, {"cosine_title": Signal(RELEVANT, 0.7), "cosine_description": Signal(MEANING, 0.7)}
    ),
    "image_vector": Source(9.0, {"cosine_image": Signal({"meaning": 0.8, "quality": 0.4}, 0.5, 0.5)}),
    "reranker": Source(25.0, {"cross_encoder": Signal(RELEVANT, 0.9, 2.0)}),
    "counters": Source(
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
    "query_item_history": Source(
        3.0,
        {
            "query_clicks_30d": Signal({"popular": 0.5, "meaning": 0.7}, 0.7),
            "query_orders_30d": Signal({"meaning": 0.6, "value": 0.4, "popular": 0.4}, 0.8, 1.0),
        },
    ),
    "profile": Source(
        4.0,
        {
            "brand_affinity": Signal({"personal": 1.0}, 0.8, 0.8),
            "category_affinity": Signal({"personal": 1.0}, 0.6),
            "price_affinity": Signal({"personal": 0.6, "value": 0.6}, 0.6),
        },
    ),
    "reviews": Source(2.0, {"review_sentiment": Signal(QUALITY, 0.8)}),
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


def make_shop(n_queries: int = 300, *, docs_per_query: tuple[int, int] = (12, 40), seed: int = 0) -> Dataset:
    """Draw product searches with 43 named features, all scaled to [0, 1] by the shop's feature store.

    Seven hidden factors make an item fit a query: its words, its meaning, how popular, good, cheap and new it
    is, and the customer's taste. A feature is x = Φ(√r·mix + √(1−r)·ε): a mix of factors, of which it shows
    the share r; expensive features show more than cheap ones of the same mix. The score is ``X·truth`` with
    noise of 0.6 times its spread: more clicks and better ratings help, a higher price and a longer delivery
    hurt.
    The properties of the query are constant within it and cannot rank. :func:`shop_costs` has the costs.
    """
    if n_queries < 1:
        raise ParameterError("n_queries", n_queries, "must be at least 1")
    rng = np.random.default_rng(seed)
    sizes = list_lengths(rng, n_queries, *docs_per_query)
    hidden = rng.standard_normal((int(sizes.sum()), len(FACTORS)))
    signals = _signals()
    items = np.column_stack([_shown(rng, hidden, signal) for signal in signals.values()])
    queries = np.repeat(rng.random((n_queries, len(QUERY_PROPERTIES))), sizes, axis=0)
    X: FloatArray = np.round(np.column_stack([items, queries]), DECIMALS).astype(np.float64)
    truth = np.array([*(signal.weight for signal in signals.values()), *(0.0 for _ in QUERY_PROPERTIES)])
    y = graded_labels(rng, noisy_scores(rng, X, truth, NOISE), sizes, n_levels=4)
    qid = np.repeat([f"search {q + 1}" for q in range(n_queries)], sizes)
    return Dataset(X, y, qid, (*signals, *QUERY_PROPERTIES), truth=truth)


def shop_costs() -> FeatureCosts:
    """What the features of :func:`make_shop` cost in milliseconds per query; one call gives a whole group."""
    calls = [CostUnit(name, source.cost, tuple(source.signals)) for name, source in SOURCES.items()]
    stored = [CostUnit(name, STORED, (name,)) for name in STORED_FIELDS]
    analysed = [CostUnit(name, ANALYSED, (name,)) for name in QUERY_PROPERTIES]
    return FeatureCosts((*calls, *stored, *analysed))


def _signals() -> dict[str, Signal]:
    called = {name: signal for source in SOURCES.values() for name, signal in source.signals.items()}
    return called | STORED_FIELDS


def _shown(rng: np.random.Generator, hidden: FloatArray, signal: Signal) -> FloatArray:
    mix = np.array([signal.measures.get(factor, 0.0) for factor in FACTORS])
    seen = hidden @ (mix / np.linalg.norm(mix))
    r = signal.reliability
    return np.asarray(
        scipy.special.ndtr(np.sqrt(r) * seen + np.sqrt(1.0 - r) * rng.standard_normal(len(hidden)))
    )
