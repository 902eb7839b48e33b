"""The application that commands register with.

Command modules avoid slow imports so that ``--help`` stays fast: they import heavy packages inside functions
or through ``ranksieve``, which loads its names on first use.
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
from ranksieve.cli.output import force_exit_after_signal, open_streams, raise_on_signals, run_command

GC_THRESHOLD = 50_000  # Python's default of 700 costs a tenth of a short run


class Commands(TyperGroup):
    """The commands; reports errors as one sentence, and shows the help if no command is named."""

    option_names: dict[str, str]

    def main(self, args: Any = None, prog_name: str | None = None, **_: Any) -> Any:  # type: ignore[override]
        arguments = list(sys.argv[1:] if args is None else args)
        self.option_names = {}

        def call() -> None:
            with self.make_context(prog_name or "ranksieve", arguments) as context:
                self.invoke(context)

        sys.exit(run_command(call, self.option_names))


RENAMED = {  # options whose name differs from the parameter they set
    "qid": "--qid-column",
    "label": "--label-column",
    "doc_id": "--doc-column",
    "feature_costs": "--costs",
    "previous": "--from",
    "target": "--to",
    "names": "--engine-names",
    "select": "--metric",
}
SECTIONS = ("Arguments", "Subject", "Data", "Columns", "Budget", "Model", "Computing", "Output", "Options")


class Command(TyperCommand):
    """A command with sections in its help and option names in its errors."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                section = getattr(parameter, "rich_help_panel", None) or "Options"
                section = "Arguments" if parameter.param_type_name == "argument" else section
                name = re.sub(r" <\S+>$", "", record[0])
                text = re.sub(r"default: \((.*)\)(?=[;\]])", r"default: \1", record[1])
                sections[section].append((name, text))
        for section, records in sections.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def invoke(self, ctx: Any) -> Any:
        names, commands = ctx.parent.command.option_names, ctx.parent.command.commands
        names |= commands["fit"].options()  # errors of other commands may refer to fit
        names |= self.options(ctx.params.get("settings") or ())
        return super().invoke(ctx)

    def options(self, settings: Sequence[str] = ()) -> dict[str, str]:
        """Map parameters to the options that set them; ``settings`` are the values of --set."""
        flags = [[flag for flag in one.opts if flag.startswith("--")] for one in self.params]
        named = zip(self.params, flags, strict=True)
        options = {str(one.name): group[0] if group else str(one.metavar) for one, group in named}
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
    raise_on_signals()
    open_streams()
    gc.set_threshold(GC_THRESHOLD)
    try:
        app(prog_name="ranksieve")
    except SystemExit as end:
        force_exit_after_signal(end.code)
        raise
    finally:
        gc.freeze()  # skip the final garbage collection (saves 0.3 s)


# Python maps memory for frames in chunks of 16 kB and unmaps a chunk with its last frame. Loops of calls at
# the border of two chunks do both in each round, a tenth of a first fit; a large frame gets a large chunk.
main.__code__ = main.__code__.replace(co_stacksize=2**16)


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; its help ends with the examples."""
    epilog = "\b\nFor example:\n" + "\n".join(f"  {example}" for example in examples)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(cls=Command, epilog=epilog)(with_flat_options(function))
        return function

    return register


def with_flat_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace dataclass parameters of a function by the fields of the dataclasses.

    ``f(x: int, data: FitData)`` becomes ``g(*, x: int, train: …, valid: …)``, which calls
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
    def call_with_groups(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    call_with_groups.__signature__ = signature.replace(parameters=flat)  # type: ignore[attr-defined]
    return call_with_groups


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    """Convert the fields of a dataclass to keyword parameters."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=hints[field.name],
        )


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"ranksieve {__version__}")
        raise typer.Exit


@app.callback()
def ranksieve(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn accurate rankers from few features, with a proof of optimality for every fit.

    Start with "ranksieve demo". "ranksieve COMMAND --help" explains a command and shows examples.
    """
