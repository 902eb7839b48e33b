"""Mutations of bytes: bits flipped; parts deleted, duplicated, swapped and spliced; tokens inserted."""

from __future__ import annotations

import gzip
import re
from random import Random

HOSTILE = [
    b"1e999", b"-1e999", b"nan", b"NULL", b"inf", b"-0", b"1_0", b"1e", b".", b"+", b"--1", b"0x1p3",
    b"5e-324", b"1" * 25, b"9" * 400, b"0" * 30 + b"7", b"18446744073709551617", b"9007199254740993",
    b"1e-400", b"2147483648", b"qid:", b"qid", b"#", b"##", b":", b"1:", b":1", b"1:1", b"0:1", b"2:2 1:1",
    b"10000001:1", b"1:1:1", b" docid = ", b"\0", b"\r", b"\n", b"\n\n", b"\r\n", b"\t", b" ", b"\x0b",
    b"\x0c", b"\x1c", b"\x85", "\u2028".encode(), "\x85".encode(), "\u00a0".encode(), b"\xef\xbb\xbf",
    "\u0661\u0662".encode(), b"\xff", b"\xc3", "\U0001f600".encode(), b"\xed\xa0\x80", b'"', b"'", b",",
    b";", b"{", b"}", b"[", b"]", b"[" * 300, b"null", b"true", b"\\", b"\\ud800", b"<", b"&", b"</",
    b"PAR1", b"\x1f\x8b", b"-", b"*", b"1e308", b"1.7976931348623157e308", b"-1", b"0",
]  # fmt: skip
WORD = re.compile(rb"[^\s:,;\"<>{}\[\]]+")


def mutated(rng: Random, text: bytes, others: list[bytes], most: int = 4) -> bytes:
    """The text with up to ``most`` changes; ``others`` are texts to splice it with."""
    changed = bytearray(text)
    for _ in range(rng.randrange(most + 1)):
        rng.choice(CHANGES)(rng, changed, others)
    return bytes(changed)


def zipped(rng: Random, text: bytes) -> bytes:
    """The text as gzip, possibly truncated or damaged."""
    whole = bytearray(gzip.compress(text, 1, mtime=0))
    damage = rng.randrange(4)
    if damage == 1:
        del whole[rng.randrange(len(whole)) :]
    elif damage == 2:
        _flip(rng, whole, [])
    elif damage == 3:
        whole += rng.choice([b"\0\0", b"x", bytes(whole)])
    return bytes(whole)


def _part(rng: Random, text: bytes | bytearray, longest: int = 12) -> slice:
    begin = rng.randrange(len(text) + 1)
    return slice(begin, begin + rng.randrange(1, longest))


def _flip(rng: Random, text: bytearray, others: list[bytes]) -> None:
    if text:
        text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)


def _any_byte(rng: Random, text: bytearray, others: list[bytes]) -> None:
    if text:
        text[rng.randrange(len(text))] = rng.randrange(256)


def _delete(rng: Random, text: bytearray, others: list[bytes]) -> None:
    del text[_part(rng, text)]


def _insert(rng: Random, text: bytearray, others: list[bytes]) -> None:
    at = rng.randrange(len(text) + 1)
    text[at:at] = rng.choice(HOSTILE)


def _replace_word(rng: Random, text: bytearray, others: list[bytes]) -> None:
    word = WORD.search(bytes(text), rng.randrange(len(text) + 1))
    if word:
        text[word.start() : word.end()] = rng.choice(HOSTILE)


def _double(rng: Random, text: bytearray, others: list[bytes]) -> None:
    part = _part(rng, text, 40)
    text[part.start : part.start] = text[part]


def _break_off(rng: Random, text: bytearray, others: list[bytes]) -> None:
    del text[rng.randrange(len(text) + 1) :]


def _splice(rng: Random, text: bytearray, others: list[bytes]) -> None:
    other = rng.choice(others) if others else bytes(text)
    text[rng.randrange(len(text) + 1) :] = other[rng.randrange(len(other) + 1) :]


def _swap_lines(rng: Random, text: bytearray, others: list[bytes]) -> None:
    lines = text.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    text[:] = b"\n".join(lines)


def _other_line_ends(rng: Random, text: bytearray, others: list[bytes]) -> None:
    text[:] = text.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\r", b"\n\n"]))


CHANGES = (
    _flip, _flip, _any_byte, _delete, _delete, _insert, _insert, _insert, _replace_word, _replace_word,
    _replace_word, _double, _break_off, _splice, _swap_lines, _other_line_ends,
)  # fmt: skip
