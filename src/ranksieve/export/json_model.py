"""Our own model file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksieve.export.base import (
    FILE_NAME,
    NameRule,
    Options,
    Product,
    as_json,
    check_model_name,
    engine_names,
)

if TYPE_CHECKING:
    from ranksieve.model.linear import LinearModel

WHOLE = NameRule(r"[^\ud800-\udfff]*", "half of a character is no text")


def json_model(model: LinearModel, options: Options) -> Product:
    """The file that :meth:`LinearModel.save` writes: everything, also what no engine can say."""
    check_model_name(FILE_NAME, options.name)
    engine_names(model.names, {}, WHOLE, "JSON", "rename it in the data")
    return Product({f"{options.name}.json": as_json(model.to_dict())})
