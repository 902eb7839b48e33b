"""export: a model file in the format of a search engine."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksieve._util.json_values import decode_json
from ranksieve._util.lookup import lookup
from ranksieve.commands.files import STANDARD, beside
from ranksieve.commands.guard import while_doing
from ranksieve.commands.models import read_with_models
from ranksieve.commands.show import emit_json, words
from ranksieve.export import EXPORTS, Exported, make_export, paths_of, write_export
from ranksieve.export.lucene import feature_list
from ranksieve.model import LinearModel, load_model


def export_file(
    model_file: str,
    *,
    target: str,
    output: str,
    names: str | None,
    featureset: str | None,
    data: str | None,
    as_json: bool,
    **plain: Any,
) -> None:
    """Write the export, then show what was written and how to load it."""
    entry = lookup(EXPORTS, target, "export target")
    if output in ("", STANDARD):
        kind = "folder" if entry.folder else "file"
        raise ValueError(f"{output!r} is no {kind} to write an export to; name one")
    model = load_model(model_file)
    options = {name: value for name, value in plain.items() if value is not None}
    options |= {"names": read_map(names)} if names else {}
    options |= {"featureset": read_featureset(featureset)} if featureset else {}
    if data:
        options["sample"], _ = read_with_models(data, [model_file], missing=None, first_feature=None)
    with warnings.catch_warnings(record=True) as told:  # a failure shall be one sentence
        with while_doing(f"exporting {model_file}"):
            product = make_export(model, target, options)
        _spare_inputs(list(paths_of(product, entry, Path(output))), [model_file, names, featureset, data])
        exported = write_export(product, target, output)
    for warning in told:
        warnings.warn(str(warning.message), stacklevel=2)
    with beside(output):
        _show(exported, model, as_json)


def read_json(path: str) -> Any:
    """The content of a JSON file."""
    try:
        return decode_json(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a JSON file ({error})") from None


def read_featureset(path: str) -> Any:
    """An engine's definitions of features."""
    content = read_json(path)
    with while_doing(path):
        feature_list(content)
    return content


def read_map(path: str) -> dict[str, str]:
    """A JSON object from our feature names to the engine's."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(
            f'{path}: not a map of names; expected an object like {{"bm25_title": "bm25(title)"}}'
        )
    return content


def _spare_inputs(outputs: Sequence[Path], inputs: Sequence[str | None]) -> None:
    taken = {Path(given).resolve() for given in inputs if given not in (None, STANDARD)}
    for output in outputs:
        if output.resolve() in taken:
            raise ValueError(f"{output}: is an input and would be overwritten; choose another folder or file")


def _show(exported: Exported, model: LinearModel, as_json: bool) -> None:
    files = [str(file) for file in exported.files]
    if as_json:
        emit_json({"files": files, "notes": exported.notes, "load": exported.load})
        return
    words(f"Wrote {', '.join(files)}: {len(model.terms)} features.")
    for note in exported.notes:
        words(note)
    if exported.load:
        words("To load and try it:")
    for command in exported.load:
        words(f"  {command}")
