"""ranksieve fit: fit a ranker, write the model and a page."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import ranksieve as rs
from ranksieve.cli import fit_output
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.cli.output import progress
from ranksieve.errors import DataError, ParameterError, lookup, while_doing

if TYPE_CHECKING:
    from ranksieve.methods import Method
    from ranksieve.path import Progress
    from ranksieve.rankers import Ranker

SELECTION_PARAMETERS = ("max_features", "feature_costs", "max_cost", "metric", "profile")
SHAPE_HELP = "Score of a feature: linear, curves (step functions) or auto (curves if they are better)."
METHOD_HELP = 'Method ("ranksieve methods" lists them), or package.module:Class.'
SET_HELP = 'Parameter of the method; "ranksieve methods METHOD" lists them; may be repeated.'
FROM_HELP = "Previous model: use its settings and keep its features unless others are significantly better."
NOT_WITH_STREAM = (
    "valid",
    "query_weight",
    "document_weight",
    "report",
    "cluster",
)  # options that --stream lacks


@dataclass(frozen=True, kw_only=True)
class FitOptions(opt.RankerOptions, opt.FitData):
    """The options of ``ranksieve fit``."""

    test: Annotated[
        opt.Text, opt.value("Data", "FILE", "Test data: used neither for fitting nor for selection.")
    ] = None
    method: Annotated[str, opt.value("Model", "NAME", METHOD_HELP)] = "sparseranker"
    shape: Annotated[opt.Text, opt.value("Model", "SHAPE", SHAPE_HELP, "auto")] = None
    settings: Annotated[list[str] | None, opt.value("Model", "NAME=VALUE", SET_HELP, None, ["--set"])] = None
    previous_file: Annotated[opt.Text, opt.value("Model", "FILE", FROM_HELP, None, ["--from"])] = None
    stream: Annotated[
        bool,
        opt.flag("Computing", "--stream", "Fit while reading LETOR text, in constant memory (minbatsrank)."),
    ] = False
    cluster: opt.Cluster = None
    device: opt.Device = None
    output: opt.ModelOutput
    report: opt.Report = None
    scaled: Annotated[
        bool, opt.flag("Output", "--scaled", "Show weights of the scaled features, not per unit of the data.")
    ] = False
    as_json: opt.Json = False

    @property
    def inputs(self) -> tuple[str | None, ...]:
        return *self.files, *self.limit_files, self.previous_file, self.test


@dataclass(frozen=True)
class FitRequest:
    """The method and ranker, the previous model and its settings, and the test data."""

    options: FitOptions
    entry: Method
    ranker: Any
    previous: rs.LinearModel | None
    previous_settings: Mapping[str, Any]
    test: rs.Dataset | None


@command(
    "ranksieve fit train.txt --valid vali.txt --max-features 10 -o model.json",
    "ranksieve fit train.parquet --set cv=10 -o model.json --report page.html",
    "ranksieve fit train.txt --costs ms.csv --max-cost 5 -o model.json",
    "ranksieve fit train.txt --set families=subset --max-features 5 -o model.json",
    "ranksieve fit train.txt --shape curves --max-features 10 -o model.json",
    "ranksieve fit new.txt --from model.json -o new.json",
    "ranksieve fit log.parquet --document-weights click_weight -o model.json",
    "ranksieve fit huge.txt --method minbatsrank --stream -o model.json",
)
def fit(*, options: FitOptions) -> None:
    """Fit a sparse ranker and write it to a file.

    The default method fits several families of models, from few features to many, and selects the one within
    the budget that ranks held-out queries best: validation queries (--valid) and, by cross-validation,
    training queries. It reports the metric with a 95 % confidence interval and proves how close the weights
    are to the optimum. Other methods use their default parameters and those of --set; with a budget, --valid,
    --metric or --profile, their parameters are also selected on held-out queries. A class of your own with
    fit, predict and, after the fit, coef_ is --method package.module:Class.
    """
    request = read_request(options)
    outcome = learn(request)
    write_and_show(request, outcome)


def read_request(options: FitOptions) -> FitRequest:
    """Check the options, create the ranker and read the test data."""
    from ranksieve.methods import as_method

    opt.check_files(options.inputs, options.output, report=options.report)
    entry, parameters = as_method(options.method), options.parameters
    given = {"device": options.device, "shape": options.shape}
    parameters |= {name: value for name, value in given.items() if value is not None}
    check_request(entry, options)
    previous = None if options.previous_file is None else opt.previous_model(options.previous_file)
    settings = {} if previous is None else fit_output.settings_of(previous)
    settings = {name: value for name, value in settings.items() if name not in parameters}
    parameters = settings | parameters
    if options.stream:
        check_stream(entry, options, parameters)
    has_valid = options.valid is not None
    ranker = make_ranker(entry, options.method, options.settings or [], parameters, has_valid)
    test = None if options.test is None else options.data(options.test)
    return FitRequest(options, entry, ranker, previous, settings, test)


def check_request(entry: Method, options: FitOptions) -> None:
    """Refuse --from or --report if the method or another option does not allow it."""
    if options.previous_file is not None and (options.stream or options.method.lower() != "sparseranker"):
        name, value = ("stream", True) if options.stream else ("method", options.method)
        raise ParameterError(name, value, "cannot start from a previous model; leave `previous` out")
    if options.report is not None and not entry.linear:
        reason = "is not linear, so `report` has no weights to show; leave `report` out"
        raise ParameterError("method", options.method, reason)
    if options.report is not None and options.cluster is not None:
        reason = "`report` needs the data in memory; leave one of them out"
        raise ParameterError("cluster", options.cluster, reason)


def learn(request: FitRequest) -> fit_output.Outcome:
    """Read the data and fit the ranker, with a progress bar on a terminal."""
    from ranksieve.rankers.measures import too_short_to_count
    from ranksieve.show.fit import selection_text

    options, ranker = request.options, request.ranker
    if options.stream:
        return _learn_from_stream(request)
    query_weights = options.query_weights
    with opt.dask_client(options.cluster) as client:
        data, held_out = options.read(ranker.missing, client)
        title = f"fitting {data.source or 'the data'}"
        with progress(title) as bar, while_doing(title):
            optional = {"valid": held_out, "previous": request.previous}
            arguments = {name: value for name, value in optional.items() if value is not None}
            ranker.fit(data, **arguments, **query_weights, **progress_arguments(request.entry, ranker, bar))
        choice = selection_text(ranker, options.valid)
        uncounted = too_short_to_count(ranker, data, held_out)
        texts = {} if options.cluster else opt.query_texts(data, held_out, request.test)
        return fit_output.Outcome(ranker, ranker.to_model(), choice, uncounted, data, held_out, texts)


def _learn_from_stream(request: FitRequest) -> fit_output.Outcome:
    from ranksieve.io.load import check_options
    from ranksieve.io.text_files import source_name

    options, ranker = request.options, request.ranker
    check_options(options.train, options.arguments)
    title = f"fitting {source_name(options.train)}"
    with progress(title) as bar, while_doing(title):
        ranker.fit_file(options.train, names=options.names, **progress_arguments(request.entry, ranker, bar))
    return fit_output.Outcome(ranker, ranker.to_model())


def write_and_show(request: FitRequest, outcome: fit_output.Outcome) -> None:
    """Write the model, evaluate it on the test data, write the page and print the result."""
    options = request.options
    outcome.model.save(options.output)
    if options.test is not None and request.test is not None:
        from ranksieve.report.calls import evaluate_test

        rival_of = None if options.report is None else outcome.ranker
        test = evaluate_test(options.test, request.test, outcome.model, rival_of)
        outcome = replace(outcome, test=test)
    if options.report is not None:
        fit_output.write_page(outcome, options.report, options.valid, options.previous_file)
    content = {**fit_output.as_plain_data(outcome), "output": options.output, "report": options.report}
    show_all = partial(
        fit_output.show, outcome, options.previous_file, request.previous_settings, options.scaled
    )
    opt.print_result(content, options.as_json, show_all, options.output, options.report)


def check_stream(entry: Method, options: FitOptions, parameters: Mapping[str, Any]) -> None:
    """Refuse methods, files and options that --stream does not support."""
    from ranksieve.io.load import FILE_FORMATS, format_of
    from ranksieve.methods import METHODS

    if not entry.can("stream"):
        capable = " or ".join(name for name, other in METHODS.items() if other.can("stream"))
        reason = f"does not support `stream`; use {capable}, or leave `stream` out"
        raise ParameterError("method", options.method, reason)
    if format_of(options.train) is not FILE_FORMATS["letor"]:
        raise DataError(options.train, None, "must be LETOR text for `stream`; leave `stream` out")
    unusable = [name for name in NOT_WITH_STREAM if getattr(options, name) is not None]
    unusable += [name for name in SELECTION_PARAMETERS if name in parameters]
    if parameters.get("normalise", "none") != "none":
        unusable.append("normalise")
    if unusable:
        reason = f"`{unusable[0]}` needs all data in memory; leave one of them out"
        raise ParameterError("stream", True, reason)


def make_ranker(
    entry: Method,
    method: str,
    settings: Sequence[str],
    parameters: Mapping[str, Any],
    has_valid: bool = False,
) -> Ranker:
    """Create a ranker with the parameters of --set and of other options.

    A method that does not select models itself is wrapped in a GridRanker if there are selection options
    (``SELECTION_PARAMETERS``) or validation data (``has_valid``); it must be linear.
    """
    for name in (*parameters, *(["valid"] if has_valid and not entry.linear else [])):
        if name not in entry.parameters and (name not in SELECTION_PARAMETERS or not entry.linear):
            only = "" if entry.linear else ", only `settings`"
            raise ParameterError("method", method, f"does not use `{name}`{only}; leave it out")
    set_values = dict(_setting(text, entry) for text in settings)
    if entry.can("valid") or not (
        has_valid or parameters.keys() & set(SELECTION_PARAMETERS) - entry.parameters.keys()
    ):
        return entry.make(**{**set_values, **parameters})
    preparation = {name: set_values.pop(name) for name in ("normalise", "missing") if name in set_values}
    return rs.GridRanker(entry, parameters=set_values, **(preparation | dict(parameters)))


def _setting(text: str, entry: Method) -> tuple[str, Any]:
    """Parse NAME=VALUE of --set: as text if the parameter accepts it, else as a Python literal if valid."""
    from ranksieve.rankers.parameters import accepts

    name, equals, written = text.partition("=")
    if not equals:
        raise ParameterError("settings", text, "must be name=value, such as n_alphas=50")
    default = lookup(entry.parameters, name, "settings")
    as_text = isinstance(default, str) and accepts(entry.make(), name, written)
    try:
        value = written if as_text else ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = written
    if isinstance(default, int | float) and not isinstance(value, type(default) | int):
        kind = "an integer" if isinstance(default, int) else "a number"
        raise ParameterError(name, written, f"must be {kind}, such as {default}")
    if name == "metric":
        opt.check_measures([value], None)
    if name == "profile":
        opt.check_measures(None, value)
    return name, value


def progress_arguments(entry: Method, ranker: Ranker, bar: Progress | None) -> dict[str, Any]:
    """Arguments of ``fit`` that update the progress bar: by candidates, or by iterations."""
    if bar is None:
        return {}
    if ranker.can("valid"):
        return {"progress": bar}
    if not entry.rounds:
        return {}
    total = ranker.get_params(deep=False)[entry.rounds]
    return {"callback": lambda iteration, w, objective, gap: bar(iteration, total)}
