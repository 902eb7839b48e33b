"""Options that commands share, the files that they name, and the metrics that they ask for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.output import emit_json, progress, words
from ranksieve.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ranksieve._types import FloatArray
    from ranksieve._util.files import Destination
    from ranksieve.metrics import Profile
    from ranksieve.model.score_functions import Scorer


STANDARD = "-"
ON_CLUSTER = ("qid", "label", "features", "document_weight")  # readers' arguments for data on a cluster
MODEL_STARTS = (b"##", b"{", b"tree")  # a file of scores begins with a number
Text = str | None


# --- Arguments and options that commands share -----------------------------------------------------------


def value(
    section: str, metavar: str, text: str, default: Text = None, names: Sequence[str] = (), **limits: Any
) -> Any:
    """An option with a value, in a section of the help; ``default`` says what leaving it out means."""
    shown = True if default is None else default
    return typer.Option(
        *names, metavar=metavar, help=text, rich_help_panel=section, show_default=shown, **limits
    )


def argument(metavar: str, text: str) -> Any:
    """A file or name without the name of an option."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def flag(section: str, name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, rich_help_panel=section)


def written(metavar: str, text: str, default: Text = None) -> Any:
    """The option of the file or folder that a command writes."""
    return value("Output", metavar, text, default, ("-o", "--output"))


DATA_HELP = "LETOR text, CSV or TSV (also .gz), parquet, a folder written by convert, or - for stdin."
MODEL_HELP = "A model file of ranksieve, RankLib, fastrank, LightGBM or XGBoost."
COSTS_HELP = "Feature costs by name or pattern: CSV of feature,cost[,group] or JSON."
METRIC_HELP = "Such as ndcg@10 or map; may be repeated."
PROFILE_HELP = "Metric conventions: letor, mslr, standard or trec."
OWN_PROFILE = "the model's, else letor for LETOR folds, trec for runs, standard for other data"
SCALINGS = "auto, none, z, within_z, min_max, query_min_max or query_z; auto: none if all are in [0, 1], else"
POLICIES = "auto, error, zero, query_min, column_mean or indicator; auto: column_mean, with a warning"
FILLS_HELP = "Missing values: error, zero, query_min, column_mean or keep."
CLUSTER_HELP = "Compute on a Dask cluster, tcp://HOST:PORT, whose workers can read DATA: parquet files."
NORMALISE = value("Data", "KIND", f"Scaling: {SCALINGS} within_z.", "auto")
MISSING = value("Data", "POLICY", f"Missing values: {POLICIES}.", "auto")

Data = Annotated[str, argument("DATA", DATA_HELP)]
ModelFile = Annotated[str, argument("MODEL", MODEL_HELP)]
ModelOutput = Annotated[str, written("FILE", "The model file to write.")]
JsonOutput = Annotated[Text, written("FILE", "Write all points as JSON.")]
Report = Annotated[Text, value("Output", "FILE", "Write an HTML page.")]
Json = Annotated[bool, flag("Output", "--json", "Print one JSON object instead of text.")]
Metrics = Annotated[list[str] | None, value("Model", "NAME", METRIC_HELP, "the model's, else ndcg@10")]
Conventions = Annotated[Text, value("Model", "NAME", PROFILE_HELP, OWN_PROFILE)]
Device = Annotated[Text, value("Computing", "NAME", "cpu, cuda or cuda:N; a GPU needs the extra gpu.", "cpu")]
Cluster = Annotated[Text, value("Computing", "ADDRESS", CLUSTER_HELP)]


def comma_separated(text: str) -> list[str]:
    """The names in A,B,…"""
    return [name.strip() for name in text.split(",") if name.strip()]


# --- Input files -----------------------------------------------------------------------------------------


def read_data(path: str, missing: str, client: Any, arguments: Mapping[str, Any]) -> rs.Dataset:
    """Read a data set, with a bar on a terminal; with a Dask client its workers do it."""
    with progress(f"reading {path}"):
        if client is None:
            return rs.read_dataset(path, missing=missing, **arguments)
        for name in arguments.keys() - set(ON_CLUSTER):
            reason = "is not for data on a `cluster`; leave it out or write other files"
            raise ParameterError(name, arguments[name], reason)
        return rs.distribute(path, client=client, **arguments)


def query_texts(*parts: rs.Dataset | None) -> dict[Any, str]:
    """The texts of the queries, where the data have them."""
    from ranksieve.data.describe import Names

    return {
        query: text for part in parts if part is not None for query, text in Names(part).query_texts.items()
    }


@contextmanager
def connected(address: Text) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, closed in the end; None without an address."""
    if address is None:
        yield None
        return
    from ranksieve.dask.cluster import connected as connect

    with connect(address) as client:
        yield client


def read_scores(path: str) -> FloatArray:
    """One finite number per line; ``-`` is standard input."""
    import numpy as np

    from ranksieve.io.text_files import finite_number, read_text, source_name

    lines, name = read_text(path).splitlines(), source_name(path)
    numbers = (finite_number(line, (name, k), "score") for k, line in enumerate(lines, start=1))
    return np.fromiter(numbers, dtype=np.float64, count=len(lines))


def is_model(file: str) -> bool:
    """Whether a file is a model rather than a list of scores, by its name or first bytes."""
    if file.endswith(".json"):
        return True
    try:
        with open(file, "rb") as content:
            return content.read(4).startswith(MODEL_STARTS)
    except OSError:
        return False


def previous_model(file: str) -> rs.LinearModel:
    """The linear model of ranksieve that a fit starts from."""
    from ranksieve.model.foreign import open_model

    own = open_model(file).own
    if not isinstance(own, rs.LinearModel):
        raise DataError(file, None, "is not a linear model of ranksieve, which `previous` needs")
    return own


def wide_enough(data: rs.Dataset, n_features: int) -> rs.Dataset:
    """With columns of 0 up to ``n_features`` if its columns have numbers for names, as in LETOR text."""
    from ranksieve.data.inputs import numbered_names

    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def finite_scores(model: Scorer, data: rs.Dataset) -> FloatArray:
    """Scores in row order; an error if one is not finite."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        scores = model.predict(data)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        first = (
            f"the score of document {bad[0] + 1} is {scores[bad[0]]}, because a feature in use is missing, "
        )
        reason = "infinite or too large; for missing ones choose `missing='zero'`, query_min or column_mean"
        raise DataError(data.source, None, first + reason)
    return scores


# --- Output files ----------------------------------------------------------------------------------------


def write_text(text: str, path: Text) -> None:
    """Write a file whole or not at all; without a path, or to ``-``, standard output."""
    from ranksieve._util.files import atomic_write

    if path is None or path == STANDARD:
        sys.stdout.write(text)
        return
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def beside(*outputs: Text) -> Iterator[None]:
    """Send text to stderr if one of the outputs is written to standard output."""
    from ranksieve._util.files import is_standard_output

    if any(output is not None and is_standard_output(output) for output in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def present(content: Any, as_json: bool, show: Callable[[], None], *outputs: Text) -> None:
    """Print the content as JSON, or show it and name the files that were written."""
    with beside(*outputs):
        if as_json:
            emit_json(content)
            return
        show()
        if files := " and ".join(output for output in outputs if output is not None):
            words(f"Wrote {files}.")


def check_files(
    inputs: Iterable[Text],
    *outputs: str | os.PathLike[str] | None,
    report: Text = None,
    stdout: bool = False,
) -> None:
    """Before any work, refuse stdin read twice, outputs that cannot be written, pages without jinja2.

    ``stdout``: whether ``-`` as an output is standard output.
    """
    from ranksieve._util.files import destination

    named = [file for file in inputs if file is not None]
    if named.count(STANDARD) > 1:
        raise DataError(STANDARD, None, "standard input can be read only once; name a file")
    taken = [Path(os.path.realpath(file)) for file in named if file != STANDARD]
    for output in (*outputs, report):
        if output is None or (stdout and output == STANDARD):
            continue
        if output == STANDARD:
            raise DataError(output, None, "cannot go to standard output; name a file to write")
        there = destination(output)
        if there.replaced and there.place in taken:
            raise DataError(output, None, "is named twice on the command line; choose another output file")
        taken.append(there.place)
        _check_writable(output, there)
    if report is not None:
        from ranksieve.report.page import require_extra

        require_extra()


def _check_writable(output: str | os.PathLike[str], there: Destination) -> None:
    place = there.place
    if place.is_dir():
        raise DataError(output, None, "is a folder; name a file to write")
    if not place.parent.is_dir():
        folder = place.parent if Path(output).is_symlink() else Path(output).parent
        raise DataError(output, None, f"the folder {folder} does not exist; create it first")
    if not (there.replaced or place.exists()):
        raise DataError(output, None, "is not open; name a file to write")
    if there.descriptor is None and place.exists() and not os.access(place, os.W_OK):
        raise DataError(output, None, "is write-protected; choose another file or allow writing")
    if not there.replaced:
        return
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        reason = f"cannot write there ({error.strerror}); choose another folder"
        raise DataError(output, None, reason) from None


# --- Groups of options -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Which columns of a file are what, names for those without one, and the texts of queries."""

    qid_column: Annotated[Text, value("Columns", "NAME", "Query ids in parquet, CSV or TSV.", "qid")] = None
    label_column: Annotated[Text, value("Columns", "NAME", "Relevance labels in these.", "label")] = None
    doc_column: Annotated[Text, value("Columns", "NAME", "Document ids in these.", "doc_id, if any")] = None
    features: Annotated[list[str] | None, value("Columns", "A,B*", "Features: names or patterns.")] = None
    ignore: Annotated[list[str] | None, value("Columns", "A,B*", "Not features: names or patterns.")] = None
    names: Annotated[
        Text,
        value(
            "Columns", "FILE", "Feature names for LETOR text, one per line or 1:name.", "DATA.names, if any"
        ),
    ] = None
    queries: Annotated[Text, value("Columns", "FILE", "Texts of queries: TSV or CSV of id, text.")] = None

    @property
    def files(self) -> tuple[Text, ...]:
        return self.names, self.queries

    @property
    def arguments(self) -> dict[str, Any]:
        """The readers' arguments."""
        values = {
            "qid": self.qid_column,
            "label": self.label_column,
            "doc_id": self.doc_column,
            "features": self.features and comma_separated(",".join(self.features)),
            "ignore": self.ignore and comma_separated(",".join(self.ignore)),
            "names": self.names,
        }
        return {name: value for name, value in values.items() if value is not None}

    def data(self, path: str, missing: str = "keep", client: Any = None) -> rs.Dataset:
        """Read a data set, as ``read_data`` does, with the texts of its queries."""
        if client is not None and self.queries is not None:
            raise ParameterError("queries", self.queries, "is not for data on a `cluster`; leave one out")
        return self.with_texts(read_data(path, missing, client, self.arguments))

    def with_texts(self, data: rs.Dataset) -> rs.Dataset:
        """The data with the texts of their queries, if there is a file of them."""
        return data if self.queries is None else rs.io.with_query_texts(data, self.queries)


@dataclass(frozen=True, kw_only=True)
class TrainData(ReadingOptions):
    """The queries to learn from, and how much they and their documents count."""

    train: Data
    query_weight: Annotated[
        Text,
        value(
            "Data", "FILE", "Weights of queries: CSV or TSV of query,weight.", "all 1", ["--query-weights"]
        ),
    ] = None
    document_weight: Annotated[
        Text,
        value(
            "Data", "COLUMN", "Document weights, such as clicks + 1; documents of weight 0 are dropped.",
            "all 1", ["--document-weights"],
        ),
    ] = None  # fmt: skip

    @property
    def files(self) -> tuple[Text, ...]:
        return (*super().files, self.train, self.query_weight)

    @property
    def arguments(self) -> dict[str, Any]:
        weights = {} if self.document_weight is None else {"document_weight": self.document_weight}
        return super().arguments | weights

    @property
    def query_weights(self) -> dict[str, Any]:
        """The argument of a fit for weights of queries; the data bring those of documents."""
        return (
            {} if self.query_weight is None else {"query_weight": rs.io.read_query_weights(self.query_weight)}
        )

    def data(self, path: str, missing: str = "keep", client: Any = None) -> rs.Dataset:
        """Read a data set; a ranker fills missing values, but the reader knows the line to refuse."""
        return super().data(path, "error" if missing == "error" else "keep", client)


VALID_HELP = "Validation data: held-out queries to select or measure models on."


@dataclass(frozen=True, kw_only=True)
class FitData(TrainData):
    """The queries to learn from and those to choose on."""

    valid: Annotated[Text, value("Data", "FILE", VALID_HELP)] = None

    @property
    def files(self) -> tuple[Text, ...]:
        return (*super().files, self.valid)

    def read(self, missing: str, client: Any = None) -> tuple[rs.Dataset, rs.Dataset | None]:
        """Training and validation data of equal width; a ranker finds the columns by name."""
        data = self.data(self.train, missing, client)
        if self.valid is None:
            return data, None
        held_out = self.data(self.valid, missing, client)
        if data.n_features != held_out.n_features:
            widest = max(data.n_features, held_out.n_features)
            widths = f"has {held_out.n_features} features, but {self.train} has {data.n_features}; both need "
            reason = f"the same columns (in sparse text write {widest}:0 once in the narrower file)"
            raise DataError(self.valid, None, widths + reason)
        return data, held_out


@dataclass(frozen=True, kw_only=True)
class RankerOptions:
    """Parameters of rankers with options of their own: the budget, the choice, the preparation."""

    max_features: Annotated[int | None, value("Budget", "K", "Use at most this many features.", min=1)] = None
    costs: Annotated[Text, value("Budget", "FILE", COSTS_HELP)] = None
    max_cost: Annotated[
        float | None, value("Budget", "C", "The features cost at most this in total.", min=0)
    ] = None
    must_have: Annotated[Text, value("Budget", "A,B*", "Features in every model, by name or pattern.")] = None
    must_not: Annotated[Text, value("Budget", "A,B*", "Features in no model.")] = None
    signs: Annotated[
        Text, value("Budget", "A=+,B*=-", "Signs of weights; or a CSV file of feature,sign.")
    ] = None
    metric: Annotated[Text, value("Model", "NAME", "The metric to select by, such as map.", "ndcg@10")] = None
    profile: Annotated[Text, value("Model", "NAME", PROFILE_HELP, "letor for LETOR folds, else standard")] = (
        None
    )
    normalise: Annotated[Text, NORMALISE] = None
    missing: Annotated[Text, MISSING] = None

    @property
    def limit_files(self) -> tuple[Text, ...]:
        return self.costs, None if self.signs is None or _is_list(self.signs) else self.signs

    @property
    def parameters(self) -> dict[str, Any]:
        """By the names of the rankers' parameters, with values checked as far as possible without data."""
        from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
        from ranksieve.prepare.scaling import check_kind

        if self.max_cost is not None and self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `costs`: what each feature costs")
        check_measures([self.metric] if self.metric is not None else None, self.profile)
        if self.normalise is not None:
            check_kind(self.normalise)
        if self.missing is not None:
            check_policy(self.missing, RANKER_POLICIES)
        values = {
            "max_features": self.max_features,
            "metric": self.metric,
            "profile": self.profile,
            "feature_costs": None if self.costs is None else rs.io.read_costs(self.costs),
            "max_cost": self.max_cost,
            "must_have": None if self.must_have is None else comma_separated(self.must_have),
            "must_not": None if self.must_not is None else comma_separated(self.must_not),
            "signs": None if self.signs is None else _signs(self.signs),
            "normalise": self.normalise,
            "missing": self.missing,
        }
        return {name: value for name, value in values.items() if value is not None}


def _is_list(signs: str) -> bool:
    """Whether the option holds signs rather than the name of a file."""
    return "=" in signs and not Path(signs).exists()


def _signs(text: str) -> dict[str, float]:
    """``name=+,name=-``, or a file."""
    from ranksieve.data.features import as_sign

    if not _is_list(text):
        if not Path(text).exists():
            reason = "there is no such file; --signs takes A=+,B*=- or a CSV file of feature,sign"
            raise FileNotFoundError(f"{text}: {reason}")
        return rs.io.read_signs(text)
    signs: dict[str, float] = {}
    for part in text.split(","):
        name, _, sign = (word.strip() for word in part.rpartition("="))
        if name in signs:
            raise ParameterError("signs", text, f"{name!r} is named twice; name it once")
        signs[name] = as_sign(sign, name)
    return signs


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(ReadingOptions):
    """How models read the data that they score."""

    missing: Annotated[Text, value("Data", "POLICY", FILLS_HELP, "the model's")] = None
    first_feature: Annotated[
        int | None,
        value("Data", "N", "First feature of a fastrank model: 1, or 0 for arrays.", min=0, max=1),
    ] = None

    def with_models(self, data_file: str, model_files: Sequence[str]) -> tuple[rs.Dataset, dict[str, Scorer]]:
        """Data wide enough for all models, and the models; the data name the columns of foreign models.

        ``missing`` replaces the models' own policies.
        """
        from ranksieve.model.foreign import open_model

        files = {file: open_model(file) for file in model_files}
        data = read_data(data_file, self.missing or "keep", None, self.arguments)
        models = {name: file.read(data.feature_names, self.first_feature) for name, file in files.items()}
        data = wide_enough(data, max((model.n_features for model in models.values()), default=0))
        if self.missing is not None:
            models = {name: _without_policy(model) for name, model in models.items()}
        return self.with_texts(data), models


def _without_policy(model: Scorer) -> Scorer:
    """The model without a policy for missing values, which the reader has applied."""
    from ranksieve.prepare import KEPT

    if not isinstance(model, rs.LinearModel) or model.preparation.missing.indicators:
        return model  # indicators are part of the score
    return replace(model, preparation=replace(model.preparation, missing=KEPT))


# --- Metrics ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """What rankings are measured with: metrics, their conventions, and TREC judgements for TREC runs."""

    qrels: Annotated[Text, value("Data", "FILE", "TREC judgements, for TREC runs without DATA.")] = None
    metric: Annotated[
        list[str] | None, value("Model", "NAME", METRIC_HELP, "the model's (else ndcg@10) and map")
    ] = None
    profile: Conventions = None


Own = Mapping[str, Mapping[str, str]]
"""The ``metric`` and ``profile`` that models were chosen by, by the names of their files."""


@dataclass(frozen=True)
class Measures:
    """Metrics and their profile; ``words`` say which they are and whose."""

    metrics: Sequence[str]
    profile: Profile
    words: str


def check_measures(metric: Sequence[str] | None, profile: Text) -> None:
    """Refuse metrics and a profile that do not exist, before any work."""
    from ranksieve.metrics.evaluate import parse_all
    from ranksieve.metrics.profiles import as_profile

    if metric:
        parse_all(metric)
    if profile is not None:
        as_profile(profile)


def measures_of_runs(metric: Sequence[str] | None, profile: Text) -> Measures:
    """Those of the options, else NDCG@10 and MAP in the trec profile."""
    from ranksieve.metrics.evaluate import DEFAULT_METRICS
    from ranksieve.metrics.profiles import as_profile

    conventions = as_profile(profile or "trec")
    return Measures(metric or DEFAULT_METRICS, conventions, f"{conventions.name} profile")


def measures_for(
    models: Mapping[str, Scorer],
    data: rs.Dataset,
    metric: Sequence[str] | None,
    profile: Text,
    also: Sequence[str] = (),
) -> Measures:
    """Those of the options, else what all models were chosen by, else NDCG@10 and the profile of the data.

    ``also``: extra metrics shown when none was requested.
    """
    from ranksieve.metrics import profile_for
    from ranksieve.metrics.evaluate import DEFAULT_METRICS

    own = {file: model.chosen_by for file, model in models.items() if model.chosen_by is not None}
    first = metric[0] if metric else _agreed(own, "metric") or DEFAULT_METRICS[0]
    conventions = profile_for(profile or _agreed(own, "profile"), data)
    whose: dict[str, list[str]] = {}
    if not metric and own:
        whose.setdefault(_origin(own, "metric"), []).append(first.upper())
    origin = _origin(own, "profile") if not profile and own else ""
    whose.setdefault(origin, []).append(f"{conventions.name} profile")
    by = "; ".join(", ".join(what) + origin for origin, what in whose.items())
    return Measures(metric or list(dict.fromkeys([first, *also])), conventions, by)


def _agreed(own: Own, what: str) -> Text:
    """What all models with a choice were chosen by."""
    values = {one[what] for one in own.values()}
    return values.pop() if len(values) == 1 else None


def _origin(own: Own, what: str) -> str:
    if _agreed(own, what):
        return f", as the {'model was' if len(own) == 1 else 'models were'} chosen by"
    each = ", ".join(f"{file} by {one[what]}" for file, one in own.items())
    return f", because the models were chosen by different ones ({each})"
