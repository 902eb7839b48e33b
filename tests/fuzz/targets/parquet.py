"""Parquet: columns of unusual types, and damaged files."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ranksieve as rs
from tests.fuzz.mutations import mutated
from tests.fuzz.refusals import Place, outcome
from tests.fuzz.targets.datasets import comes_back

DAY = datetime.date(2024, 2, 29)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [0, -1, 2**53 + 1, 2**63 - 1, 5]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 7]),
    "int8": (pa.int8(), [0, -128, 127]),
    "float16": (pa.float16(), [np.float16(0.5), np.float16(65504), np.float16(-0.0)]),
    "float32": (pa.float32(), [0.5, 3e38, float("nan"), float("inf")]),
    "float64": (pa.float64(), [0.5, 1e308, float("nan"), float("-inf"), -0.0]),
    "bool": (pa.bool_(), [True, False]),
    "decimal": (pa.decimal128(38, 4), [Decimal("1.5"), Decimal("9" * 30), Decimal("-0.0001")]),
    "decimal256": (pa.decimal256(60, 2), [Decimal("1.5"), Decimal("9" * 50)]),
    "date": (pa.date32(), [DAY]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]),
    "time": (pa.time64("us"), [datetime.time(1, 2)]),
    "duration": (pa.duration("s"), [datetime.timedelta(days=1)]),
    "text": (pa.string(), ["a", "", "1", "\u2028", "ö", "x" * 300]),
    "large text": (pa.large_string(), ["a", "b"]),
    "binary": (pa.binary(), [b"a", b"\xff\0"]),
    "fixed": (pa.binary(2), [b"ab", b"\xff\0"]),
    "list": (pa.list_(pa.float64()), [[], [1.0, 2.0], [None]]),
    "struct": (pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": None}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    "number dictionary": (pa.dictionary(pa.int32(), pa.int64()), [1, 2**53 + 1]),
    "null": (pa.null(), [None]),
}
NAMES = (
    "qid",
    "label",
    "doc_id",
    "comment",
    "document_weight",
    "a",
    "b",
    "",
    "a ",
    "ö",
    "__index_level_0__",
    "x" * 300,
)


class Table(NamedTuple):
    """Names, kinds and values of columns; names may be duplicated."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def to_bytes(self) -> bytes:
        arrays = [
            pa.array(list(values), COLUMNS[kind][0]) if "dictionary" not in kind else _encoded(kind, values)
            for kind, values in zip(self.kinds, self.values, strict=True)
        ]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, names=list(self.names)), out)
        return out.getvalue()


def _encoded(kind: str, values: tuple[Any, ...]) -> pa.Array:
    return pa.array(list(values), COLUMNS[kind][0].value_type).dictionary_encode()


def random_table(rng: Random) -> Table:
    """A few rows of columns of usual and unusual types."""
    n_rows = rng.choice((1, 2, 3, 5))
    names = ["qid", "label", *rng.sample(NAMES[2:], rng.randrange(1, 4))]
    if rng.random() < 0.05:
        names.append(rng.choice(names))
    if rng.random() < 0.05:
        names.pop(rng.randrange(len(names)))
    usual = {"qid": ("int64", "text"), "label": ("int8", "float64"), "a": ("float64", "float32", "int64")}
    columns = []
    for name in names:
        odd = rng.random() < 0.4 or name not in usual
        kind = rng.choice(list(COLUMNS) if odd else usual[name])
        values = [rng.choice(COLUMNS[kind][1]) for _ in range(n_rows)]
        if rng.random() < 0.2:
            values[rng.randrange(n_rows)] = None
        columns.append((name, kind, tuple(values)))
    return Table(*zip(*columns, strict=True)) if columns else Table((), (), ())


class ParquetTypes:
    """Valid files with columns of unusual types."""

    @cached_property
    def place(self) -> Place:
        return Place("data.parquet")

    def make(self, rng: Random) -> Table:
        return random_table(rng)

    def check(self, table: Table) -> bool:
        try:
            content = table.to_bytes()
        except pa.ArrowException:  # parquet does not support the type
            return False
        return _is_accepted(self.place, content)


class ParquetFiles:
    """Files with damaged bytes."""

    @cached_property
    def place(self) -> Place:
        return Place("data.parquet")

    @cached_property
    def examples(self) -> list[bytes]:
        rng = Random(0)
        tables = [Table(("qid", "label", "a"), ("int64", "int8", "float64"), ((1, 1), (0, 1), (0.5, 2.0)))]
        tables += [table for table in (random_table(rng) for _ in range(60)) if "qid" in table.names]
        contents = []
        for table in tables:
            try:
                contents.append(table.to_bytes())
            except pa.ArrowException:
                continue
        return contents

    def make(self, rng: Random) -> bytes:
        return mutated(rng, rng.choice(self.examples[: rng.choice((1, 1, None))]), self.examples)

    def check(self, content: bytes) -> bool:
        return _is_accepted(self.place, content)


def _is_accepted(place: Place, content: bytes) -> bool:
    path = place.holding(content)
    result = outcome(rs.read_dataset, path)
    converted = outcome(rs.io.convert_dataset, path, path.with_suffix(".ranksieve"))
    assert result.accepted or not converted.accepted, f"converted, but not read: {result.sentence}"
    return result.accepted and outcome(comes_back, result.value, path).accepted


PARQUET_TYPES, PARQUET_FILES = ParquetTypes(), ParquetFiles()
