"""Our own model file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksieve.export.base import FILE_NAME, Options, Product, as_json, check_model_name

if TYPE_CHECKING:  # these take long to load
    from ranksieve.model import LinearModel


def json_model(model: LinearModel, options: Options) -> Product:
    """The file that :meth:`LinearModel.save` writes: everything, also what no engine can say."""
    check_model_name(FILE_NAME, options.name)
    return Product({f"{options.name}.json": as_json(model.to_dict())})
