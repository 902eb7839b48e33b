"""What can be wrong with a line of LETOR text, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ranksieve.errors import DataError, ParameterError
from ranksieve.kernels.letor_text import (
    BAD_FEATURE,
    BAD_INDEX,
    BAD_LABEL,
    INDEX_TOO_LARGE,
    NO_QUERY,
    Parsed,
)
from ranksieve.kernels.number_text import SAFE_DIGITS
from ranksieve.preparation.missing import OTHER_POLICIES

TOKEN = re.compile(rb"[^ \t\r\n#]*")
LONGEST_SHOWN = 40
LARGEST_INDEX = 10_000_000
INFINITE = {"inf", "infinity"}
NO_FEATURE = "no line has a feature; expected index:value after the query id"


def check_width(n_features: int | None) -> None:
    """Refuse more columns than can have names."""
    if n_features is not None and n_features > LARGEST_INDEX:
        reason = f"must be at most {LARGEST_INDEX}; number the features that occur from 1 on"
        raise ParameterError("n_features", n_features, reason)


@dataclass(frozen=True, order=True)
class Fault:
    """A sentence about a line; faults order by line."""

    line: int
    sentence: str

    def error(self, name: str) -> DataError:
        return DataError(name, self.line, self.sentence)


def token_at(buffer: bytearray, at: int) -> bytes:
    """The token that begins at a position."""
    found = TOKEN.match(buffer, at)
    return bytes(found.group()) if found else b""


def kernel_fault(buffer: bytearray, parsed: Parsed, n_features: int | None) -> Fault:
    """The fault the parser stopped at."""
    token = token_at(buffer, parsed.fault_at)
    return Fault(parsed.lines, SENTENCES[parsed.fault](token, n_features))


def infinite_value(line: int, feature: int, shown: str) -> Fault:
    """A number too large for the matrix; feature 0 is the label."""
    place = f"feature {feature}" if feature else "the label"
    return Fault(line, f"{place} is {beginning_of(shown)}, which overflows; {_FINITE}")


def missing_value(parsed: Parsed) -> Fault:
    return Fault(
        parsed.missing_line, f"feature {parsed.missing_feature} is missing (NULL or NaN); {OTHER_POLICIES}"
    )


def feature_twice(line: int, feature: int) -> Fault:
    return Fault(line, f"feature {feature} occurs twice on the line; give it once")


def query_not_utf8(line: int, token: bytes) -> Fault:
    return Fault(line, f"the query id {token[:LONGEST_SHOWN]!r} is not UTF-8; save the file as UTF-8")


_FINITE = "values must be finite numbers, or NULL where missing"


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", errors="backslashreplace")
    if not text:
        return "nothing"
    return repr(beginning_of(text))


def beginning_of(text: str) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _index(digits: bytes) -> str:
    return _shown(digits.lstrip(b"0") or b"0").strip("'")


def _bad_label(token: bytes, n_features: int | None) -> str:
    return f'the label is {_shown(token)}; expected a finite number first, as in "2 qid:10 1:0.5"'


def _no_query(token: bytes, n_features: int | None) -> str:
    return f'found {_shown(token)} after the label; expected the query id there, as in "2 qid:10 1:0.5"'


def _bad_feature(token: bytes, n_features: int | None) -> str:
    index, colon, value = token.partition(b":")
    if colon and index.isdigit() and value.strip(b"+-").decode("ascii", "replace").lower() in INFINITE:
        return f"feature {_index(index)} is {_shown(value)}; {_FINITE}"
    return f'found {_shown(token)}; expected index:value, as in "7:0.5" (a missing value is NULL or NaN)'


def _bad_index(token: bytes, n_features: int | None) -> str:
    return f"found {_shown(token)}; LETOR features count from 1"


def _index_too_large(token: bytes, n_features: int | None) -> str:
    digits = token.partition(b":")[0]
    index = _index(digits)
    if len(digits) > SAFE_DIGITS and digits.startswith(b"0"):
        return f"found {_shown(token)}; write feature numbers without leading zeros"
    if n_features is None:
        return f"feature {index} is beyond {LARGEST_INDEX}; number the features that occur from 1 on"
    return f"feature {index} is beyond `n_features={n_features}`; raise `n_features` or leave it out"


SENTENCES: dict[int, Callable[[bytes, int | None], str]] = {
    BAD_LABEL: _bad_label,
    NO_QUERY: _no_query,
    BAD_FEATURE: _bad_feature,
    BAD_INDEX: _bad_index,
    INDEX_TOO_LARGE: _index_too_large,
}
