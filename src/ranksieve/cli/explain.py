"""ranksieve explain: contributions of features to scores and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_all, print_text
from ranksieve.errors import ParameterError, while_doing

if TYPE_CHECKING:
    from ranksieve.explain import FeatureImportance, WorstQuery

WORST_ON_PAGE = 10
EXPLAINED_ON_PAGE = 3  # of the worst queries


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(opt.MoreRuns, opt.ScoringOptions):
    """The options of ``ranksieve explain``."""

    qrels: opt.Judgements = None
    query: Annotated[
        list[str] | None, opt.value("Subject", "ID", "Query to explain; several with --report.")
    ] = None
    doc: Annotated[opt.Text, opt.value("Subject", "A", "Document: its id, or its number in the query.")] = (
        None
    )
    above: Annotated[opt.Text, opt.value("Subject", "B", "Document to compare A with.")] = None
    text: Annotated[
        list[str] | None,
        opt.value("Columns", "A,B*", "Text columns to show with documents.", "named like a title"),
    ] = None
    drop: Annotated[bool, opt.flag("Subject", "--drop", "Loss of the metric without each feature.")] = False
    worst: Annotated[int | None, opt.value("Subject", "N", "The N worst-ranked queries, and why.", min=1)] = (
        None
    )
    costs: Annotated[opt.Text, opt.value("Data", "FILE", opt.COSTS_HELP)] = None
    metric: opt.Metrics = None
    profile: opt.Conventions = None
    ties: opt.TieRule = None
    top: Annotated[int | None, opt.value("Output", "N", "Number of features to show.", "8", min=1)] = None
    report: opt.Report = None
    as_json: opt.Json = False

    def check(self) -> None:
        """Refuse invalid combinations of options."""
        queries = self.query or []
        modes = (bool(queries), self.drop, self.worst is not None)
        if self.report is None and (len(queries) > 1 or sum(modes) != 1):
            raise ValueError(
                "specify what to explain: one of --query ID, --drop and --worst N, or --report FILE"
            )
        if (self.doc is None) != (self.above is None):
            raise ParameterError("doc", self.doc, "must be used together with `above`")
        if self.doc is not None and len(queries) != 1:
            raise ParameterError("doc", self.doc, "needs one `query`")
        for name in ("metric", "profile", "ties"):
            if getattr(self, name) and not (self.drop or self.worst is not None or self.report is not None):
                raise ParameterError(
                    name, getattr(self, name), "needs `drop` or `worst`; add one or leave it out"
                )
        if self.unjudged == "drop" and (self.drop or self.worst is not None or self.report is not None):
            reason = "is supported for `query` only; the metric would count unjudged documents as irrelevant"
            raise ParameterError("unjudged", self.unjudged, reason)
        if self.costs is not None and not (self.drop or self.report is not None):
            raise ParameterError("costs", self.costs, "needs `drop`; add it or leave it out")
        opt.check_measures(self.metric, self.profile, self.ties)


@command(
    "ranksieve explain model.json test.txt --query 7",
    "ranksieve explain model.json test.txt --query 7 --doc D12 --above D31",
    "ranksieve explain model.json test.txt --drop --costs costs.csv",
    "ranksieve explain model.json test.txt --worst 10",
    "ranksieve explain hybrid.json bm25.run dense.run --qrels qrels.txt --query 7",
    "ranksieve explain model.json test.txt --costs costs.csv --report page.html",
)
def explain(*, model: opt.ModelFile, data: opt.Data, options: ExplainOptions) -> None:
    """Explain rankings by the contributions of features.

    --query shows the contribution of each feature to the scores of a query's documents; --doc and --above,
    why one document ranks above another; --drop, the loss of the metric and the saved cost without each
    feature and each cost group; --worst, the worst-ranked queries. --report writes everything to a page.
    """
    options.check()
    files = [model, data, *(options.runs or ()), options.qrels, options.costs, *options.files]
    opt.check_files(files, report=options.report)
    documents, models = options.with_models(data, [model], options.joined(data, options.qrels))
    if options.text:
        from ranksieve.data.describe import show_texts

        show_texts(documents, opt.comma_separated(",".join(options.text)))
    scorer: Any = models[model]
    if options.query and options.report is None:
        _explain_query(scorer, documents, options.query[0], options)
        return
    by = opt.measures_for(models, documents, options.metric, options.profile, options.ties)
    costs = None if options.costs is None else rs.io.read_costs(options.costs)
    measured = {"n_queries": documents.n_queries, "profile": by.profile.name, "ties": by.profile.ties}
    with while_doing(f"explaining {model}"), _qid_as_query_option():
        if options.report is not None:
            opt.write_text(_page(scorer, documents, by, costs, options, model), options.report)
            opt.print_result({"report": options.report}, options.as_json, lambda: None, options.report)
        elif options.drop:
            drops = rs.feature_importance(scorer, documents, by.metrics, costs, profile=by.profile)
            content = {**measured, "drops": [asdict(drop) for drop in drops]}
            opt.print_result(content, options.as_json, lambda: _show_drops(drops, documents, by, options.top))
        else:
            lowest = _worst(scorer, documents, by, options)
            content = {**measured, "worst": [one.to_dict() for one in lowest]}
            opt.print_result(content, options.as_json, lambda: _show_worst(lowest, documents, by))


@contextmanager
def _qid_as_query_option() -> Iterator[None]:
    """Report errors about ``qid`` under --query: for the readers, ``qid`` is a column."""
    try:
        yield
    except ParameterError as error:
        name = "query" if error.name == "qid" else error.name
        raise ParameterError(name, error.value, error.reason) from None


def _explain_query(model: Any, data: rs.Dataset, query: str, options: ExplainOptions) -> None:
    from ranksieve.show.explain import pair_parts, query_parts

    with _qid_as_query_option():
        if options.doc is not None:
            pair = rs.explain_pair(model, data, options.doc, options.above, query)
            opt.print_result(
                pair.to_dict(), options.as_json, lambda: print_all(pair_parts(pair, options.top))
            )
        else:
            explained = rs.explain_query(model, data, query)
            opt.print_result(
                explained.to_dict(), options.as_json, lambda: print_all(query_parts(explained, options.top))
            )


def _worst(model: Any, data: rs.Dataset, by: opt.Measures, options: ExplainOptions) -> tuple[WorstQuery, ...]:
    n = options.worst or WORST_ON_PAGE
    return rs.worst_queries(model.predict(data), data, by.metrics[0], n, profile=by.profile)


def _page(
    model: Any, data: rs.Dataset, by: opt.Measures, costs: Any, options: ExplainOptions, name: str
) -> str:
    from ranksieve.report.explain_page import ExplainPage, explain_page

    drops = rs.feature_importance(model, data, by.metrics, costs, profile=by.profile)
    worst = _worst(model, data, by, options)
    shown = options.query or [one.query for one in worst[:EXPLAINED_ON_PAGE]]
    explained = [rs.explain_query(model, data, query) for query in shown]
    measured = f"Over {data.n_queries} queries; {by.description}."
    title, pair = f"Explanation of {Path(name).name}", None
    if options.doc is not None:
        pair = rs.explain_pair(model, data, options.doc, options.above, shown[0])  # type: ignore[arg-type]
    return explain_page(ExplainPage(title, model, measured, drops, worst, explained, data, pair))


def _show_worst(lowest: Sequence[WorstQuery], data: rs.Dataset, by: opt.Measures) -> None:
    from ranksieve.show.explain import worst_sentence

    for one in lowest:
        print_text(worst_sentence(one))
    print_text(
        f"Lowest of {data.n_queries} queries, excluding those without a relevant document; {by.description}."
    )


def _show_drops(
    drops: Sequence[FeatureImportance], data: rs.Dataset, by: opt.Measures, top: int | None
) -> None:
    from ranksieve.show.explain import drop_parts

    print_all(drop_parts(drops, top))
    print_text(
        f"Over {data.n_queries} queries, other weights unchanged; {by.description}. Paired two-sided tests; "
        "Holm: corrected for the number of rows."
    )
