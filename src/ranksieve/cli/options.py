"""Options that several commands share, alone or as groups that ``app.with_flat_options`` takes apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ranksieve as rs
from ranksieve.cli.files import kept_for, read_data, read_with_models

if TYPE_CHECKING:  # these take long to load
    from ranksieve.foreign import Scorer

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
            raise ValueError("--queries needs the rows here, which --cluster leaves elsewhere; leave one out")
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
            raise ValueError(
                f"{self.valid} has {held_out.n_features} features but {self.train} has {data.n_features}; "
                f"both need the same columns (in sparse text write {widest}:0 once in the narrower file)"
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
        from ranksieve.preparation.missing import RANKER_POLICIES, check_policy
        from ranksieve.preparation.normalise import check_kind

        if self.max_cost is not None and self.costs is None:
            raise ValueError(f"--max-cost {self.max_cost:g} needs --costs FILE: what each feature costs")
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
            raise ValueError(f"--signs: {name!r} is named twice in {text}; name it once")
        signs[name] = as_sign(sign, name, "--signs")
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
