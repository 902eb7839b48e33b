"""ranksieve methods: methods of fit and bench, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import emit_json, print_text, table

if TYPE_CHECKING:
    from ranksieve.methods import Method


@command("ranksieve methods", "ranksieve methods ranksvm-l1")
def methods(
    *,
    name: Annotated[opt.Text, opt.argument("METHOD", "Show the parameters of this method.")] = None,
    as_json: opt.Json = False,
) -> None:
    """List the learning methods, or the parameters of one."""
    from ranksieve.methods import METHODS, find_method

    if name is None:
        rows = [(key, *_facts(method).values()) for key, method in METHODS.items()]
        if as_json:
            emit_json({key: _facts(method) for key, method in METHODS.items()})
        else:
            table(["name", "source", "minimises", "penalty or rule"], rows)
        return
    method = find_method(name.lower())
    defaults = {key: _plain(value) for key, value in method.parameters.items()}
    if as_json:
        emit_json({"name": name.lower(), **_facts(method), "parameters": defaults})
        return
    print_text(f"{method.title} ({method.source}): {method.loss}; {method.penalty}; {method.solver}.")
    table(["parameter", "default"], defaults.items(), "Parameters (change with --set)")


def _facts(method: Method) -> dict[str, str]:
    return {"source": method.source, "loss": method.loss, "penalty": method.penalty}


def _plain(value: Any) -> Any:
    """A default value for JSON; objects as their ``repr``."""
    return value if isinstance(value, str | int | float | None) else repr(value)
