"""Commands that learn: demo, fit, frontier, path."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import FitMissing, Json, Missing, Train

Valid = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Held-out queries for the choice; without it, cross-validation."),
]
MaxFeatures = Annotated[int | None, typer.Option(metavar="K", min=1, help="Use at most this many features.")]
Metric = Annotated[
    str | None, typer.Option(metavar="NAME", help="What the choice maximises, such as ndcg@10 or map.")
]
OwnProfile = Annotated[
    str | None, typer.Option(metavar="NAME", help="Metric conventions: letor, mslr, standard or trec.")
]
Normalise = Annotated[
    str | None,
    typer.Option(
        metavar="KIND", help="Scaling: none, z, min_max, query_min_max or query_z; kept in the model."
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        "--costs", "--feature-costs", metavar="FILE", help="Prices: CSV feature,cost[,group] or JSON."
    ),
]
MaxCost = Annotated[
    float | None, typer.Option(metavar="C", min=0, help="The features in use cost at most this.")
]
MustHave = Annotated[
    str | None, typer.Option(metavar="A,B", help="Features for every model, free of the penalty.")
]
MustNot = Annotated[str | None, typer.Option(metavar="A,B", help="Features that are never used.")]
Signs = Annotated[
    str | None,
    typer.Option(metavar="A=+,B=-", help="Signs that weights must have; or a CSV file feature,sign."),
]


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
    "ranksieve fit train.txt --costs ms.csv --max-cost 5 -o model.json",
)
def fit(
    train: Train,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The model file to write.")],
    valid: Valid = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="The learning method.")] = "sparseranker",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of the method; may be repeated."),
    ] = None,
    max_features: MaxFeatures = None,
    metric: Metric = None,
    profile: OwnProfile = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    must_have: MustHave = None,
    must_not: MustNot = None,
    signs: Signs = None,
    normalise: Normalise = None,
    missing: FitMissing = None,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Also write an HTML page.")] = None,
    as_json: Json = False,
) -> None:
    """Learn a sparse ranker and write it to a file.

    The default method fits a whole path of models, from no feature to many, each with a proof of how near
    the best possible it is, and keeps the one that ranks held-out queries best.
    """
    from ranksieve.commands.demands import Demands
    from ranksieve.commands.fitting import fit_model

    named = {"max_features": max_features, "metric": metric, "profile": profile}
    fit_model(
        train,
        valid=valid,
        method=method,
        settings=settings or [],
        named=named,
        demands=Demands(costs, max_cost, must_have, must_not, signs),
        normalise=normalise,
        missing=missing,
        output=output,
        report=report,
        as_json=as_json,
    )


@command(
    "ranksieve frontier train.txt --valid vali.txt --costs ms.csv",
    "ranksieve frontier train.txt --costs ms.csv --max-cost 20 -o frontier.html",
)
def frontier(
    train: Train,
    valid: Valid = None,
    max_features: MaxFeatures = None,
    metric: Metric = None,
    profile: OwnProfile = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    must_have: MustHave = None,
    must_not: MustNot = None,
    signs: Signs = None,
    normalise: Normalise = None,
    missing: FitMissing = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write all points as .json or a picture as .html."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what features and cost buy in accuracy.

    Fits the models that "fit" would choose from at many cost limits; the table shows about ten steps of the
    best metric that a cost can buy. Look here for a budget, then give it to "fit".
    """
    from ranksieve.commands.demands import Demands
    from ranksieve.commands.frontier import measure_frontier

    named = {"max_features": max_features, "metric": metric, "profile": profile}
    measure_frontier(
        train,
        valid=valid,
        named=named,
        demands=Demands(costs, max_cost, must_have, must_not, signs),
        normalise=normalise,
        missing=missing,
        output=output,
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
