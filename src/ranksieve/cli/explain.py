"""ranksieve explain: reasons for ranks in words, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.measures import Measures, check_measures, measures_for
from ranksieve.cli.options import Conventions, Data, Json, ScoringOptions
from ranksieve.cli.output import emit_json, table, while_doing, words

if TYPE_CHECKING:  # these take long to load
    from ranksieve.explain import FeatureDrop, PairExplanation, QueryExplanation

SHOWN_FEATURES = 8


@command(
    "ranksieve explain model.json test.txt --query 7",
    "ranksieve explain model.json test.txt --query 7 --doc D12 --above D31",
    "ranksieve explain model.json test.txt --drop --costs costs.csv",
)
def explain(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A linear model file.")],
    data: Data,
    query: Annotated[str | None, typer.Option(metavar="ID", help="The query to explain.")] = None,
    doc: Annotated[
        str | None, typer.Option(metavar="A", help="A document: its id, or its number in the query.")
    ] = None,
    above: Annotated[
        str | None, typer.Option(metavar="B", help="The document that A is compared with.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Show this many features; default 8.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="What each feature is worth on the data.")] = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="For --drop, such as ndcg@10 or map; may be repeated; default: the model's, else ndcg@10.",
        ),
    ] = None,
    profile: Conventions = None,
    costs: Annotated[
        str | None, typer.Option(metavar="FILE", help="For --drop: what each feature costs (CSV or JSON).")
    ] = None,
    scoring: ScoringOptions,
    as_json: Json = False,
) -> None:
    """Say why documents rank as they do, and what features are worth.

    With --query, what each feature adds to the scores of its documents; with --doc and --above, why one
    stands above the other; with --drop, what the metric loses and the cost saves without each feature.
    """
    if drop == (query is not None):
        raise ValueError("say what to explain: either --query ID, or --drop for the worth of each feature")
    if (doc is None) != (above is None):
        raise ValueError("--doc and --above go together: why does one document stand above the other?")
    if doc is not None and query is None:
        raise ValueError("--doc and --above need --query, the query whose documents they are")
    if (metric or profile or costs) and not drop:
        raise ValueError("--metric, --profile and --costs belong to --drop; add it or leave them out")
    check_measures(metric, profile)
    documents, models = scoring.read(data, [model])
    scorer: Any = models[model]
    if drop:
        by = measures_for(models, documents, metric, profile)
        prices = None if costs is None else rs.read_costs(costs)
        with while_doing(f"explaining {model}"):
            drops = rs.drop_costs(scorer, documents, by.metrics, prices, profile=by.profile)
        _show_drops(drops, documents, by, top, as_json)
    elif doc is not None:
        _show_pair(rs.explain_pair(scorer, documents, doc, above, query), top, as_json)
    else:
        _show_query(rs.explain_query(scorer, documents, query), top, as_json)


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
    import numpy as np

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


def _show_drops(
    drops: Sequence[FeatureDrop], data: rs.Dataset, by: Measures, top: int | None, as_json: bool
) -> None:
    if as_json:
        shown = {"n_queries": data.n_queries, "profile": by.profile.name}
        emit_json({**shown, "drops": [asdict(drop) for drop in drops]})
        return
    priced = any(drop.saved is not None for drop in drops)
    columns = ["without", "metric", "value", "loss", "p (t)", "Holm", "p (random)", "Holm"]
    for metric in dict.fromkeys(drop.metric for drop in drops):
        rows = [_drop_cells(drop, priced) for drop in drops if drop.metric == metric]
        table([*columns, *(["saves"] if priced else [])], rows[:top])
    words(
        f"Over {data.n_queries} queries, the other weights kept; {by.words}. Tests are paired and two-sided; "
        "Holm: corrected over the features."
    )


def _drop_cells(drop: FeatureDrop, priced: bool) -> tuple[Any, ...]:
    p_values = (drop.p_t, drop.p_t_holm, drop.p_randomisation, drop.p_randomisation_holm)
    cells = (drop.feature, drop.metric, f"{drop.without:.4f}", f"{drop.loss:+.4f}", *p_values)
    return (*cells, *([drop.saved] if priced else []))
