"""ranksieve export: a model file in the format of a search engine."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import ranksieve as rs
from ranksieve._util.messages import lookup
from ranksieve.cli.app import command
from ranksieve.cli.options import DATA_HELP, STANDARD, Json, beside, read_with_models
from ranksieve.cli.output import emit_json, words
from ranksieve.errors import DataError, ParameterError, while_doing


@command(
    "ranksieve export model.json --to elasticsearch -o ltr --data test.txt",
    "ranksieve export model.json --to vespa -o profiles --names names.json",
    "ranksieve export model.json --to opensearch_hybrid -o hybrid --window 200",
    "ranksieve export model.json --to python -o ranker.py",
)
def export(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file written by fit.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="The format: {targets}.",
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
        typer.Option(metavar="FILE", help=f"Sample documents, to shift scores above 0. {DATA_HELP}"),
    ] = None,
    store: Annotated[str | None, typer.Option(metavar="NAME", help="The engine's feature store.")] = None,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many first documents are scored again, or come from each sub-query."
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="NAME", help="Numbers of an ONNX file: float32 or float64.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model in the format of a search engine.

    A search engine gets a folder with the model, the features it needs and an example query; the commands
    that load them are shown. What a format cannot say is refused with the reason.
    """
    from ranksieve.export import EXPORTS, make_export, paths_of, write_export

    target = lookup(EXPORTS, to, "to")
    if output in ("", STANDARD):
        kind = "folder" if target.folder else "file"
        raise ParameterError("output", output, f"must be the name of a {kind}")
    linear = rs.load_model(model)
    options = {
        "name": name,
        "names": read_names(names) if names else None,
        "featureset": read_featureset(featureset, target.check_featureset) if featureset else None,
        "sample": read_with_models(data, [model])[0] if data else None,
        "store": store,
        "dtype": dtype,
        "window": window,
    }
    with warnings.catch_warnings(record=True) as told:  # kept back, so that a failure is one sentence
        with while_doing(f"exporting {model}"):
            product = make_export(linear, to, {k: v for k, v in options.items() if v is not None})
        inputs = {os.path.realpath(file) for file in (model, names, featureset, data) if file}
        for file in paths_of(product, target, Path(output)):
            if os.path.realpath(file) in inputs:
                raise DataError(
                    file, None, "is an input and would be overwritten; choose another folder or file"
                )
        exported = write_export(product, to, output)
    for warning in told:
        warnings.warn(warning.message, stacklevel=2)
    files = [str(file) for file in exported.files]
    with beside(output):
        if as_json:
            emit_json({"files": files, "notes": exported.notes, "load": exported.load})
            return
        words(f"Wrote {', '.join(files)}: {len(linear.terms)} features.")
        for note in exported.notes:
            words(note)
        if exported.load:
            words("To load and try it:")
        for line in exported.load:
            words(f"  {line}")


def read_json(path: str) -> Any:
    """The content of a JSON file."""
    from ranksieve._util.files import decode_json

    try:
        return decode_json(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, None, f"not a JSON file ({error})") from None


def read_featureset(path: str, check: Callable[[Any], Any]) -> Any:
    """An engine's definitions of features."""
    content = read_json(path)
    try:
        check(content)
    except DataError as error:
        raise error.at(path) from None
    return content


def read_names(path: str) -> dict[str, str]:
    """A JSON object from our feature names to the engine's."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(path, None, 'must be an object of names, such as {"bm25_title": "bm25(title)"}')
    return content
