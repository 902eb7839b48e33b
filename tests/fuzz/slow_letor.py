"""A slow reference reader of LETOR text, written literally from the grammar.

file     = [byte order mark] line {"\\n" line}; also as gzip; no NUL, and no parquet
line     = blanks | blanks "#" anything | document ["#" comment ["\\r"]]
document = blanks label blanks "qid:" id {blanks index ":" value} blanks
blanks   = spaces, tabs and carriage returns
label    = a finite number; value = a finite number, or NULL or NaN in any case
number   = [sign] digits ["." [digits]] [exponent] | [sign] "." digits [exponent]
id       = UTF-8; index = 1 to ``n_features`` in at most 18 digits, at most once per line
"""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from typing import NamedTuple

BLANKS = re.compile(rb"[ \t\r]+")
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ENTRY = re.compile(rb"([0-9]{1,18}):(.+)", re.DOTALL)
PLAIN_INTEGER = re.compile("0|-?[1-9][0-9]*")
DOCUMENT_ID = re.compile(rb"(?:^|[ \t\r])docid[ \t\r]*=[ \t\r]*([^ \t\r]+)", re.IGNORECASE)
LARGEST_INDEX = 10_000_000


class Refused(Exception):
    """The text does not follow the grammar."""


class Documents(NamedTuple):
    """Content of a text; rows are features by index; comments and document ids are None if there are none."""

    labels: list[float]
    queries: list[int] | list[str]
    rows: list[dict[int, float]]
    comments: list[bytes] | None
    doc_ids: list[bytes] | None


def slow_read(
    content: bytes, n_features: int | None = None, single: bool = False, refuse_missing: bool = False
) -> Documents:
    """The documents of a file; ``single`` rounds features to float32."""
    text = _plain(content).removeprefix(b"\xef\xbb\xbf")
    if b"\0" in text:
        raise Refused("NUL")
    labels, queries, rows, comments = [], [], [], []
    for line in text.split(b"\n"):
        body, _, comment = line.partition(b"#")
        words = [word for word in BLANKS.split(body) if word]
        if not words:
            continue
        if len(words) < 2 or not words[1].startswith(b"qid:") or words[1] == b"qid:":
            raise Refused("no query")
        labels.append(_number(words[0]))
        queries.append(_text(words[1][4:]))
        rows.append(_row(words[2:], n_features or LARGEST_INDEX, single, refuse_missing))
        comments.append(comment[:-1] if comment.endswith(b"\r") else comment)
    if not rows or (n_features is None and not any(rows)):
        raise Refused("nothing")
    all_integers = all(PLAIN_INTEGER.fullmatch(one) and -(2**63) <= int(one) < 2**63 for one in queries)
    has_comments = any(comments)
    return Documents(
        labels,
        [int(one) for one in queries] if all_integers else queries,
        rows,
        comments if has_comments else None,
        [_document_id(comment) for comment in comments] if has_comments else None,
    )


def _plain(content: bytes) -> bytes:
    if content.startswith(b"PAR1"):
        raise Refused("parquet")
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error):
        raise Refused("gzip") from None


def _row(words: list[bytes], largest: int, single: bool, refuse_missing: bool) -> dict[int, float]:
    row: dict[int, float] = {}
    for word in words:
        entry = ENTRY.fullmatch(word)
        if entry is None or not 1 <= int(entry[1]) <= largest or int(entry[1]) in row:
            raise Refused("feature")
        missing = entry[2].lower() in (b"null", b"nan")
        if missing and refuse_missing:
            raise Refused("missing")
        row[int(entry[1])] = math.nan if missing else _number(entry[2], single)
    return dict(sorted(row.items()))


def _number(word: bytes, single: bool = False) -> float:
    value = float(word) if NUMBER.fullmatch(word) else math.inf
    try:
        value = struct.unpack("f", struct.pack("f", value))[0] if single else value
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise Refused("number")
    return value


def _text(word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise Refused("UTF-8") from None


def _document_id(comment: bytes) -> bytes:
    match = DOCUMENT_ID.search(comment)
    return match[1] if match else BLANKS.split(comment.strip(b" \t\r"))[0]
