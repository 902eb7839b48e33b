"""ranksieve path: the certified path as a table or JSON."""

from __future__ import annotations

from typing import Annotated

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import json_text, print_all, progress
from ranksieve.errors import ParameterError, while_doing


@command(
    "ranksieve path train.txt",
    "ranksieve path train.txt --penalty elastic_net --l1-ratio 0.9 -o path.json",
    "ranksieve path 'train/*.parquet' --cluster tcp://scheduler:8786",
)
def path(
    *,
    source: opt.TrainData,
    penalty: Annotated[str, opt.value("Model", "NAME", "Penalty: l1 or elastic_net.")] = "l1",
    l1_ratio: Annotated[float | None, opt.value("Model", "R", "Share of l1 in elastic_net.")] = None,
    n_alphas: Annotated[int, opt.value("Model", "N", "Number of points of the path.", min=1)] = 100,
    tol: Annotated[float, opt.value("Model", "T", "Maximum duality gap relative to the objective.")] = 1e-6,
    normalise: Annotated[str, opt.NORMALISE_OPTION] = "auto",
    missing: Annotated[str, opt.MISSING_OPTION] = "auto",
    cluster: opt.Cluster = None,
    device: opt.Device = None,
    output: opt.JsonOutput = None,
    as_json: opt.Json = False,
) -> None:
    """Fit rankers from no features to many, each with a proof.

    The proof is a duality gap: a bound on the distance of the training objective from its optimum. It is
    about the weights; use "fit" to select the model that ranks held-out queries best. The table shows about
    ten points of the path; JSON contains all of them, with weights for the scaled features.
    """
    from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
    from ranksieve.prepare.scaling import check_kind

    if l1_ratio is not None and penalty == "l1":
        raise ParameterError("l1_ratio", l1_ratio, "needs `penalty='elastic_net'`; leave it out for l1")
    opt.check_files(source.files, output)
    check_kind(normalise)
    check_policy(missing, RANKER_POLICIES)
    title, query_weights = f"fitting {source.train}", source.query_weights
    with opt.dask_client(cluster) as client:
        data = source.data(source.train, missing, client)
        with progress(title) as bar, while_doing(title):
            result = rs.sparse_path(
                data, penalty, n_alphas, tol=tol, l1_ratio=l1_ratio, normalise=normalise, missing=missing,
                device=device or "cpu", progress=bar, **query_weights,
            )  # fmt: skip
    content = result.to_dict() if as_json or output is not None else {}
    if output is not None:
        opt.write_text(json_text(content), output)
    opt.print_result(content, as_json, lambda: print_all(result.shown()), output)
