"""Commands that score documents with models: rank, evaluate, compare."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import DEFAULT_METRICS, Data, Json, Metrics, Profile, StoredMissing


@command(
    "ranksieve rank model.json test.txt -o scores.txt", "ranksieve rank model.json test.txt --format trec"
)
def rank(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file written by fit.")],
    data: Data,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; default stdout.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="scores, one a line in input order, or trec.")
    ] = "scores",
    missing: StoredMissing = None,
) -> None:
    """Score documents with a model.

    The higher the score, the higher the rank. Scores come in the order of the documents.
    """
    from ranksieve.commands.scoring import rank_documents

    rank_documents(model, data, missing=missing, output=output, form=form)


@command(
    "ranksieve evaluate test.txt --model model.json --metric ndcg@10 --metric map",
    "ranksieve evaluate test.txt --scores scores.txt --empty skip --per-query",
)
def evaluate(
    data: Data,
    model: Annotated[str | None, typer.Option(metavar="FILE", help="A model file written by fit.")] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="FILE", help="One score a line, in the order of the data.")
    ] = None,
    metric: Metrics = DEFAULT_METRICS,
    profile: Profile = "letor",
    empty: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="What a query without a relevant document counts: 0, 1 or skip."),
    ] = None,
    missing: StoredMissing = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show every query too.")] = False,
    as_json: Json = False,
) -> None:
    """Measure how well a model or a file of scores ranks.

    Each query counts the same. The letor profile follows the official LETOR scripts, where a list shorter
    than k has an NDCG at k of zero.
    """
    from ranksieve.commands.scoring import evaluate_scores

    evaluate_scores(
        data,
        model=model,
        scores=scores,
        metrics=metric,
        profile=profile,
        empty=empty,
        missing=missing,
        per_query=per_query,
        as_json=as_json,
    )


@command(
    "ranksieve compare test.txt sparse.json dense.json", "ranksieve compare test.txt a.txt b.txt --baseline b"
)
def compare(
    data: Data,
    rankings: Annotated[
        list[str], typer.Argument(metavar="A B [C ...]", help="Model files (.json) or files of scores.")
    ],
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare all with this one instead of every pair.")
    ] = None,
    metric: Metrics = DEFAULT_METRICS,
    profile: Profile = "letor",
    alternative: Annotated[
        str, typer.Option(metavar="NAME", help="two-sided, or greater: is the first better than the second?")
    ] = "two-sided",
    missing: StoredMissing = None,
    as_json: Json = False,
) -> None:
    """Test whether rankings differ, query by query.

    Shows means and differences, and the p-values of the paired t-test and of the randomisation test, both
    also with Holm's correction for many comparisons.
    """
    from ranksieve.commands.scoring import compare_rankings

    compare_rankings(
        data,
        rankings,
        baseline=baseline,
        metrics=metric,
        profile=profile,
        alternative=alternative,
        missing=missing,
        as_json=as_json,
    )
