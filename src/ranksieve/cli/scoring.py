"""Commands that score documents with models: rank, evaluate, compare, explain."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import DEFAULT_METRICS, FORMATS, Data, Json, Metrics, StoredMissing

MODELS = "A model file of ranksieve, RankLib or fastrank."
Qrels = Annotated[
    str | None, typer.Option(metavar="FILE", help="TREC judgements, to measure TREC runs instead of DATA.")
]
Profile = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Conventions: letor (default), mslr, standard, trec (for runs)."),
]
FirstFeature = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, max=1, help="A fastrank model counts features from 1, or from 0 on arrays."
    ),
]


@command(
    "ranksieve rank model.json test.txt -o scores.txt", "ranksieve rank model.json test.txt --format trec"
)
def rank(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODELS)],
    data: Data,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; default stdout.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="scores, one a line in input order, or trec.")
    ] = "scores",
    missing: StoredMissing = None,
    first_feature: FirstFeature = None,
) -> None:
    """Score documents with a model.

    The higher the score, the higher the rank. Scores come in the order of the documents.
    """
    from ranksieve.commands.scoring import rank_documents

    rank_documents(model, data, missing=missing, first_feature=first_feature, output=output, form=form)


@command(
    "ranksieve evaluate test.txt --model model.json --metric ndcg@10 --metric map",
    "ranksieve evaluate test.txt --scores scores.txt --empty skip --per-query",
    "ranksieve evaluate --run run.txt --qrels qrels.txt",
)
def evaluate(
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=FORMATS, show_default=False)] = None,
    model: Annotated[str | None, typer.Option(metavar="FILE", help=MODELS)] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="FILE", help="One score a line, in the order of the data.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="FILE", help="A TREC run, to measure against --qrels.")
    ] = None,
    qrels: Qrels = None,
    metric: Metrics = DEFAULT_METRICS,
    profile: Profile = None,
    empty: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="What a query without a relevant document counts: 0, 1 or skip."),
    ] = None,
    missing: StoredMissing = None,
    first_feature: FirstFeature = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show every query too.")] = False,
    as_json: Json = False,
) -> None:
    """Measure how well a model, a file of scores or a TREC run ranks.

    Each query counts the same. The letor profile follows the official LETOR scripts, where a list shorter
    than k has an NDCG at k of zero; the trec profile follows trec_eval -c.
    """
    from ranksieve.commands.scoring import evaluate_scores

    evaluate_scores(
        data,
        model=model,
        scores=scores,
        run=run,
        qrels=qrels,
        metrics=metric,
        profile=profile,
        empty=empty,
        missing=missing,
        first_feature=first_feature,
        per_query=per_query,
        as_json=as_json,
    )


@command(
    "ranksieve compare test.txt sparse.json dense.json",
    "ranksieve compare test.txt a.txt b.txt --baseline b",
    "ranksieve compare bm25.run model.run --qrels qrels.txt",
)
def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="DATA A B [C ...]: data, then models or files of scores; with --qrels TREC runs only.",
        ),
    ],
    qrels: Qrels = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare all with this one instead of every pair.")
    ] = None,
    metric: Metrics = DEFAULT_METRICS,
    profile: Profile = None,
    alternative: Annotated[
        str, typer.Option(metavar="NAME", help="two-sided, or greater: is the first better than the second?")
    ] = "two-sided",
    missing: StoredMissing = None,
    first_feature: FirstFeature = None,
    as_json: Json = False,
) -> None:
    """Test whether rankings differ, query by query.

    Shows means and differences, and the p-values of the paired t-test and of the randomisation test, both
    also with Holm's correction for many comparisons.
    """
    from ranksieve.commands.scoring import compare_rankings

    compare_rankings(
        files,
        qrels=qrels,
        baseline=baseline,
        metrics=metric,
        profile=profile,
        alternative=alternative,
        missing=missing,
        first_feature=first_feature,
        as_json=as_json,
    )


@command(
    "ranksieve explain model.json test.txt --query 7",
    "ranksieve explain model.json test.txt --query 7 --doc D12 --above D31",
    "ranksieve explain model.json test.txt --drop --costs costs.csv",
)
def explain(
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
        typer.Option(metavar="NAME", help="For --drop, such as ndcg@10 or map; may be repeated."),
    ] = None,
    profile: Profile = None,
    costs: Annotated[
        str | None, typer.Option(metavar="FILE", help="For --drop: what each feature costs (CSV or JSON).")
    ] = None,
    missing: StoredMissing = None,
    first_feature: FirstFeature = None,
    as_json: Json = False,
) -> None:
    """Say why documents rank as they do, and what features are worth.

    With --query, what each feature adds to the scores of its documents; with --doc and --above, why one
    stands above the other; with --drop, what the metric loses and the cost saves without each feature.
    """
    from ranksieve.commands.explaining import explain_model

    explain_model(
        model,
        data,
        query=query,
        doc=doc,
        above=above,
        top=top,
        drop=drop,
        metrics=metric,
        profile=profile,
        costs=costs,
        missing=missing,
        first_feature=first_feature,
        as_json=as_json,
    )
