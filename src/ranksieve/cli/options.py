"""Options that commands share, the files that they name, and the metrics that they ask for."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.output import progress
from ranksieve.errors import DataError, ParameterError

if TYPE_CHECKING:
    from ranksieve._types import FloatArray
    from ranksieve._util.files import Destination
    from ranksieve.metrics import Profile
    from ranksieve.model.score_functions import Scorer


STANDARD = "-"
NONE: Mapping[str, Any] = MappingProxyType({})
OF_CLUSTER = ("qid", "label", "features", "document_weight")  # which columns: what data on a cluster take
MODEL_STARTS = (b"##", b"{", b"tree")  # a file of scores begins with a number


# --- Inputs ----------------------------------------------------------------------------------------------


def kept_for(missing: str) -> str:
    """The reader's policy for a ranker's: the ranker fills, but the reader knows the line to refuse."""
    return "error" if missing == "error" else "keep"


def read_data(
    path: str, missing: str = "keep", client: Any = None, arguments: Mapping[str, Any] = NONE
) -> rs.Dataset:
    """Read a data set, with a bar on a terminal; with a Dask client its workers do it.

    ``arguments`` are those of readers that are given: which columns, and names for them.
    """
    with progress(f"reading {path}"):
        if client is None:
            return rs.read_dataset(path, missing=missing, **arguments)
        for name in arguments:
            if name not in OF_CLUSTER:
                raise ParameterError(
                    name, arguments[name], "is not for data on a `cluster`; leave it out or write other files"
                )
        return rs.distribute(path, client=client, **arguments)


def query_texts(*parts: rs.Dataset | None) -> dict[Any, str]:
    """The words of all queries, as far as the data have them."""
    from ranksieve.data.describe import Names

    return {
        query: text for part in parts if part is not None for query, text in Names(part).query_texts.items()
    }


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
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


def check_inputs(*paths: str | None) -> None:
    """Standard input can be only one of the inputs."""
    if paths.count(STANDARD) > 1:
        raise DataError(STANDARD, None, "standard input can be read only once; name a file")


# --- Models ----------------------------------------------------------------------------------------------


def is_model(file: str) -> bool:
    """Whether a file is a model rather than a list of scores, by its name or first bytes."""
    if file.endswith(".json"):
        return True
    try:
        with open(file, "rb") as content:
            return content.read(4).startswith(MODEL_STARTS)
    except OSError:
        return False


def model_before(file: str) -> rs.LinearModel:
    """The linear model of ranksieve that a fit begins with."""
    from ranksieve.model.foreign import open_model

    own = open_model(file).own
    if not isinstance(own, rs.LinearModel):
        raise DataError(file, None, "is not a linear model of ranksieve, which `warm_start` needs")
    return own


def read_with_models(
    data_file: str,
    model_files: Sequence[str],
    missing: str | None = None,
    first_feature: int | None = None,
    arguments: Mapping[str, Any] = NONE,
) -> tuple[rs.Dataset, dict[str, Scorer]]:
    """Data wide enough for all models, and the models, with columns of others' models named by the data.

    ``missing`` replaces the models' own policies; ``arguments`` are those of readers. LETOR text, whose
    columns have numbers for names, gets columns of 0 up to the widest model.
    """
    from ranksieve.model.foreign import open_model

    files = {file: open_model(file) for file in model_files}
    data = read_data(data_file, missing or "keep", arguments=arguments)
    models = {name: file.read(data.feature_names, first_feature) for name, file in files.items()}
    data = wide_enough(data, max(model.n_features for model in models.values()))
    return data, models if missing is None else {name: _without_policy(m) for name, m in models.items()}


def wide_enough(data: rs.Dataset, n_features: int) -> rs.Dataset:
    """With columns of 0 up to so many if its columns have numbers for names, as those of LETOR text."""
    from ranksieve.data.inputs import numbered_names

    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def _without_policy(model: Scorer) -> Scorer:
    """The model with missing values left as they are: the command line has dealt with them."""
    from ranksieve.prepare import KEPT

    if not isinstance(model, rs.LinearModel) or model.preparation.missing.indicators:
        return model  # indicators are part of the score
    return replace(model, preparation=replace(model.preparation, missing=KEPT))


def finite_scores(model: Scorer, data: rs.Dataset) -> FloatArray:
    """Scores in row order; a row without one is refused."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        scores = model.predict(data)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise DataError(
            data.source,
            None,
            f"the score of document {bad[0] + 1} is {scores[bad[0]]}, because a feature in use is missing, "
            "infinite or too large; for missing ones choose `missing='zero'`, query_min or column_mean",
        )
    return scores


# --- Outputs ---------------------------------------------------------------------------------------------


def write_text(text: str, path: str | None) -> None:
    """Write a file whole or not at all; without a path, or to ``-``, standard output."""
    from ranksieve._util.files import atomic_write

    if path is None or path == STANDARD:
        sys.stdout.write(text)
        return
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def beside(*outputs: str | None) -> Iterator[None]:
    """Show on stderr what would go to standard output if an output goes there, which it has to itself."""
    from ranksieve._util.files import is_standard_output

    if any(output is not None and is_standard_output(output) for output in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def check_outputs(
    outputs: Iterable[str | os.PathLike[str] | None],
    inputs: Iterable[str | None] = (),
    *,
    stdout: bool = False,
) -> None:
    """Refuse, before any work, outputs that cannot be written or that would overwrite an input.

    ``stdout`` tells whether the command can write to standard output, called ``-``.
    """
    from ranksieve._util.files import destination

    taken = [Path(os.path.realpath(given)) for given in inputs if given is not None and given != STANDARD]
    for output in outputs:
        if output is None or (stdout and output == STANDARD):
            continue
        if output == STANDARD:
            raise DataError(output, None, "cannot go to standard output; name a file to write")
        there = destination(output)
        if there.replaced and there.place in taken:
            raise DataError(output, None, "is named twice on the command line; choose another output file")
        taken.append(there.place)
        _check_writable(output, there)


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


DATA_HELP = "LETOR text, CSV or TSV (also .gz), parquet, a folder that convert made, or - for stdin."
MODEL_HELP = "A model file of ranksieve, RankLib, fastrank, LightGBM or XGBoost."
Train = Annotated[str, typer.Argument(metavar="TRAIN", help=DATA_HELP)]
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
Missing = Annotated[
    str,
    typer.Option(metavar="POLICY", help="Missing values: error, zero, query_min, column_mean or keep."),
]
RANKER_MISSING = typer.Option(
    metavar="POLICY",
    help="Missing values: auto, error, zero, query_min, column_mean or indicator; auto is column_mean with a "
    "word about it.",
)
NORMALISE = typer.Option(
    metavar="KIND",
    help="Scaling: auto, none, z, within_z, min_max, query_min_max or query_z; auto leaves features of [0, "
    "1] as they are and takes within_z for others.",
)
Conventions = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="Metric conventions: letor, mslr, standard or trec; default: the model's own, else letor for "
        "LETOR's folds, trec for runs, standard for other data.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster read and fit: tcp://HOST:PORT. Data are then a parquet file, "
        "a folder of them or a quoted pattern, where all workers can read them.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Where to compute: cpu, cuda or cuda:N; a GPU needs the extra gpu."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]


def comma_separated(text: str) -> list[str]:
    """The names of an option that takes several: A,B,…"""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class Weights:
    """How much queries and documents of the training data count."""

    query_weight: Annotated[
        str | None,
        typer.Option(
            "--query-weights",
            metavar="FILE",
            help="How much queries count: CSV or TSV query,weight; those not in it weigh 1.",
        ),
    ] = None
    document_weight: Annotated[
        str | None,
        typer.Option(
            "--document-weights",
            metavar="COLUMN",
            help="The column that says how much each document counts, such as click_weight, made as clicks "
            "+ 1; it is then not a feature. With weight 0 a document is absent, also from held-out training "
            "lists.",
        ),
    ] = None

    @property
    def files(self) -> tuple[str | None, ...]:
        return (self.query_weight,)

    @property
    def for_fit(self) -> dict[str, Any]:
        """The argument of a fit for weights of queries; the data bring those of documents."""
        return {} if self.query_weight is None else {"query_weight": rs.read_query_weights(self.query_weight)}


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Which columns of a file are what, names for those without one, and texts beside them."""

    qid_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of query ids in parquet, CSV or TSV: qid.")
    ] = None
    label_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of relevance in these: label.")
    ] = None
    doc_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of document ids in these: doc_id, if any.")
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B*",
            help="Features to read from these: names or patterns such as 'bm25_*'; may be repeated.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B*", help="Columns to leave out: names or patterns; may be repeated."),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Names for the features of LETOR text: one per line, or 1:name; default DATA.names if there "
            "is one.",
        ),
    ] = None
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What was asked: TSV or CSV of query id and text."),
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Those that are given, by the names of the readers' arguments."""
        values = {
            "qid": self.qid_column,
            "label": self.label_column,
            "doc_id": self.doc_column,
            "features": _patterns(self.features),
            "ignore": _patterns(self.ignore),
            "names": self.names,
        }
        return {name: value for name, value in values.items() if value is not None}

    def data(
        self, path: str, missing: str = "keep", client: Any = None, document_weight: str | None = None
    ) -> rs.Dataset:
        """Read a data set, as ``read_data`` does, with the texts of its queries.

        ``document_weight`` is the column of the weights of documents.
        """
        if client is not None and self.queries is not None:
            raise ParameterError("queries", self.queries, "is not for data on a `cluster`; leave one out")
        return self.with_texts(read_data(path, missing, client, self.weighted(document_weight)))

    def weighted(self, document_weight: str | None) -> dict[str, Any]:
        """The readers' arguments with the column of the weights of documents, if there is one."""
        return self.arguments | ({} if document_weight is None else {"document_weight": document_weight})

    def with_texts(self, data: rs.Dataset) -> rs.Dataset:
        """The data with the texts of their queries, if there is a file of them."""
        return data if self.queries is None else rs.with_query_texts(data, self.queries)


def _patterns(given: list[str] | None) -> list[str] | None:
    """A,B and C, given one by one or with commas, as a list."""
    return None if given is None else [name for one in given for name in comma_separated(one)]


@dataclass(frozen=True, kw_only=True)
class FitData(ReadingOptions):
    """The queries to learn from and those to choose on."""

    train: Train
    valid: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Held-out queries to choose on; SparseRanker pools them with cross-validation.",
        ),
    ] = None

    @property
    def files(self) -> tuple[str | None, ...]:
        return self.train, self.valid, self.names, self.queries

    def read(
        self, missing: str, client: Any = None, document_weight: str | None = None
    ) -> tuple[rs.Dataset, rs.Dataset | None]:
        """Training and validation data of equal width; a ranker finds the columns by name.

        ``missing`` is the ranker's policy. With a Dask client the workers read the data. ``document_weight``
        is a column that both have.
        """
        data = self.data(self.train, kept_for(missing), client, document_weight)
        if self.valid is None:
            return data, None
        held_out = self.data(self.valid, kept_for(missing), client, document_weight)
        if data.n_features != held_out.n_features:
            widest = max(data.n_features, held_out.n_features)
            raise DataError(
                self.valid,
                None,
                f"has {held_out.n_features} features, but {self.train} has {data.n_features}; both need the "
                f"same columns (in sparse text write {widest}:0 once in the narrower file)",
            )
        return data, held_out


MaxFeatures = Annotated[int | None, typer.Option(metavar="K", min=1, help="Use at most this many features.")]


@dataclass(frozen=True)
class RankerOptions:
    """Parameters of rankers that have options of their own: how to choose, from which features."""

    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the choice maximises, such as ndcg@10 or map.")
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Metric conventions: letor, mslr, standard or trec; default letor for LETOR's folds, else "
            "standard.",
        ),
    ] = None
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            "--feature-costs",
            metavar="FILE",
            help="Prices: CSV feature,cost[,group] or JSON; by name or pattern.",
        ),
    ] = None
    max_cost: Annotated[
        float | None, typer.Option(metavar="C", min=0, help="The features in use cost at most this.")
    ] = None
    must_have: Annotated[
        str | None,
        typer.Option(
            metavar="A,B*", help="Features for every model, by name or pattern, free of the penalty."
        ),
    ] = None
    must_not: Annotated[
        str | None, typer.Option(metavar="A,B*", help="Features that are never used, by name or pattern.")
    ] = None
    signs: Annotated[
        str | None,
        typer.Option(
            metavar="A=+,B*=-",
            help="Signs that weights must have, by name or pattern; or a CSV file feature,sign.",
        ),
    ] = None
    normalise: Annotated[str | None, NORMALISE] = None
    missing: Annotated[str | None, RANKER_MISSING] = None

    @property
    def files(self) -> tuple[str | None, ...]:
        """The files among them."""
        return self.costs, None if self.signs is None or _is_list(self.signs) else self.signs

    def parameters(self, max_features: int | None = None) -> dict[str, Any]:
        """Those that are given, by the names of the ranker's parameters, checked as far as can be."""
        from ranksieve.metrics import parse
        from ranksieve.metrics.profiles import as_profile
        from ranksieve.prepare.missing import RANKER_POLICIES, check_policy
        from ranksieve.prepare.scaling import check_kind

        if self.max_cost is not None and self.costs is None:
            raise ParameterError("max_cost", self.max_cost, "needs `costs`: what each feature costs")
        if self.metric is not None:
            parse(self.metric)
        if self.profile is not None:
            as_profile(self.profile)
        if self.normalise is not None:
            check_kind(self.normalise)
        if self.missing is not None:
            check_policy(self.missing, RANKER_POLICIES)
        values = {
            "max_features": max_features,
            "metric": self.metric,
            "profile": self.profile,
            "feature_costs": None if self.costs is None else rs.read_costs(self.costs),
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
            named = re.match(r"([^,]+?) ?([+-])(,|$)", text)
            example = f"{named[1]}={named[2]}" if named else "A=+,B*=-"
            raise FileNotFoundError(
                f"{text}: there is no such file; --signs takes NAME=SIGN, such as {example}, or a CSV file "
                "with the header feature,sign"
            )
        return rs.read_signs(text)
    signs: dict[str, float] = {}
    for part in text.split(","):
        name, _, sign = (word.strip() for word in part.rpartition("="))
        if name in signs:
            raise ParameterError("signs", text, f"{name!r} is named twice; name it once")
        signs[name] = as_sign(sign, name)
    return signs


@dataclass(frozen=True)
class ScoringOptions(ReadingOptions):
    """How models read the data that they score."""

    missing: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Missing values: error, zero, query_min, column_mean or keep; default: as the model says.",
        ),
    ] = None
    first_feature: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=1, help="A fastrank model counts features from 1, or from 0 on arrays."
        ),
    ] = None

    def read(
        self, data_file: str, model_files: Sequence[str], document_weight: str | None = None
    ) -> tuple[rs.Dataset, dict[str, Scorer]]:
        """The data and the models, as ``read_with_models`` gives them."""
        data, models = read_with_models(
            data_file, model_files, self.missing, self.first_feature, self.weighted(document_weight)
        )
        return self.with_texts(data), models


@dataclass(frozen=True)
class MetricOptions:
    """What rankings are measured with: metrics, their conventions, and TREC judgements for TREC runs."""

    qrels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="TREC judgements, to measure TREC runs instead of DATA."),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Such as ndcg@10 or map; may be repeated; default: the model's own (else ndcg@10) and map.",
        ),
    ] = None
    profile: Conventions = None


Own = Mapping[str, Mapping[str, str]]
"""What models were chosen by, ``metric`` and ``profile``, by the names of their files."""


@dataclass(frozen=True)
class Measures:
    """Metrics and their profile; ``words`` say which they are and whose."""

    metrics: Sequence[str]
    profile: Profile
    words: str


def check_measures(metric: Sequence[str] | None, profile: str | None) -> None:
    """Refuse metrics and a profile that do not exist, before any work."""
    from ranksieve.metrics.evaluate import parse_all
    from ranksieve.metrics.profiles import as_profile

    if metric:
        parse_all(metric)
    if profile is not None:
        as_profile(profile)


def measures_of_runs(metric: Sequence[str] | None, profile: str | None) -> Measures:
    """What is asked for, else NDCG@10 and MAP in the trec profile."""
    from ranksieve.metrics.evaluate import DEFAULT_METRICS
    from ranksieve.metrics.profiles import as_profile

    conventions = as_profile(profile or "trec")
    return Measures(metric or DEFAULT_METRICS, conventions, f"{conventions.name} profile")


def measures_for(
    models: Mapping[str, Scorer],
    data: rs.Dataset,
    metric: Sequence[str] | None,
    profile: str | None,
    also: Sequence[str] = (),
) -> Measures:
    """What is asked for, else what all models were chosen by, else NDCG@10 and the profile of the data.

    ``also`` names metrics that come with one that nobody asked for.
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
    words = "; ".join(", ".join(what) + origin for origin, what in whose.items())
    return Measures(metric or list(dict.fromkeys([first, *also])), conventions, words)


def _agreed(own: Own, what: str) -> str | None:
    """What all models that were chosen by something were chosen by."""
    values = {one[what] for one in own.values()}
    return values.pop() if len(values) == 1 else None


def _origin(own: Own, what: str) -> str:
    if _agreed(own, what):
        return f", as the {'model was' if len(own) == 1 else 'models were'} chosen by"
    each = ", ".join(f"{file} by {one[what]}" for file, one in own.items())
    return f", because the models were chosen by different ones ({each})"
