"""Options shared by commands, input and output files, and the metrics to compute."""

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
from ranksieve.cli.output import emit_json, print_text, progress
from ranksieve.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ranksieve._types import FloatArray
    from ranksieve._util.files import Destination
    from ranksieve.metrics import Profile
    from ranksieve.model.score_functions import Scorer


STANDARD_STREAM = "-"
CLUSTER_ARGUMENTS = ("qid", "label", "features", "document_weight")  # supported for data on a cluster
MODEL_STARTS = (b"##", b"{", b"tree")  # a score file starts with a number
Text = str | None


# --- Arguments and options that commands share -----------------------------------------------------------


def value(
    section: str, metavar: str, text: str, default: Text = None, names: Sequence[str] = (), **limits: Any
) -> Any:
    """An option with a value in a section of the help; ``default`` is the text shown as its default."""
    shown = True if default is None else default
    return typer.Option(
        *names, metavar=metavar, help=text, rich_help_panel=section, show_default=shown, **limits
    )


def argument(metavar: str, text: str) -> Any:
    """A positional argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def flag(section: str, name: str, text: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=text, rich_help_panel=section)


def output_option(metavar: str, text: str, default: Text = None) -> Any:
    """The option -o for the file or folder to write."""
    return value("Output", metavar, text, default, ("-o", "--output"))


DATA_HELP = "LETOR text, CSV or TSV (also .gz), parquet, a folder written by convert, or - for stdin."
MODEL_HELP = "Model file of ranksieve, RankLib, fastrank, LightGBM or XGBoost."
COSTS_HELP = "Feature costs by name or pattern: CSV file of feature,cost[,group], or JSON."
METRIC_HELP = "Metric, such as ndcg@10 or map; may be repeated."
PROFILE_HELP = "Metric conventions: letor, mslr, standard or trec."
TIES_HELP = "Documents with equal scores: order (of the input), mean (over all orders) or worst."
DEFAULT_PROFILE = "the model's, else letor for LETOR folds, trec for runs, standard for other data"
SCALINGS = (
    "auto, none, z, within_z, min_max, query_min_max or query_z; auto: none if all values are in [0, 1], else"
)
POLICIES = "auto, error, zero, query_min, column_mean or indicator; auto: column_mean, with a warning"
FILLS_HELP = "Missing values: error, zero, query_min, column_mean or keep."
CLUSTER_HELP = "Dask cluster, tcp://HOST:PORT; DATA must be parquet files that its workers can read."
NORMALISE_OPTION = value("Data", "KIND", f"Scaling: {SCALINGS} within_z.", "auto")
MISSING_OPTION = value("Data", "POLICY", f"Missing values: {POLICIES}.", "auto")

Data = Annotated[str, argument("DATA", DATA_HELP)]
ModelFile = Annotated[str, argument("MODEL", MODEL_HELP)]
ModelOutput = Annotated[str, output_option("FILE", "Model file to write.")]
JsonOutput = Annotated[Text, output_option("FILE", "Write all points as JSON.")]
Judgements = Annotated[Text, value("Data", "FILE", "Judgements of the runs, such as TREC qrels.")]
Report = Annotated[Text, value("Output", "FILE", "Write an HTML page.")]
Json = Annotated[bool, flag("Output", "--json", "Print one JSON object instead of text.")]
Metrics = Annotated[list[str] | None, value("Model", "NAME", METRIC_HELP, "the model's, else ndcg@10")]
Conventions = Annotated[Text, value("Model", "NAME", PROFILE_HELP, DEFAULT_PROFILE)]
TieRule = Annotated[Text, value("Model", "RULE", TIES_HELP, "mean for the profile standard, else order")]
Device = Annotated[Text, value("Computing", "NAME", "cpu, cuda or cuda:N; cuda needs the extra gpu.", "cpu")]
Cluster = Annotated[Text, value("Computing", "ADDRESS", CLUSTER_HELP)]


def comma_separated(text: str) -> list[str]:
    """Split ``A,B,…`` into names."""
    return [name.strip() for name in text.split(",") if name.strip()]


# --- Input files -----------------------------------------------------------------------------------------


def read_data(path: str, missing: str, client: Any, arguments: Mapping[str, Any]) -> rs.Dataset:
    """Read a data set, on the workers of a Dask client if there is one; with a progress bar on a terminal."""
    with progress(f"reading {path}"):
        if client is None:
            return rs.read_dataset(path, missing=missing, **arguments)
        for name in arguments.keys() - set(CLUSTER_ARGUMENTS):
            reason = "is not supported on a `cluster`; leave it out, or convert the files"
            raise ParameterError(name, arguments[name], reason)
        return rs.distribute(path, client=client, **arguments)


def query_texts(*parts: rs.Dataset | None) -> dict[Any, str]:
    """Texts of the queries, if the data have them."""
    from ranksieve.data.describe import Names

    return {
        query: text for part in parts if part is not None for query, text in Names(part).query_texts.items()
    }


@contextmanager
def dask_client(address: Text) -> Iterator[Any]:
    """Connect to the Dask scheduler at an address; None without an address."""
    if address is None:
        yield None
        return
    from ranksieve.dask.cluster import connect

    with connect(address) as client:
        yield client


def read_scores(path: str) -> FloatArray:
    """Read a file with one finite number per line; ``-`` is standard input."""
    import numpy as np

    from ranksieve.io.text_files import finite_number, read_text, source_name

    lines, name = read_text(path).splitlines(), source_name(path)
    numbers = (finite_number(line, (name, k), "score") for k, line in enumerate(lines, start=1))
    return np.fromiter(numbers, dtype=np.float64, count=len(lines))


def is_model(file: str) -> bool:
    """Return True if a file is a model, not a list of scores, by its name or first bytes."""
    if file.endswith(".json"):
        return True
    try:
        with open(file, "rb") as content:
            return content.read(4).startswith(MODEL_STARTS)
    except OSError:
        return False


def previous_model(file: str) -> rs.LinearModel:
    """Read the linear model that a fit starts from."""
    from ranksieve.model.foreign import open_model

    model = open_model(file).ranksieve_model
    if not isinstance(model, rs.LinearModel):
        raise DataError(file, None, "must be a linear model of ranksieve for `previous`")
    return model


def short_names(files: Sequence[str]) -> dict[str, str]:
    """Map each file to its stem, or to its whole path if another file has the same stem."""
    if len(set(files)) < len(files):
        repeated = next(file for file in files if files.count(file) > 1)
        raise DataError(repeated, None, "is named twice; name different models or score files")
    stems = [Path(file).stem for file in files]
    return {f: stem if stems.count(stem) == 1 else f for f, stem in zip(files, stems, strict=True)}


def widen_to(data: rs.Dataset, n_features: int) -> rs.Dataset:
    """Append columns of zeros up to ``n_features`` if the columns are numbered, as in LETOR text."""
    from ranksieve.data.inputs import numbered_names

    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def finite_scores(model: Scorer, data: rs.Dataset) -> FloatArray:
    """Scores in row order; raises an error if one is not finite."""
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
    """Write a file atomically; without a path, or with ``-``, write to standard output."""
    from ranksieve._util.files import atomic_write

    if path is None or path == STANDARD_STREAM:
        sys.stdout.write(text)
        return
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def keep_stdout_for(*outputs: Text) -> Iterator[None]:
    """Print text on stderr if one of the outputs is written to standard output."""
    from ranksieve._util.files import is_standard_output

    if any(output is not None and is_standard_output(output) for output in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def print_result(content: Any, as_json: bool, show: Callable[[], None], *outputs: Text) -> None:
    """Print the content as JSON, or as text with the names of the files written."""
    with keep_stdout_for(*outputs):
        if as_json:
            emit_json(content)
            return
        show()
        if files := " and ".join(output for output in outputs if output is not None):
            print_text(f"Wrote {files}.")


def check_files(
    inputs: Iterable[Text],
    *outputs: str | os.PathLike[str] | None,
    report: Text = None,
    stdout: bool = False,
) -> None:
    """Refuse stdin used twice, outputs that cannot be written, and pages without jinja2 before any work.

    ``stdout``: True if ``-`` as an output means standard output.
    """
    from ranksieve._util.files import destination

    named = [file for file in inputs if file is not None]
    if named.count(STANDARD_STREAM) > 1:
        raise DataError(STANDARD_STREAM, None, "standard input can be used only once; name a file instead")
    taken = [Path(os.path.realpath(file)) for file in named if file != STANDARD_STREAM]
    for output in (*outputs, report):
        if output is None or (stdout and output == STANDARD_STREAM):
            continue
        if output == STANDARD_STREAM:
            raise DataError(output, None, "cannot be written to standard output; name a file")
        target = destination(output)
        if target.replaceable and target.path in taken:
            raise DataError(output, None, "is named twice on the command line; choose another output file")
        taken.append(target.path)
        _check_writable(output, target)
    if report is not None:
        from ranksieve.report.page import require_extra

        require_extra()


def _check_writable(output: str | os.PathLike[str], target: Destination) -> None:
    path = target.path
    if path.is_dir():
        raise DataError(output, None, "is a folder; name a file")
    if not path.parent.is_dir():
        folder = path.parent if Path(output).is_symlink() else Path(output).parent
        raise DataError(output, None, f"the folder {folder} does not exist; create it first")
    if not (target.replaceable or path.exists()):
        raise DataError(output, None, "is not open; name a file")
    if target.descriptor is None and path.exists() and not os.access(path, os.W_OK):
        raise DataError(output, None, "is write-protected; choose another file or change its permissions")
    if not target.replaceable:
        return
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        reason = f"cannot be written ({error.strerror}); choose another folder"
        raise DataError(output, None, reason) from None


# --- Groups of options -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Columns of a file, feature names, and texts of queries."""

    qid_column: Annotated[
        Text, value("Columns", "NAME", "Column of query ids (parquet, CSV, TSV).", "qid")
    ] = None
    label_column: Annotated[Text, value("Columns", "NAME", "Column of relevance labels.", "label")] = None
    doc_column: Annotated[Text, value("Columns", "NAME", "Column of document ids.", "doc_id, if any")] = None
    features: Annotated[
        list[str] | None, value("Columns", "A,B*", "Columns to use as features: names or patterns.")
    ] = None
    ignore: Annotated[list[str] | None, value("Columns", "A,B*", "Columns to ignore: names or patterns.")] = (
        None
    )
    names: Annotated[
        Text,
        value(
            "Columns", "FILE", "Feature names for LETOR text, one per line or 1:name.", "DATA.names, if any"
        ),
    ] = None
    queries: Annotated[Text, value("Columns", "FILE", "Texts of queries: TSV or CSV file of id, text.")] = (
        None
    )

    @property
    def files(self) -> tuple[Text, ...]:
        return self.names, self.queries

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the readers."""
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
        """Read a data set with the texts of its queries."""
        if client is not None and self.queries is not None:
            raise ParameterError(
                "queries", self.queries, "is not supported on a `cluster`; leave one of them out"
            )
        return self.with_texts(read_data(path, missing, client, self.arguments))

    def with_texts(self, data: rs.Dataset) -> rs.Dataset:
        """Add the texts of the queries, if there is a file of them."""
        return data if self.queries is None else rs.io.with_query_texts(data, self.queries)


@dataclass(frozen=True, kw_only=True)
class FusionOptions:
    """How the results of the clauses of a hybrid search are joined with judgements."""

    unjudged: Annotated[
        str, value("Data", "RULE", "Returned documents without a judgement: zero (grade 0) or drop.")
    ] = "zero"
    depth: Annotated[
        int | None, value("Data", "N", "Number of documents per clause and query.", "all", min=1)
    ] = None

    def join(self, runs: Sequence[str], qrels: Text) -> rs.Dataset | None:
        """The data of the clauses in ``runs``; None without judgements, for one table."""
        if qrels is not None:
            names = {name: file for file, name in short_names(runs).items()}
            return rs.fuse_runs(names, qrels, unjudged=self.unjudged, depth=self.depth)
        if len(runs) > 1:
            raise ParameterError("qrels", None, "is required with several runs; pass a file of judgements")
        if self.depth is not None:
            raise ParameterError("depth", self.depth, "applies to runs; leave it out")
        return None


@dataclass(frozen=True, kw_only=True)
class MoreRuns(FusionOptions):
    """The other clauses of a hybrid search, if DATA is the run of the first one."""

    runs: Annotated[
        list[str] | None, argument("RUN...", "Further clauses of a hybrid search; needs --qrels.")
    ] = None

    def joined(self, data: str, qrels: Text) -> rs.Dataset | None:
        return self.join([data, *(self.runs or ())], qrels)


@dataclass(frozen=True, kw_only=True)
class TrainData(ReadingOptions):
    """Training data, with weights of queries and documents."""

    train: Data
    query_weight: Annotated[
        Text,
        value(
            "Data", "FILE", "Query weights: CSV or TSV file of query,weight.", "all 1", ["--query-weights"]
        ),
    ] = None
    document_weight: Annotated[
        Text,
        value(
            "Data", "COLUMN", "Column of document weights, such as clicks + 1; weight 0 drops a document.",
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
        """The argument of ``fit`` for query weights; document weights are part of the data."""
        return (
            {} if self.query_weight is None else {"query_weight": rs.io.read_query_weights(self.query_weight)}
        )

    def data(self, path: str, missing: str = "keep", client: Any = None) -> rs.Dataset:
        """Read a data set; the ranker fills missing values, but the reader can name the line of an error."""
        return super().data(path, "error" if missing == "error" else "keep", client)


VALID_HELP = "Validation data: held-out queries to select or evaluate models on."


@dataclass(frozen=True, kw_only=True)
class FitData(TrainData):
    """Training and validation data."""

    valid: Annotated[Text, value("Data", "FILE", VALID_HELP)] = None

    @property
    def files(self) -> tuple[Text, ...]:
        return (*super().files, self.valid)

    def read(self, missing: str, client: Any = None) -> tuple[rs.Dataset, rs.Dataset | None]:
        """Read training and validation data; they must have the same number of features."""
        data = self.data(self.train, missing, client)
        if self.valid is None:
            return data, None
        held_out = self.data(self.valid, missing, client)
        if data.n_features != held_out.n_features:
            widest = max(data.n_features, held_out.n_features)
            widths = (
                f"has {held_out.n_features} features, but {self.train} has {data.n_features}; both must have "
            )
            reason = f"the same columns (in sparse text, add {widest}:0 to one line of the narrower file)"
            raise DataError(self.valid, None, widths + reason)
        return data, held_out


@dataclass(frozen=True, kw_only=True)
class RankerOptions:
    """Ranker parameters that have an option each: budget, selection, preparation."""

    max_features: Annotated[int | None, value("Budget", "K", "Maximum number of features.", min=1)] = None
    costs: Annotated[Text, value("Budget", "FILE", COSTS_HELP)] = None
    max_cost: Annotated[float | None, value("Budget", "C", "Maximum total cost of the features.", min=0)] = (
        None
    )
    must_have: Annotated[
        Text, value("Budget", "A,B*", "Features that every model uses: names or patterns.")
    ] = None
    must_not: Annotated[Text, value("Budget", "A,B*", "Features that no model uses: names or patterns.")] = (
        None
    )
    signs: Annotated[
        Text, value("Budget", "A=+,B*=-", "Signs of weights, or a CSV file of feature,sign.")
    ] = None
    metric: Annotated[Text, value("Model", "NAME", "Metric to select by, such as map.", "ndcg@10")] = None
    profile: Annotated[Text, value("Model", "NAME", PROFILE_HELP, "letor for LETOR folds, else standard")] = (
        None
    )
    normalise: Annotated[Text, NORMALISE_OPTION] = None
    missing: Annotated[Text, MISSING_OPTION] = None

    @property
    def limit_files(self) -> tuple[Text, ...]:
        return self.costs, None if self.signs is None or _is_list(self.signs) else self.signs

    @property
    def parameters(self) -> dict[str, Any]:
        """Values by parameter name; checks what can be checked without data."""
        from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
        from ranksieve.prepare.scaling import check_kind

        if self.max_cost is not None and self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `costs`, the cost of each feature")
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
    """Return True if the option is a list of signs, not a file name."""
    return "=" in signs and not Path(signs).exists()


def _signs(text: str) -> dict[str, float]:
    """Parse ``name=+,name=-``, or read a file."""
    from ranksieve.data.features import as_sign

    if not _is_list(text):
        if not Path(text).exists():
            reason = "file not found; --signs expects A=+,B*=- or a CSV file of feature,sign"
            raise FileNotFoundError(f"{text}: {reason}")
        return rs.io.read_signs(text)
    signs: dict[str, float] = {}
    for part in text.split(","):
        name, _, sign = (word.strip() for word in part.rpartition("="))
        if name in signs:
            raise ParameterError("signs", text, f"{name!r} occurs twice; name each feature once")
        signs[name] = as_sign(sign, name)
    return signs


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(ReadingOptions):
    """How data are read for scoring."""

    missing: Annotated[Text, value("Data", "POLICY", FILLS_HELP, "the model's")] = None
    first_feature: Annotated[
        int | None,
        value(
            "Data",
            "N",
            "Index of the first feature in a fastrank model: 1, or 0 if fitted on arrays.",
            min=0,
            max=1,
        ),
    ] = None

    def with_models(
        self, data_file: str, model_files: Sequence[str], clauses: rs.Dataset | None = None
    ) -> tuple[rs.Dataset, dict[str, Scorer]]:
        """Read data with enough columns for all models, and the models; foreign models get the data's names.

        ``missing`` overrides the models' policies. ``clauses``: the data, if they have been read from runs.
        """
        from ranksieve.model.foreign import open_model

        files = {file: open_model(file) for file in model_files}
        if clauses is not None and self.missing is not None:
            reason = "applies to tables; a clause that did not return a document counts 0; leave it out"
            raise ParameterError("missing", self.missing, reason)
        data = clauses or read_data(data_file, self.missing or "keep", None, self.arguments)
        models = {name: file.read(data.feature_names, self.first_feature) for name, file in files.items()}
        data = widen_to(data, max((model.n_features for model in models.values()), default=0))
        if self.missing is not None:
            models = {name: _without_policy(model) for name, model in models.items()}
        return self.with_texts(data), models


def _without_policy(model: Scorer) -> Scorer:
    """Remove the policy for missing values, which the reader has already filled."""
    from ranksieve.prepare import KEEP_MISSING

    if not isinstance(model, rs.LinearModel) or model.preparation.missing.indicators:
        return model  # indicators are part of the score
    return replace(model, preparation=replace(model.preparation, missing=KEEP_MISSING))


# --- Metrics ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """Metrics, their profile, and TREC judgements for TREC runs."""

    qrels: Annotated[Text, value("Data", "FILE", "TREC judgements, to evaluate TREC runs without DATA.")] = (
        None
    )
    metric: Annotated[
        list[str] | None, value("Model", "NAME", METRIC_HELP, "the model's (else ndcg@10) and map")
    ] = None
    profile: Conventions = None
    ties: TieRule = None


ChosenBy = Mapping[str, Mapping[str, str]]
"""The ``metric`` and ``profile`` that models were selected by, by file name."""


@dataclass(frozen=True)
class Measures:
    """Metrics and their profile; ``description`` names them and where they come from."""

    metrics: Sequence[str]
    profile: Profile
    description: str


def check_measures(metric: Sequence[str] | None, profile: Text, ties: Text = None) -> None:
    """Refuse unknown metrics, profiles and treatments of ties before any work."""
    from ranksieve.metrics.evaluate import parse_all
    from ranksieve.metrics.profiles import as_profile, as_ties

    if metric:
        parse_all(metric)
    if profile is not None:
        as_profile(profile)
    if ties is not None:
        as_ties(ties)


def measures_of_runs(metric: Sequence[str] | None, profile: Text) -> Measures:
    """Metrics and profile of the options, default NDCG@10 and MAP with the trec profile."""
    from ranksieve.metrics.evaluate import DEFAULT_METRICS
    from ranksieve.metrics.profiles import as_profile

    conventions = as_profile(profile or "trec")
    return Measures(metric or DEFAULT_METRICS, conventions, f"{conventions.name} profile")


def measures_for(
    models: Mapping[str, Scorer],
    data: rs.Dataset,
    metric: Sequence[str] | None,
    profile: Text,
    ties: Text = None,
    also: Sequence[str] = (),
) -> Measures:
    """Metrics and profile of the options, else those of all models, else NDCG@10 and the profile of the data.

    ``also``: extra metrics shown when none was requested.
    """
    from ranksieve.metrics import profile_for
    from ranksieve.metrics.evaluate import DEFAULT_METRICS
    from ranksieve.metrics.profiles import as_ties

    chosen_by = {file: model.chosen_by for file, model in models.items() if model.chosen_by is not None}
    first = metric[0] if metric else _common(chosen_by, "metric") or DEFAULT_METRICS[0]
    conventions = profile_for(profile or _common(chosen_by, "profile"), data)
    whose: dict[str, list[str]] = {}
    if not metric and chosen_by:
        whose.setdefault(_origin(chosen_by, "metric"), []).append(first.upper())
    origin = _origin(chosen_by, "profile") if not profile and chosen_by else ""
    whose.setdefault(origin, []).append(f"{conventions.name} profile")
    if ties is not None:
        conventions = conventions.with_ties(as_ties(ties))
        whose.setdefault("", []).append(f"ties {ties}")
    by = "; ".join(", ".join(what) + origin for origin, what in whose.items())
    return Measures(metric or list(dict.fromkeys([first, *also])), conventions, by)


def _common(chosen_by: ChosenBy, what: str) -> Text:
    """The metric or profile that all models were selected by; None if they differ."""
    values = {one[what] for one in chosen_by.values()}
    return values.pop() if len(values) == 1 else None


def _origin(chosen_by: ChosenBy, what: str) -> str:
    if _common(chosen_by, what):
        return f" (used to select the {'model' if len(chosen_by) == 1 else 'models'})"
    each = ", ".join(f"{file} by {one[what]}" for file, one in chosen_by.items())
    return f" (the models were selected by different ones: {each})"
