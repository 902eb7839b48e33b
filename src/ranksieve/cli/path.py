"""ranksieve path: the certified path as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import shortened
from ranksieve.cli.app import command
from ranksieve.cli.options import (
    NORMALISE,
    RANKER_MISSING,
    Cluster,
    Device,
    Json,
    ReadingOptions,
    Train,
    Weights,
    beside,
    check_inputs,
    check_outputs,
    connected,
    kept_for,
    write_text,
)
from ranksieve.cli.output import emit_json, json_text, progress, table, words
from ranksieve.errors import ParameterError, while_doing

SHOWN_POINTS = 10
SHOWN_NAMES = 6


@command(
    "ranksieve path train.txt",
    "ranksieve path train.txt --penalty elastic_net --l1-ratio 0.9 -o path.json",
    "ranksieve path 'train/*.parquet' --cluster tcp://scheduler:8786",
)
def path(
    *,
    train: Train,
    weights: Weights,
    penalty: Annotated[str, typer.Option(metavar="NAME", help="The penalty: l1 or elastic_net.")] = "l1",
    l1_ratio: Annotated[
        float | None, typer.Option(metavar="R", help="Share of l1 in the elastic net, above 0 and at most 1.")
    ] = None,
    n_alphas: Annotated[int, typer.Option(metavar="N", min=1, help="Points of the path.")] = 100,
    tol: Annotated[
        float, typer.Option(metavar="T", help="Largest duality gap, as a share of the objective.")
    ] = 1e-6,
    normalise: Annotated[str, NORMALISE] = "auto",
    missing: Annotated[str, RANKER_MISSING] = "auto",
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write all points as JSON.")
    ] = None,
    cluster: Cluster = None,
    device: Device = None,
    reading: ReadingOptions,
    as_json: Json = False,
) -> None:
    """Fit rankers from no feature to many, each with its proof.

    The proof is a duality gap: how far the objective can be from the best possible. It is about the weights;
    which model ranks best, "fit" finds out on held-out queries. The table shows about ten points of the path;
    the JSON file holds all of them with their weights, which are for the features as they are scaled.
    """
    from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
    from ranksieve.prepare.scaling import check_kind
    from ranksieve.report import certificate

    if l1_ratio is not None and penalty == "l1":
        raise ParameterError("l1_ratio", l1_ratio, "needs `penalty='elastic_net'`; with l1 leave it out")
    check_inputs(train, *weights.files)
    check_outputs([output], [train, *weights.files])
    check_kind(normalise)
    check_policy(missing, RANKER_POLICIES)
    title, weighed = f"fitting {train}", weights.for_fit
    with connected(cluster) as client:
        data = reading.data(train, kept_for(missing), client, weights.document_weight)
        with progress(title) as bar, while_doing(title):
            found = rs.sparse_path(
                data, penalty, n_alphas, tol=tol, l1_ratio=l1_ratio, normalise=normalise, missing=missing,
                device=device or "cpu", progress=bar, **weighed,
            )  # fmt: skip
    if output is not None:
        write_text(json_text(found.to_dict()), output)
    with beside(output):
        if as_json:
            emit_json(found.to_dict())
            return
        table(["alpha", "features", "objective", "relative gap", "features that enter"], _rows(found))
        words(f"All {len(found)} points are {certificate(float(found.relative_gaps.max()))}.")
        if found.passes is not None:
            words(f"The data stayed on disk: {found.passes}.")
        if output is not None:
            words(f"Wrote {output}.")


def _rows(found: rs.Path) -> Iterator[tuple[Any, ...]]:
    """About ten points, with the features that enter between each and the one before."""
    import numpy as np

    seen = np.zeros(found.coefs.shape[1], dtype=bool)
    for k in np.unique(np.linspace(0, len(found) - 1, SHOWN_POINTS).round().astype(int)):
        used = (found.coefs[: k + 1] != 0).any(axis=0)
        entering = [found.feature_names[j] for j in np.flatnonzero(used & ~seen)]
        seen = used
        yield (
            float(found.alphas[k]),
            int(found.n_nonzero[k]),
            f"{found.objectives[k]:.6g}",
            f"{found.relative_gaps[k]:.1e}",
            shortened(entering, SHOWN_NAMES),
        )
