"""ranksieve path: the certified path as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import json_text, progress, table, words
from ranksieve.errors import ParameterError, shortened, while_doing

SHOWN_POINTS = 10
SHOWN_NAMES = 6


@command(
    "ranksieve path train.txt",
    "ranksieve path train.txt --penalty elastic_net --l1-ratio 0.9 -o path.json",
    "ranksieve path 'train/*.parquet' --cluster tcp://scheduler:8786",
)
def path(
    *,
    source: opt.TrainData,
    penalty: Annotated[str, opt.value("Model", "NAME", "The penalty: l1 or elastic_net.")] = "l1",
    l1_ratio: Annotated[float | None, opt.value("Model", "R", "Share of l1 in the elastic net.")] = None,
    n_alphas: Annotated[int, opt.value("Model", "N", "Points of the path.", min=1)] = 100,
    tol: Annotated[float, opt.value("Model", "T", "Largest duality gap, relative to the objective.")] = 1e-6,
    normalise: Annotated[str, opt.NORMALISE] = "auto",
    missing: Annotated[str, opt.MISSING] = "auto",
    cluster: opt.Cluster = None,
    device: opt.Device = None,
    output: opt.JsonOutput = None,
    as_json: opt.Json = False,
) -> None:
    """Fit rankers from no feature to many, each with a proof.

    The proof is a duality gap: a bound on how far the objective is from the optimum. It is about the weights;
    use "fit" to select the model that ranks held-out queries best. The table shows about ten points of the
    path; JSON has all of them, with weights for the scaled features.
    """
    from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
    from ranksieve.prepare.scaling import check_kind

    if l1_ratio is not None and penalty == "l1":
        raise ParameterError("l1_ratio", l1_ratio, "needs `penalty='elastic_net'`; with l1 leave it out")
    opt.check_files(source.files, output)
    check_kind(normalise)
    check_policy(missing, RANKER_POLICIES)
    title, query_weights = f"fitting {source.train}", source.query_weights
    with opt.connected(cluster) as client:
        data = source.data(source.train, missing, client)
        with progress(title) as bar, while_doing(title):
            result = rs.sparse_path(
                data, penalty, n_alphas, tol=tol, l1_ratio=l1_ratio, normalise=normalise, missing=missing,
                device=device or "cpu", progress=bar, **query_weights,
            )  # fmt: skip
    content = result.to_dict() if as_json or output is not None else {}
    if output is not None:
        opt.write_text(json_text(content), output)
    opt.present(content, as_json, lambda: _show(result), output)


def _show(result: rs.SparsePath) -> None:
    from ranksieve.report import certificate

    table(["alpha", "features", "objective", "relative gap", "features that enter"], _rows(result))
    words(f"All {len(result)} points are {certificate(float(result.relative_gaps.max()))}.")
    if result.passes is not None:
        words(f"The data stayed on disk: {result.passes}.")


def _rows(result: rs.SparsePath) -> Iterator[tuple[Any, ...]]:
    """About ten points, with the features that enter between each and the one before."""
    import numpy as np

    seen = np.zeros(result.coefs.shape[1], dtype=bool)
    for k in np.unique(np.linspace(0, len(result) - 1, SHOWN_POINTS).round().astype(int)):
        used = (result.coefs[: k + 1] != 0).any(axis=0)
        entering = [result.feature_names[j] for j in np.flatnonzero(used & ~seen)]
        seen = used
        yield (
            float(result.alphas[k]),
            int(result.n_nonzero[k]),
            f"{result.objectives[k]:.6g}",
            f"{result.relative_gaps[k]:.1e}",
            shortened(entering, SHOWN_NAMES),
        )
