"""The command line: one function a command. What they do is in ``ranksieve.commands``.

Libraries that take long to load are imported by the command that needs them, so that help is quick.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from ranksieve._version import __version__
from ranksieve.commands.guard import one_sentence
from ranksieve.commands.options import DEFAULT_METRICS, FORMATS, Data, Json, Metrics, Missing, Profile, Train

app = typer.Typer(
    name="ranksieve",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``ranksieve`` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode gets escapes, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="ranksieve")
    finally:
        gc.freeze()  # a process that ends need not search its modules for cycles: 0.3 s


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; its failures become one sentence, its examples end the help text."""
    epilog = "\b\nFor example:\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def guarded(*args: Any, **options: Any) -> None:
            with one_sentence():
                function(*args, **options)

        app.command(epilog=epilog)(guarded)
        return guarded

    return register


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ranksieve {__version__}")
        raise typer.Exit


@app.callback()
def ranksieve(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn to rank with few features, and prove how near the best possible each fit is.

    Try "ranksieve demo" first; "ranksieve COMMAND --help" explains a command and shows an example.
    """


@command("ranksieve demo", "ranksieve demo --seed 7 --out results")
def demo(
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Another number, other data.")] = 0,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for report.html and model.json.")] = ".",
    report: Annotated[
        str | None, typer.Option("-o", "--report", metavar="FILE", help="Where the page goes instead.")
    ] = None,
) -> None:
    """Plant a few features in synthetic data and find them again.

    Writes a model file and, with the extra "report" installed, a page about it.
    """
    from ranksieve.commands.demo import run_demo

    run_demo(seed, out, report)


@command(
    "ranksieve fit train.txt --valid vali.txt --max-features 10 -o model.json",
    "ranksieve fit train.parquet --set cv=10 -o model.json --report page.html",
)
def fit(
    train: Train,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The model file to write.")],
    valid: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Held-out queries for the choice; without it, cross-validation."),
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="The learning method.")] = "sparseranker",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of the method; may be repeated."),
    ] = None,
    max_features: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="Use at most this many features.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the choice maximises, such as ndcg@10 or map.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="Metric conventions: letor, mslr or standard.")
    ] = None,
    missing: Missing = "error",
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    as_json: Json = False,
) -> None:
    """Learn a sparse ranker and write it to a file.

    The default method fits a whole path of models, from no feature to many, each with a proof of how near
    the best possible it is, and keeps the one that ranks held-out queries best.
    """
    from ranksieve.commands.fitting import fit_model

    named = {"max_features": max_features, "metric": metric, "profile": profile}
    fit_model(
        train,
        valid=valid,
        method=method,
        settings=settings or [],
        named=named,
        missing=missing,
        output=output,
        report=report,
        as_json=as_json,
    )


@command(
    "ranksieve path train.txt", "ranksieve path train.txt --penalty elastic_net --l1-ratio 0.9 -o path.json"
)
def path(
    train: Train,
    penalty: Annotated[str, typer.Option(metavar="NAME", help="The penalty: l1 or elastic_net.")] = "l1",
    l1_ratio: Annotated[
        float | None, typer.Option(metavar="R", help="Share of l1 in the elastic net, above 0 and at most 1.")
    ] = None,
    n_alphas: Annotated[int, typer.Option(metavar="N", min=1, help="Points of the path.")] = 100,
    tol: Annotated[
        float, typer.Option(metavar="T", help="Largest duality gap, as a share of the objective.")
    ] = 1e-6,
    missing: Missing = "error",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write all points as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit rankers from no feature to many, each with its proof.

    The proof is a duality gap: how far the objective can be from the best possible. The table shows about
    ten points of the path; the JSON file holds all of them with their weights.
    """
    from ranksieve.commands.pathing import walk_path

    walk_path(
        train,
        penalty=penalty,
        l1_ratio=l1_ratio,
        n_alphas=n_alphas,
        tol=tol,
        missing=missing,
        output=output,
        as_json=as_json,
    )


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
    missing: Missing = "error",
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
    missing: Missing = "error",
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
    missing: Missing = "error",
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


@command("ranksieve inspect train.txt")
def inspect(data: Data, as_json: Json = False) -> None:
    """Show what a data set holds.

    Counts queries, labels and pairs, and names constant, duplicate and missing features.
    """
    from ranksieve.commands.datasets import inspect_data

    inspect_data(data, as_json=as_json)


@command("ranksieve convert train.txt train.parquet", "ranksieve convert train.parquet train.txt.gz")
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help=FORMATS)],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A .parquet or .gz file, or LETOR text.")],
    missing: Missing = "keep",
) -> None:
    """Convert between LETOR text, gzip and parquet.

    The name of the output tells its format. Missing values are kept unless a policy is given.
    """
    from ranksieve.commands.datasets import convert_data

    convert_data(source, target, missing=missing)
