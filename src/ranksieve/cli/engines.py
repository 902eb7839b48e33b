"""Commands for search engines: export."""

from __future__ import annotations

from typing import Annotated

import typer

from ranksieve.cli.app import command
from ranksieve.commands.options import FORMATS, Json


@command(
    "ranksieve export model.json --to elasticsearch -o ltr --data test.txt",
    "ranksieve export model.json --to vespa -o profiles --names names.json",
    "ranksieve export model.json --to python -o ranker.py",
)
def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file written by fit.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="elasticsearch, opensearch, solr, vespa, ranklib, onnx, json or python.",
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="PATH", help="The folder or file to write.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model's name in the engine; default ranker.")
    ] = None,
    featureset: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The engine's definitions of all features; writes those in use."),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A JSON object from our feature names to the engine's."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"Sample documents, to shift scores above 0. {FORMATS}"),
    ] = None,
    store: Annotated[str | None, typer.Option(metavar="NAME", help="The engine's feature store.")] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="NAME", help="Numbers of an ONNX file: float32 or float64.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model in the format of a search engine.

    Elasticsearch, OpenSearch, Solr and Vespa get a folder with the model, the features it needs and an
    example query; the commands that load them are shown. What a format cannot say is refused with the reason.
    """
    from ranksieve.commands.exporting import export_file

    export_file(
        model,
        target=to,
        output=output,
        name=name,
        featureset=featureset,
        names=names,
        data=data,
        store=store,
        dtype=dtype,
        as_json=as_json,
    )
