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
from typer.core import TyperGroup

from ranksieve._version import __version__
from ranksieve.commands.guard import one_sentence, say

WrongUsage: Any = typer.BadParameter.__base__  # UsageError of the click that typer brings along


class Commands(TyperGroup):
    """Commands whose wrong usage, too, is answered with one sentence; without a command, with the help."""

    def main(self, *args: Any, **options: Any) -> Any:
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except WrongUsage as error:
            message = error.format_message()
            if "\n" in message:
                typer.echo(message, err=True)
            else:
                say(
                    f"{message.rstrip('.')} (see {error.ctx.command_path if error.ctx else self.name} --help)"
                )
            code = error.exit_code
        sys.exit(code)


app = typer.Typer(
    name="ranksieve",
    cls=Commands,
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
