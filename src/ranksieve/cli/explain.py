"""ranksieve explain: reasons for ranks in words, tables, JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    Conventions,
    Data,
    Json,
    Measures,
    ScoringOptions,
    beside,
    check_measures,
    check_outputs,
    measures_for,
    write_text,
)
from ranksieve.cli.output import emit_json, table, words
from ranksieve.errors import ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.explain import FeatureDrop, PairExplanation, QueryExplanation, WorstQuery

SHOWN_FEATURES = 8
ON_PAGE = 10  # worst queries, unless told otherwise
EXPLAINED_ON_PAGE = 3  # of these


@command(
    "ranksieve explain model.json test.txt --query 7",
    "ranksieve explain model.json test.txt --query 7 --doc D12 --above D31",
    "ranksieve explain model.json test.txt --drop --costs costs.csv",
    "ranksieve explain model.json test.txt --worst 10",
    "ranksieve explain model.json test.txt --costs costs.csv --html page.html",
)
def explain(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A linear model file.")],
    data: Data,
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="The query to explain; with --html may be repeated."),
    ] = None,
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
    worst: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The queries with the lowest metric, and why.")
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all of this as one HTML page.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="For --drop and --worst, such as ndcg@10 or map; may be repeated; default: the model's, "
            "else ndcg@10.",
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
    stands above the other; with --drop, what the metric loses and the cost saves without each feature and
    each group of the costs; with --worst, which queries are served worst. Values are shown as the data have
    them. With --html, all of it on a page.
    """
    asked = query or []
    _check_request(asked, doc, above, drop, worst, html, {"metric": metric, "profile": profile}, costs)
    check_measures(metric, profile)
    check_outputs([html], [model, data, costs])
    documents, models = scoring.read(data, [model])
    scorer: Any = models[model]
    if asked and html is None:
        with _query_is_an_option():
            if doc is not None:
                _show_pair(rs.explain_pair(scorer, documents, doc, above, asked[0]), top, as_json)
            else:
                _show_query(rs.explain_query(scorer, documents, asked[0]), top, as_json)
        return
    by = measures_for(models, documents, metric, profile)
    prices = None if costs is None else rs.read_costs(costs)
    with while_doing(f"explaining {model}"), _query_is_an_option():
        if html is not None:
            page = _page(scorer, documents, by, prices, asked, worst or ON_PAGE, model)
            write_text(page, html)
        elif drop:
            drops = rs.drop_costs(scorer, documents, by.metrics, prices, profile=by.profile)
        else:
            lowest = _worst(scorer, documents, by, worst or ON_PAGE)
    if html is not None:
        with beside(html):
            emit_json({"output": html}) if as_json else words(f"Wrote {html}.")
    elif drop:
        _show_drops(drops, documents, by, top, as_json)
    else:
        _show_worst(lowest, documents, by, as_json)


@contextmanager
def _query_is_an_option() -> Iterator[None]:
    """Call the library's ``qid`` of a query --query; the readers' is a column."""
    try:
        yield
    except ParameterError as error:
        name = "query" if error.name == "qid" else error.name
        raise ParameterError(name, error.value, error.reason) from None


def _check_request(
    query: Sequence[str],
    doc: str | None,
    above: str | None,
    drop: bool,
    worst: int | None,
    html: str | None,
    measured: Mapping[str, Any],
    costs: str | None,
) -> None:
    """Refuse what does not go together."""
    if html is None and (len(query) > 1 or sum((bool(query), drop, worst is not None)) != 1):
        raise ValueError(
            "say what to explain: either --query ID, or --drop for the worth of each feature, or --worst N "
            "for the worst queries, or --html FILE for all of it"
        )
    if (doc is None) != (above is None):
        raise ParameterError("doc", doc, "must be given together with `above`")
    if doc is not None and (not query or html is not None):
        raise ParameterError("doc", doc, "needs `query`, and no `html`")
    for name, value in measured.items():
        if value and not (drop or worst is not None or html is not None):
            raise ParameterError(name, value, "needs `drop` or `worst`; add one or leave it out")
    if costs is not None and not (drop or html is not None):
        raise ParameterError("costs", costs, "needs `drop`; add it or leave it out")


def _worst(model: Any, data: rs.Dataset, by: Measures, n: int) -> tuple[WorstQuery, ...]:
    return rs.worst_queries(model.predict(data), data, by.metrics[0], n, profile=by.profile)


def _page(
    model: Any, data: rs.Dataset, by: Measures, prices: Any, asked: Sequence[str], n_worst: int, name: str
) -> str:
    from ranksieve.report.explain_page import ExplainPage, explain_page
    from ranksieve.report.page import require_extra

    require_extra()
    drops = rs.drop_costs(model, data, by.metrics, prices, profile=by.profile)
    worst = _worst(model, data, by, n_worst)
    shown = asked or [one.query for one in worst[:EXPLAINED_ON_PAGE]]
    explained = [rs.explain_query(model, data, query) for query in shown]
    measured = f"Over {data.n_queries} queries; {by.words}."
    return explain_page(ExplainPage(f"Why {name} ranks as it does", model, measured, drops, worst, explained))


def _show_pair(pair: PairExplanation, top: int | None, as_json: bool) -> None:
    from ranksieve.report.explain_page import logged_values, pair_sentence, query_title

    if as_json:
        emit_json(pair.to_dict())
        return
    if pair.query_text:
        words(query_title(pair.query, pair.query_text))
    words(pair_sentence(pair, top or SHOWN_FEATURES))
    scaled = [f"{pair.a}, scaled", f"{pair.b}, scaled"] if pair.scaled else []
    rows = [
        (
            p.feature, *logged_values(p), *((p.value_a, p.value_b) if scaled else ()), p.weight,
            f"{p.contribution:+.4g}",
        )
        for p in pair.parts[:top]
    ]  # fmt: skip
    table(["feature", str(pair.a), str(pair.b), *scaled, "weight", "contribution"], rows)
    all_of_them = (
        "The contribution adds" if len(pair.parts) == 1 else f"All {len(pair.parts)} contributions add"
    )
    words(
        f"{all_of_them} up to {pair.difference:+.6g} = {pair.score_a:.6g} - "
        f"{pair.score_b:.6g}. {pair.a} is at rank {pair.rank_a}, {pair.b} at rank {pair.rank_b}."
    )


def _show_query(query: QueryExplanation, top: int | None, as_json: bool) -> None:
    """Documents × the features whose contributions vary most, the others summed up; then their values."""
    import numpy as np

    from ranksieve.report.explain_page import query_title, shortened_text, value_cells

    if as_json:
        emit_json(query.to_dict())
        return
    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [top or SHOWN_FEATURES])
    others = ["others"] if len(rest) else []
    texts = ["text"] if query.texts else []
    heads, added, values = [], [], []
    for d, parts in enumerate(query.contributions):
        text = [shortened_text(query.texts[d])] if texts else []
        heads.append((int(query.ranks[d]), query.documents[d]))
        cells = [*parts[shown], *([parts[rest].sum()] if len(rest) else [])]
        told = (*text, f"{query.labels[d]:g}", f"{query.scores[d]:.4g}")
        added.append((*heads[d], *told, *(f"{cell:+.4g}" for cell in cells)))
        values.append((*heads[d], *value_cells(query, d, shown.tolist())))
    names = [query.features[j] for j in shown]
    title = query_title(query.query, query.query_text)
    table(["rank", "document", *texts, "label", "score", *names, *others], added, title)
    constant = f" less the constant {query.intercept:.4g}" if query.intercept else ""
    words(f"Each row adds up to its score{constant}; a contribution is weight times feature.")
    table(["rank", "document", *names], values, "Values in the data" + (" → scaled" if query.scaled else ""))


def _show_worst(lowest: Sequence[WorstQuery], data: rs.Dataset, by: Measures, as_json: bool) -> None:
    from ranksieve.report.explain_page import worst_sentence

    if as_json:
        shown = {"n_queries": data.n_queries, "profile": by.profile.name}
        emit_json({**shown, "worst": [one.to_dict() for one in lowest]})
        return
    for one in lowest:
        words(worst_sentence(one))
    words(
        f"The lowest of {data.n_queries} queries, without those that have no relevant document; {by.words}."
    )


def _show_drops(
    drops: Sequence[FeatureDrop], data: rs.Dataset, by: Measures, top: int | None, as_json: bool
) -> None:
    from ranksieve.report.explain_page import drop_name

    if as_json:
        shown = {"n_queries": data.n_queries, "profile": by.profile.name}
        emit_json({**shown, "drops": [asdict(drop) for drop in drops]})
        return
    priced = any(drop.saved is not None for drop in drops)
    columns = ["without", "metric", "value", "loss", "p (t)", "Holm", "p (random)", "Holm"]
    for metric in dict.fromkeys(drop.metric for drop in drops):
        rows = [(drop_name(drop), *_drop_cells(drop, priced)) for drop in drops if drop.metric == metric]
        table([*columns, *(["saves"] if priced else [])], rows[:top])
    words(
        f"Over {data.n_queries} queries, the other weights kept; {by.words}. Tests are paired and two-sided; "
        "Holm: corrected over the rows."
    )


def _drop_cells(drop: FeatureDrop, priced: bool) -> tuple[Any, ...]:
    p_values = (drop.p_t, drop.p_t_holm, drop.p_randomisation, drop.p_randomisation_holm)
    cells = (drop.metric, f"{drop.without:.4f}", f"{drop.loss:+.4f}", *p_values)
    return (*cells, *([drop.saved] if priced else []))
