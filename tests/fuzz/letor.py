"""LETOR text: the fast reader against the slow one, and round trips of accepted texts."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.io.letor import letor_lines, read_letor
from ranksieve.io.stream import stream_letor
from tests.fuzz.mutations import mutated, zipped
from tests.fuzz.slow_letor import Documents, Refused, slow_read

NUMBERS = [
    "0", "1", "2", "-1", "0.5", ".25", "3.", "1e-3", "0.123456", "-0", "7.5E+2", "NULL", "NaN",
    "123456789.125", "0.1", "1e22", "1e23", "9007199254740993", "4.9e-324", "2.2250738585072011e-308",
    "3.4028236e38",
]  # fmt: skip
QUERIES = ["1", "2", "10", "-3", "q7", "007", "ö", "9223372036854775808", "qid:4"]
COMMENTS = ["", "", " docid = GX-1 inc = 0.5", "doc7", " DOCID=a b", " docid =", "é\t x", " adocid = 3"]
LONGEST = 400  # characters of a message
LONG_INDEX = re.compile(rb"[0-9]{4,}:")


class Case(NamedTuple):
    """A text and the options of reading it."""

    content: bytes
    n_features: int | None
    single: bool
    sparse: bool
    refuse_missing: bool
    chunk_bytes: int
    streamed: bool


def letor_case(rng: Random) -> Case:
    """A small mutated LETOR text."""
    text = _text(rng)
    content = mutated(rng, text, [_text(rng)])
    if rng.random() < 0.02:
        content = zipped(rng, content)
    n_features = rng.choice((None, None, None, 3, 50))
    if LONG_INDEX.search(content) and n_features is None:  # so wide that reading would take seconds
        n_features = 1000
    return Case(
        content,
        n_features,
        rng.random() < 0.2,
        rng.random() < 0.3,
        rng.random() < 0.1,
        rng.choice((16, 64, 4096)),
        rng.random() < 0.05,
    )


def check_letor(case: Case) -> bool:
    """Whether the text is accepted; AssertionError if the readers or a round trip differ."""
    expected = reason = None
    try:
        expected = slow_read(case.content, case.n_features, case.single, case.refuse_missing)
    except Refused as why:
        reason = str(why)
    data, message = _outcome(_read, case.content, case)
    assert (data is None) == (expected is None), f"{message or 'accepted'}; by the grammar: {reason}"
    if data is None or expected is None:
        if case.streamed:
            _check_stream(case, None)
        return False
    _compare(data, expected)
    again = _read(b"".join(bytes(piece) for piece in letor_lines(data)), case, data.n_features)
    _compare(again, expected)
    if case.streamed:
        _check_stream(case, data)
    return True


def _text(rng: Random) -> bytes:
    width = rng.choice((2, 3, 5))
    lines = []
    for _ in range(rng.randrange(1, 7)):
        features = [j for j in range(1, width + 1) if rng.random() < 0.8]
        pairs = " ".join(f"{j}:{rng.choice(NUMBERS)}" for j in features)
        comment = rng.choice(COMMENTS)
        label = rng.choice("0012") if rng.random() < 0.9 else rng.choice(NUMBERS[:10])
        lines.append(f"{label} qid:{rng.choice(QUERIES[:3])} {pairs}" + (f" #{comment}" if comment else ""))
    if rng.random() < 0.3:
        lines[rng.randrange(len(lines))] = f"1 qid:{rng.choice(QUERIES)} 1:{rng.choice(NUMBERS)}"
    return "\n".join(lines).encode() + (b"\n" if rng.random() < 0.8 else b"")


def _set_stdin(content: bytes) -> None:
    sys.stdin = SimpleNamespace(buffer=io.BytesIO(content))  # type: ignore[assignment]


def _read(content: bytes, case: Case, width: int | None = None) -> Dataset:
    options: dict[str, Any] = {"sparse": case.sparse, "dtype": np.float32 if case.single else np.float64}
    before = sys.stdin
    _set_stdin(content)
    try:
        return read_letor(
            "-",
            n_features=case.n_features or width,
            missing="error" if case.refuse_missing else "keep",
            _chunk_bytes=case.chunk_bytes,
            **options,
        )
    finally:
        sys.stdin = before


def _outcome(read: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """(data, "") or (None, message of the refusal)."""
    try:
        return read(*arguments), ""
    except DataError as error:
        message = str(error)
        if error.file != "standard input" or len(message) >= LONGEST or "\n" in message:
            raise
        return None, message


def _compare(data: Dataset, expected: Documents) -> None:
    assert np.array_equal(_bits(data.y), _bits(np.array(expected.labels))), "labels"
    assert data.qid.tolist() == expected.queries, "query ids"
    if isinstance(data.X, np.ndarray):
        dense = np.zeros(data.X.shape, dtype=data.X.dtype)
        for i, row in enumerate(expected.rows):
            for j, value in row.items():
                dense[i, j - 1] = value
        assert np.array_equal(_bits(data.X), _bits(dense)), "features"
    else:
        assert np.diff(data.X.indptr).tolist() == [len(row) for row in expected.rows], "rows"
        assert data.X.indices.tolist() == [j - 1 for row in expected.rows for j in row], "indices"
        values = np.array([v for row in expected.rows for v in row.values()], dtype=data.X.dtype)
        assert np.array_equal(_bits(data.X.data), _bits(values)), "values"
    for name in ("comments", "doc_ids"):
        column, texts = getattr(data, name), getattr(expected, name)
        assert (column is None) == (texts is None), name
        assert column is None or [column.raw(row) for row in range(len(column))] == texts, name


def _bits(values: np.ndarray) -> np.ndarray:
    """The bits of numbers, with the same value for all NaNs."""
    bits = np.ascontiguousarray(values).view(np.int32 if values.dtype == np.float32 else np.int64)
    return np.where(np.isnan(values), -1, bits)


def _check_stream(case: Case, whole: Dataset | None) -> None:
    """Streaming gives the same rows; it also refuses queries whose rows are not contiguous."""
    parts, message = _outcome(_streamed, case)
    if parts is None:
        assert whole is None or "not contiguous" in message, f"a stream refuses: {message}"
        return
    assert whole is not None, "a stream accepts a text that the reader refuses"
    assert np.concatenate([part.qid for part in parts]).tolist() == [str(one) for one in whole.qid.tolist()]
    rows = np.vstack([_widened(part.X, whole.n_features) for part in parts])
    assert np.array_equal(_bits(rows), _bits(_widened(whole.X, whole.n_features)))


def _streamed(case: Case) -> list[Dataset]:
    before = sys.stdin
    _set_stdin(case.content)
    try:
        return list(
            stream_letor(
                "-",
                n_features=case.n_features,
                missing="error" if case.refuse_missing else "keep",
                sparse=case.sparse,
                dtype=np.float32 if case.single else np.float64,
                chunk_bytes=case.chunk_bytes,
            )
        )
    finally:
        sys.stdin = before


def _widened(X: Any, width: int) -> np.ndarray:
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    return np.hstack([dense, np.zeros((len(dense), width - dense.shape[1]), dtype=dense.dtype)])
