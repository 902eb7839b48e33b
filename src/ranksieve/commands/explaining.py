"""explain: reasons for ranks in words, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ranksieve.commands.guard import while_doing
from ranksieve.commands.models import read_with_models
from ranksieve.commands.show import emit_json, table, words
from ranksieve.data.dataset import Dataset
from ranksieve.explain import (
    FeatureDrop,
    PairExplanation,
    QueryExplanation,
    drop_costs,
    explain_pair,
    explain_query,
)
from ranksieve.formats.feature_tables import read_costs
from ranksieve.metrics.evaluate import parse_all
from ranksieve.metrics.profiles import as_profile

SHOWN_FEATURES = 8
METRICS = ("ndcg@10",)


def explain_model(
    model_file: str,
    data_file: str,
    *,
    query: str | None,
    doc: str | None,
    above: str | None,
    top: int | None,
    drop: bool,
    metrics: Sequence[str] | None,
    profile: str | None,
    costs: str | None,
    missing: str | None,
    first_feature: int | None,
    as_json: bool,
) -> None:
    """Explain a pair, a query or the features of a model."""
    _check_question(query, doc, above, drop, [name for name in (metrics, profile, costs) if name])
    parse_all(metrics or METRICS)
    conventions = as_profile(profile or "letor")
    data, models = read_with_models(data_file, [model_file], missing, first_feature)
    model: Any = models[model_file]
    if drop:
        prices = None if costs is None else read_costs(costs)
        with while_doing(f"explaining {model_file}"):
            drops = drop_costs(model, data, metrics or METRICS, prices, profile=conventions)
        _show_drops(drops, data, top, as_json)
    elif doc is not None:
        _show_pair(explain_pair(model, data, doc, above, query), top, as_json)
    else:
        _show_query(explain_query(model, data, query), top, as_json)


def _check_question(
    query: str | None, doc: str | None, above: str | None, drop: bool, for_drop: Sequence[Any]
) -> None:
    if drop == (query is not None):
        raise ValueError("say what to explain: either --query ID, or --drop for the worth of each feature")
    if (doc is None) != (above is None):
        raise ValueError("--doc and --above go together: why does one document stand above the other?")
    if doc is not None and query is None:
        raise ValueError("--doc and --above need --query, the query whose documents they are")
    if for_drop and not drop:
        raise ValueError("--metric, --profile and --costs belong to --drop; add it or leave them out")


def _show_pair(pair: PairExplanation, top: int | None, as_json: bool) -> None:
    if as_json:
        emit_json(pair.to_dict())
        return
    words(pair_sentence(pair, top or SHOWN_FEATURES))
    table(
        ["feature", "weight", str(pair.a), str(pair.b), "contribution"],
        [(p.feature, p.weight, p.value_a, p.value_b, f"{p.contribution:+.4g}") for p in pair.parts[:top]],
    )
    words(
        f"All {len(pair.parts)} contributions add up to {pair.difference:+.6g} = {pair.score_a:.6g} - "
        f"{pair.score_b:.6g}."
    )


def pair_sentence(pair: PairExplanation, top: int) -> str:
    """A stands above B by 0.42: bm25_title +0.31 (0.9 against 0.2), …"""
    relation = "above" if pair.difference > 0 else "below" if pair.difference < 0 else "level with"
    by = f" by {abs(pair.difference):.4g}" if pair.difference else ""
    parts = [part for part in pair.parts if part.contribution]
    reasons = [f"{p.feature} {p.contribution:+.4g} ({p.value_a:.4g} against {p.value_b:.4g})" for p in parts]
    more = f" and {len(reasons) - top} smaller" if len(reasons) > top else ""
    listed = ", ".join(reasons[:top]) + more if reasons else "no feature in use differs"
    return f"{pair.a} stands {relation} {pair.b}{by}: {listed}."


def _show_query(query: QueryExplanation, top: int | None, as_json: bool) -> None:
    """Documents × the features whose contributions vary most, the others summed up."""
    if as_json:
        emit_json(query.to_dict())
        return
    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [top or SHOWN_FEATURES])
    others = ["others"] if len(rest) else []
    rows = []
    for d, parts in enumerate(query.contributions):
        cells = [*parts[shown], *([parts[rest].sum()] if len(rest) else [])]
        head = (int(query.ranks[d]), query.documents[d], f"{query.labels[d]:g}", f"{query.scores[d]:.4g}")
        rows.append((*head, *(f"{cell:+.4g}" for cell in cells)))
    names = [query.features[j] for j in shown]
    table(["rank", "document", "label", "score", *names, *others], rows, f"Query {query.query}")
    constant = f" less the constant {query.intercept:.4g}" if query.intercept else ""
    words(f"Each row adds up to its score{constant}; a contribution is weight times feature.")


def _show_drops(drops: Sequence[FeatureDrop], data: Dataset, top: int | None, as_json: bool) -> None:
    if as_json:
        emit_json({"n_queries": data.n_queries, "drops": [asdict(drop) for drop in drops]})
        return
    priced = any(drop.saved is not None for drop in drops)
    columns = ["without", "metric", "value", "loss", "p (t)", "Holm", "p (random)", "Holm"]
    for metric in dict.fromkeys(drop.metric for drop in drops):
        rows = [_drop_cells(drop, priced) for drop in drops if drop.metric == metric]
        table([*columns, *(["saves"] if priced else [])], rows[:top])
    words(
        f"Over {data.n_queries} queries, the other weights kept; tests are paired and two-sided; Holm: "
        "corrected over the features."
    )


def _drop_cells(drop: FeatureDrop, priced: bool) -> tuple[Any, ...]:
    p_values = (drop.p_t, drop.p_t_holm, drop.p_randomisation, drop.p_randomisation_holm)
    cells = (drop.feature, drop.metric, f"{drop.without:.4f}", f"{drop.loss:+.4f}", *p_values)
    return (*cells, *([drop.saved] if priced else []))
