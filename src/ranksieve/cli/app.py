"""The application that commands register with.

Libraries that take long to load are imported by the command that needs them, so that help is quick.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from ranksieve._version import __version__
from ranksieve.commands.guard import one_sentence

app = typer.Typer(
    name="ranksieve",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``ranksieve`` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode gets escapes, not an error
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="ranksieve")
    finally:
        gc.freeze()  # a process that ends need not search its modules for cycles: 0.3 s


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command; its failures become one sentence, its examples end the help text."""
    epilog = "\b\nFor example:\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def guarded(*args: Any, **options: Any) -> None:
            with one_sentence():
                function(*args, **options)

        app.command(epilog=epilog)(guarded)
        return guarded

    return register


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ranksieve {__version__}")
        raise typer.Exit


@app.callback()
def ranksieve(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn to rank with few features, and prove how near the best possible each fit is.

    Try "ranksieve demo" first; "ranksieve COMMAND --help" explains a command and shows an example.
    """
