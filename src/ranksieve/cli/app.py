"""The application that commands register with.

Command modules avoid slow imports so that ``--help`` stays fast: they import them inside functions, or
through the names of ``ranksieve`` itself, which are loaded when they are first used.
"""

from __future__ import annotations

import gc
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from ranksieve._version import __version__
from ranksieve.cli.output import end_orderly, leave_soon_if_ended, open_streams, run_command

CYCLE_SEARCH = 50_000  # new objects before Python looks for cycles; with its own 700 a tenth of a short run


class Commands(TyperGroup):
    """Commands whose failures become one sentence; without a command, the help."""

    option_names: dict[str, str]

    def main(self, args: Any = None, prog_name: str | None = None, **_: Any) -> Any:  # type: ignore[override]
        given = list(sys.argv[1:] if args is None else args)
        self.option_names = {}

        def call() -> None:
            with self.make_context(prog_name or "ranksieve", given) as context:
                self.invoke(context)

        sys.exit(run_command(call, self.option_names))


RENAMED = {  # options that have another name than the parameter they set
    "qid": "--qid-column",
    "label": "--label-column",
    "doc_id": "--doc-column",
    "feature_costs": "--costs",
    "previous": "--from",
    "target": "--to",
    "select": "--metric",
}
SECTIONS = ("Arguments", "Subject", "Data", "Columns", "Budget", "Model", "Computing", "Output", "Options")


class Command(TyperCommand):
    """A command whose help has sections, and whose errors name its options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for given in self.get_params(ctx):
            if record := given.get_help_record(ctx):
                section = getattr(given, "rich_help_panel", None) or "Options"
                section = "Arguments" if given.param_type_name == "argument" else section
                name = re.sub(r" <\S+>$", "", record[0])
                text = re.sub(r"default: \((.*)\)(?=[;\]])", r"default: \1", record[1])
                sections[section].append((name, text))
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def invoke(self, ctx: Any) -> Any:
        names, commands = ctx.parent.command.option_names, ctx.parent.command.commands
        names |= commands["fit"].options()  # in "fit with …" of another command
        names |= self.options(ctx.params.get("settings") or ())
        return super().invoke(ctx)

    def options(self, settings: Sequence[str] = ()) -> dict[str, str]:
        """The option that sets each parameter; ``settings`` are those of --set."""
        flags = [[flag for flag in given.opts if flag.startswith("--")] for given in self.params]
        named = zip(self.params, flags, strict=True)
        options = {str(given.name): group[0] if group else str(given.metavar) for given, group in named}
        options |= {flag[2:].replace("-", "_"): group[0] for group in flags for flag in group}
        options |= {name: flag for name, flag in RENAMED.items() if [flag] in flags}
        return options | {name: f"--set {name}" for name, *_ in (text.split("=") for text in settings)}


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
    end_orderly()
    open_streams()
    gc.set_threshold(CYCLE_SEARCH)
    try:
        app(prog_name="ranksieve")
    except SystemExit as end:
        leave_soon_if_ended(end.code)
        raise
    finally:
        gc.freeze()  # a process that ends need not search its modules for cycles: 0.3 s


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; the examples end its help text."""
    epilog = "\b\nFor example:\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(cls=Command, epilog=epilog)(with_flat_options(function))
        return function

    return register


def with_flat_options(function: Callable[..., None]) -> Callable[..., None]:
    """The function, taking the fields of its dataclass parameters in place of the dataclasses.

    For ``f(x: int, data: FitData)`` it is ``g(*, x: int, train: …, valid: …)``, which calls
    ``f(x=x, data=FitData(train=train, valid=valid))``.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {}
    flat: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if is_dataclass(group := parameter.annotation):
            groups[parameter.name] = group
            flat.extend(_parameters(group))
        else:
            flat.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(function)
    def assembled(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        function(**given)

    assembled.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    return assembled


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    """The fields of a dataclass as parameters of a function."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=hints[field.name],
        )


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
    """Learn accurate rankers from few features, with a proof of optimality for every fit.

    Start with "ranksieve demo"; "ranksieve COMMAND --help" explains a command with examples.
    """
