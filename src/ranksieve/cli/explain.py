"""ranksieve explain: reasons for ranks in text, tables, JSON and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import table, words
from ranksieve.errors import ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.explain import FeatureImportance, PairExplanation, QueryExplanation, WorstQuery

SHOWN_FEATURES = 8
ON_PAGE = 10  # worst queries on the page
EXPLAINED_ON_PAGE = 3  # of these


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(opt.ScoringOptions):
    """The options of ``ranksieve explain``."""

    query: Annotated[list[str] | None, opt.value("Subject", "ID", "A query; several with --report.")] = None
    doc: Annotated[opt.Text, opt.value("Subject", "A", "A document: its id, or its number in the query.")] = (
        None
    )
    above: Annotated[opt.Text, opt.value("Subject", "B", "The document that A is compared with.")] = None
    drop: Annotated[bool, opt.flag("Subject", "--drop", "What each feature contributes on the data.")] = False
    worst: Annotated[int | None, opt.value("Subject", "N", "The worst-ranked queries, and why.", min=1)] = (
        None
    )
    costs: Annotated[opt.Text, opt.value("Data", "FILE", opt.COSTS_HELP)] = None
    metric: opt.Metrics = None
    profile: opt.Conventions = None
    top: Annotated[int | None, opt.value("Output", "N", "Features to show.", "8", min=1)] = None
    report: opt.Report = None
    as_json: opt.Json = False

    def check(self) -> None:
        """Refuse options that do not go together."""
        queries = self.query or []
        modes = (bool(queries), self.drop, self.worst is not None)
        if self.report is None and (len(queries) > 1 or sum(modes) != 1):
            raise ValueError("say what to explain: either --query ID, --drop, --worst N, or --report FILE")
        if (self.doc is None) != (self.above is None):
            raise ParameterError("doc", self.doc, "must be given together with `above`")
        if self.doc is not None and (not queries or self.report is not None):
            raise ParameterError("doc", self.doc, "needs `query`, and no `report`")
        for name in ("metric", "profile"):
            if getattr(self, name) and not (self.drop or self.worst is not None or self.report is not None):
                raise ParameterError(
                    name, getattr(self, name), "needs `drop` or `worst`; add one or leave it out"
                )
        if self.costs is not None and not (self.drop or self.report is not None):
            raise ParameterError("costs", self.costs, "needs `drop`; add it or leave it out")
        opt.check_measures(self.metric, self.profile)


@command(
    "ranksieve explain model.json test.txt --query 7",
    "ranksieve explain model.json test.txt --query 7 --doc D12 --above D31",
    "ranksieve explain model.json test.txt --drop --costs costs.csv",
    "ranksieve explain model.json test.txt --worst 10",
    "ranksieve explain model.json test.txt --costs costs.csv --report page.html",
)
def explain(*, model: opt.ModelFile, data: opt.Data, options: ExplainOptions) -> None:
    """Explain ranks, and what features contribute.

    --query shows what each feature adds to the scores of its documents; --doc and --above, why one ranks
    above the other; --drop, what the metric loses and the cost saves without each feature and each group of
    the costs; --worst, the worst-ranked queries. --report writes all of it to a page.
    """
    options.check()
    opt.check_files([model, data, options.costs, *options.files], report=options.report)
    documents, models = options.with_models(data, [model])
    scorer: Any = models[model]
    if options.query and options.report is None:
        _explain_query(scorer, documents, options.query[0], options)
        return
    by = opt.measures_for(models, documents, options.metric, options.profile)
    costs = None if options.costs is None else rs.io.read_costs(options.costs)
    measured = {"n_queries": documents.n_queries, "profile": by.profile.name}
    with while_doing(f"explaining {model}"), _query_is_an_option():
        if options.report is not None:
            opt.write_text(_page(scorer, documents, by, costs, options, model), options.report)
            opt.present({"report": options.report}, options.as_json, lambda: None, options.report)
        elif options.drop:
            drops = rs.feature_importance(scorer, documents, by.metrics, costs, profile=by.profile)
            content = {**measured, "drops": [asdict(drop) for drop in drops]}
            opt.present(content, options.as_json, lambda: _show_drops(drops, documents, by, options.top))
        else:
            lowest = _worst(scorer, documents, by, options)
            content = {**measured, "worst": [one.to_dict() for one in lowest]}
            opt.present(content, options.as_json, lambda: _show_worst(lowest, documents, by))


@contextmanager
def _query_is_an_option() -> Iterator[None]:
    """Name the library's ``qid`` of a query --query; that of the readers is a column."""
    try:
        yield
    except ParameterError as error:
        name = "query" if error.name == "qid" else error.name
        raise ParameterError(name, error.value, error.reason) from None


def _explain_query(model: Any, data: rs.Dataset, query: str, options: ExplainOptions) -> None:
    with _query_is_an_option():
        if options.doc is not None:
            pair = rs.explain_pair(model, data, options.doc, options.above, query)
            opt.present(pair.to_dict(), options.as_json, lambda: _show_pair(pair, options.top))
        else:
            explained = rs.explain_query(model, data, query)
            opt.present(explained.to_dict(), options.as_json, lambda: _show_query(explained, options.top))


def _worst(model: Any, data: rs.Dataset, by: opt.Measures, options: ExplainOptions) -> tuple[WorstQuery, ...]:
    n = options.worst or ON_PAGE
    return rs.worst_queries(model.predict(data), data, by.metrics[0], n, profile=by.profile)


def _page(
    model: Any, data: rs.Dataset, by: opt.Measures, costs: Any, options: ExplainOptions, name: str
) -> str:
    from ranksieve.report.explain_page import ExplainPage, explain_page

    drops = rs.feature_importance(model, data, by.metrics, costs, profile=by.profile)
    worst = _worst(model, data, by, options)
    shown = options.query or [one.query for one in worst[:EXPLAINED_ON_PAGE]]
    explained = [rs.explain_query(model, data, query) for query in shown]
    measured = f"Over {data.n_queries} queries; {by.words}."
    return explain_page(ExplainPage(f"Why {name} ranks as it does", model, measured, drops, worst, explained))


def _show_pair(pair: PairExplanation, top: int | None) -> None:
    from ranksieve.report.explain_page import logged_values, pair_sentence, query_title

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


def _show_query(query: QueryExplanation, top: int | None) -> None:
    """Documents × the features whose contributions vary most, the others summed up; then their values."""
    import numpy as np

    from ranksieve.report.explain_page import query_title, shortened_text, value_cells

    order = np.argsort(-np.ptp(query.contributions, axis=0), kind="stable")
    shown, rest = np.split(order, [top or SHOWN_FEATURES])
    others = ["others"] if len(rest) else []
    texts = ["text"] if query.texts else []
    heads, added, values = [], [], []
    for d, parts in enumerate(query.contributions):
        text = [shortened_text(query.texts[d])] if texts else []
        heads.append((int(query.ranks[d]), query.documents[d]))
        cells = [*parts[shown], *([parts[rest].sum()] if len(rest) else [])]
        facts = (*text, f"{query.labels[d]:g}", f"{query.scores[d]:.4g}")
        added.append((*heads[d], *facts, *(f"{cell:+.4g}" for cell in cells)))
        values.append((*heads[d], *value_cells(query, d, shown.tolist())))
    names = [query.features[j] for j in shown]
    title = query_title(query.query, query.query_text)
    table(["rank", "document", *texts, "label", "score", *names, *others], added, title)
    constant = f" less the constant {query.intercept:.4g}" if query.intercept else ""
    words(f"Each row adds up to its score{constant}; a contribution is weight times feature.")
    table(["rank", "document", *names], values, "Values in the data" + (" → scaled" if query.scaled else ""))


def _show_worst(lowest: Sequence[WorstQuery], data: rs.Dataset, by: opt.Measures) -> None:
    from ranksieve.report.explain_page import worst_sentence

    for one in lowest:
        words(worst_sentence(one))
    words(
        f"The lowest of {data.n_queries} queries, without those that have no relevant document; {by.words}."
    )


def _show_drops(
    drops: Sequence[FeatureImportance], data: rs.Dataset, by: opt.Measures, top: int | None
) -> None:
    from ranksieve.report.explain_page import drop_name

    priced = any(drop.saved is not None for drop in drops)
    columns = ["without", "metric", "value", "loss", "p (t)", "Holm", "p (random)", "Holm"]
    for metric in dict.fromkeys(drop.metric for drop in drops):
        rows = [(drop_name(drop), *_drop_cells(drop, priced)) for drop in drops if drop.metric == metric]
        table([*columns, *(["saves"] if priced else [])], rows[:top])
    words(
        f"Over {data.n_queries} queries, the other weights kept; {by.words}. Tests are paired and two-sided; "
        "Holm: corrected over the rows."
    )


def _drop_cells(drop: FeatureImportance, priced: bool) -> tuple[Any, ...]:
    p_values = (drop.p_t, drop.p_t_holm, drop.p_randomisation, drop.p_randomisation_holm)
    cells = (drop.metric, f"{drop.without:.4f}", f"{drop.loss:+.4f}", *p_values)
    return (*cells, *([drop.saved] if priced else []))
