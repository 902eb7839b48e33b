"""ranksieve export: write a model in the format of a search engine."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import emit_json, print_text
from ranksieve.errors import DataError, ParameterError, lookup, while_doing

TARGETS = "Format, such as elasticsearch, solr, vespa, onnx or python; an unknown name lists all."


@command(
    "ranksieve export model.json test.txt --to elasticsearch -o ltr",
    "ranksieve export model.json --to vespa -o profiles --engine-names names.json",
    "ranksieve export model.json --to opensearch_hybrid -o hybrid --window 200",
    "ranksieve export model.json --to python -o ranker.py",
)
def export(
    *,
    model: Annotated[str, opt.argument("MODEL", "A model file of ranksieve.")],
    sample: Annotated[
        opt.Text,
        opt.argument(
            "DATA",
            "Sample documents, to shift scores if the engine rejects negative ones, and to check ranks.",
        ),
    ] = None,
    reading: opt.ScoringOptions,
    to: Annotated[str, opt.value("Model", "ENGINE", TARGETS)],
    name: Annotated[
        opt.Text, opt.value("Model", "NAME", "Name of the model in the engine.", "ranker")
    ] = None,
    engine_names: Annotated[
        opt.Text, opt.value("Model", "FILE", "JSON object that maps feature names to names in the engine.")
    ] = None,
    featureset: Annotated[
        opt.Text, opt.value("Model", "FILE", "Feature definitions of the engine; those in use are written.")
    ] = None,
    store: Annotated[opt.Text, opt.value("Model", "NAME", "Feature store of the engine.")] = None,
    window: Annotated[
        int | None,
        opt.value("Model", "N", "Number of documents to rescore, or to take from each sub-query.", min=1),
    ] = None,
    dtype: Annotated[opt.Text, opt.value("Model", "NAME", "Number type of ONNX: float32 or float64.")] = None,
    output: Annotated[str, opt.output_option("PATH", "Folder or file to write.")],
    as_json: opt.Json = False,
) -> None:
    """Write a model in the format of a search engine.

    For a search engine, writes a folder with the model, the features it needs and an example query, and shows
    the commands that load them. A model that the format cannot represent is refused with the reason.
    """
    from ranksieve.export import EXPORTS, make_export, paths_of, write_export

    target = lookup(EXPORTS, to, "to")
    if output in ("", opt.STANDARD_STREAM):
        kind = "folder" if target.folder else "file"
        raise ParameterError("output", output, f"must be the name of a {kind}")
    if sample is None:
        refuse_without_data(reading)
    used = (model, engine_names, featureset, sample, *reading.files)
    linear = rs.load_model(model)
    options = {
        "name": name,
        "names": read_json(engine_names, check_names) if engine_names else None,
        "featureset": read_json(featureset, target.check_featureset) if featureset else None,
        "sample": reading.with_models(sample, [model])[0] if sample else None,
        "store": store,
        "dtype": dtype,
        "window": window,
    }
    with warnings.catch_warnings(
        record=True
    ) as caught:  # shown at the end: an error must be a single message
        with while_doing(f"exporting {model}"):
            product = make_export(linear, to, {k: v for k, v in options.items() if v is not None})
        inputs = {os.path.realpath(file) for file in used if file}
        for file in paths_of(product, target, Path(output)):
            if os.path.realpath(file) in inputs:
                raise DataError(
                    file, None, "is an input file and would be overwritten; choose another output"
                )
        exported = write_export(product, to, output)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)
    files = [str(file) for file in exported.files]
    with opt.keep_stdout_for(output):
        if as_json:
            emit_json({"files": files, "notes": exported.notes, "load": exported.load})
            return
        loading = ["To load and test it:", *(f"  {line}" for line in exported.load)] if exported.load else []
        summary = f"Wrote {', '.join(files)}: {len(linear.terms)} features."
        for line in (summary, *exported.notes, *loading):
            print_text(line)


def refuse_without_data(reading: opt.ScoringOptions) -> None:
    """Refuse an option for DATA if there is none."""
    for name, value in vars(reading).items():
        if value is not None:
            raise ParameterError(name, value, "needs DATA, the sample documents; add them or leave it out")


def read_json(path: str, check: Callable[[Any], Any]) -> Any:
    """Read a JSON file and check its content."""
    from ranksieve._util.files import decode_json

    try:
        content = decode_json(Path(path).read_text(encoding="utf-8"))
        check(content)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, None, f"is not a valid JSON file ({error})") from None
    except DataError as error:
        raise error.at(path) from None
    return content


def check_names(content: Any) -> None:
    """Refuse engine names that are not a JSON object."""
    if not isinstance(content, dict):
        raise DataError(None, None, 'must be a JSON object of names, such as {"bm25_title": "bm25(title)"}')
