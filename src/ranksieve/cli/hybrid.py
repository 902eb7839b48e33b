"""ranksieve hybrid: the weights of the clauses of a hybrid search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import print_text, progress, table
from ranksieve.errors import DataError, ParameterError, while_doing

RUNS_HELP = "TREC runs or search responses (.json, .jsonl), one per clause; or one table with a column each."
SCALINGS_HELP = "Normalisations to try, such as list_min_max or reciprocal_rank@60; may be repeated."
ENGINE_HELP = "Try only what an engine computes: elasticsearch, opensearch, qdrant, vespa or sql."
ALL_KINDS = "none, list_min_max, list_l2, list_z, reciprocal_rank@10 and @60"


@dataclass(frozen=True, kw_only=True)
class ClauseData(opt.FusionOptions, opt.ReadingOptions):
    """The runs and judgements, or a table."""

    runs: Annotated[list[str], opt.argument("RUN...", RUNS_HELP)]
    qrels: opt.Judgements = None
    values: Annotated[str, opt.value("Data", "KIND", "What a table holds: scores or ranks.")] = "scores"
    valid: Annotated[opt.Text, opt.value("Data", "FILE", "Validation data, if the clauses are a table.")] = (
        None
    )

    @property
    def files(self) -> tuple[str | None, ...]:
        return (*super().files, *self.runs, self.qrels, self.valid)

    def read(self) -> tuple[rs.Dataset, rs.Dataset | None]:
        joined = self.join(self.runs, self.qrels)
        if joined is not None and self.valid is not None:
            raise ParameterError("valid", self.valid, "applies to tables; leave it out")
        if joined is not None:
            return self.with_texts(joined), None
        return self.data(self.runs[0]), None if self.valid is None else self.data(self.valid)


@dataclass(frozen=True, kw_only=True)
class HybridOptions:
    """Parameters of the ranker."""

    max_features: Annotated[int | None, opt.value("Budget", "K", "Maximum number of clauses.", min=1)] = None
    costs: Annotated[opt.Text, opt.value("Budget", "FILE", opt.COSTS_HELP)] = None
    max_cost: Annotated[
        float | None, opt.value("Budget", "C", "Maximum total cost of the clauses.", min=0)
    ] = None
    must_have: Annotated[opt.Text, opt.value("Budget", "A,B*", "Clauses that are always used.")] = None
    must_not: Annotated[opt.Text, opt.value("Budget", "A,B*", "Clauses that are never used.")] = None
    metric: Annotated[
        opt.Text, opt.value("Model", "NAME", "Metric to select by, such as map.", "ndcg@10")
    ] = None
    profile: Annotated[opt.Text, opt.value("Model", "NAME", opt.PROFILE_HELP, "standard")] = None
    normalise: Annotated[list[str] | None, opt.value("Model", "KIND", SCALINGS_HELP, ALL_KINDS)] = None
    engine: Annotated[opt.Text, opt.value("Model", "NAME", ENGINE_HELP)] = None
    previous_file: Annotated[
        opt.Text, opt.value("Model", "FILE", "Previous model to update.", None, ["--from"])
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        if self.max_cost is not None and self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `costs`, the cost of each clause")
        values = {
            "max_features": self.max_features, "metric": self.metric, "profile": self.profile,
            "feature_costs": None if self.costs is None else rs.io.read_costs(self.costs),
            "max_cost": self.max_cost, "engine": self.engine,
            "must_have": None if self.must_have is None else opt.comma_separated(self.must_have),
            "must_not": None if self.must_not is None else opt.comma_separated(self.must_not),
            "normalise": self.normalise and opt.comma_separated(",".join(self.normalise)),
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}


@command(
    "ranksieve hybrid bm25.run dense.run --qrels qrels.txt -o hybrid.json",
    "ranksieve hybrid log.jsonl --qrels qrels.txt --costs ms.csv --max-cost 9",
    "ranksieve hybrid *.run --qrels qrels.txt --engine opensearch",
    "ranksieve hybrid ranks.parquet --values ranks --report page.html",
)
def hybrid(
    *,
    clauses: ClauseData,
    ranker: HybridOptions,
    output: Annotated[opt.Text, opt.output_option("FILE", "Model file to write.")] = None,
    report: opt.Report = None,
    as_json: opt.Json = False,
) -> None:
    """Find the weights of the clauses of a hybrid search.

    Fits weights ≥ 0 of scores under each normalisation and of reciprocal ranks, and evaluates them on
    held-out queries together with each clause alone, equal weights and reciprocal rank fusion (RRF). A clause
    that did not return a document counts 0 for it.
    """
    opt.check_files([*clauses.files, ranker.costs, ranker.previous_file], output, report=report)
    parameters = {**ranker.parameters, "values": clauses.values}
    previous = None if ranker.previous_file is None else opt.previous_model(ranker.previous_file)
    data, valid = clauses.read()
    if data.X.shape[1] < 2:
        raise DataError(clauses.runs[0], None, "has only one clause; pass at least two")
    title = "fitting the weights"
    with progress(title) as bar, while_doing(title):
        model = rs.HybridRanker(**parameters).fit(data, valid=valid, previous=previous, progress=bar)
        worth = model.clause_worth(data, valid=valid)
        points = [] if report is None else model.weight_map(data, valid=valid)
    content: dict[str, Any] = {"weights": model.weights_}
    content |= model.hybrid_.to_dict() if model.choice_ is not None else {}
    content["sentences"] = [*model.hybrid_.sentences, *(one.sentence for one in worth)]
    content["worth"] = [vars(one) for one in worth]
    if output is not None:
        model.to_model().save(output)
    if report is not None:
        from ranksieve.report.hybrid_page import hybrid_page

        opt.write_text(hybrid_page(content, points, model.hybrid_), report)
    opt.print_result(content, as_json, lambda: _show(content, model), output, report)


def _show(content: Mapping[str, Any], model: rs.HybridRanker) -> None:
    for sentence in content["sentences"]:
        print_text(sentence)
    if model.choice_ is None:
        return
    priced = model.costs_ is not None
    rows = [
        (
            one["name"], one["normalise"], f"{one['mean']:.4f}", f"{one['low']:.4f} to {one['high']:.4f}",
            len(one["weights"]), *([f"{one['cost']:g}"] if priced else []),
        )
        for one in sorted(content["fusions"], key=lambda one: -one["mean"])
    ]  # fmt: skip
    metric = content["metric"].upper()
    columns = ["weights", "normalisation", f"held-out {metric}", "95 % CI", "clauses"]
    table([*columns, *(["cost"] if priced else [])], rows)
    clauses = [
        (name, f"{one['returned']:.1%}", one["depth"], f"{model.weights_.get(name, 0.0):.3f}")
        for name, one in content["clauses"].items()
    ]
    table(["clause", "documents returned", "longest list", "weight"], clauses)
