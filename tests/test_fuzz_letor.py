"""Mutated LETOR text: the fast and the slow reader agree, and accepted texts survive a round trip."""

from __future__ import annotations

from random import Random

import pytest

from ranksieve.io import letor
from tests.fuzz.letor import Case, check_letor, letor_case
from tests.fuzz.slow_letor import Refused, slow_read

pytestmark = pytest.mark.full
SEED, BLOCKS, IN_A_BLOCK = 17, 10, 1000


@pytest.fixture(scope="module", autouse=True, params=["plain text by Python", "compiled"])
def parser(request):
    """Small plain texts are parsed without compiled code: every test runs with both parsers."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            patch.setattr(letor, "PLAIN_BYTES", 0)
        yield


@pytest.mark.parametrize("block", range(BLOCKS))
def test_both_readers_agree_on_hostile_texts(block):
    accepted = 0
    for number in range(block * IN_A_BLOCK, (block + 1) * IN_A_BLOCK):
        case = letor_case(Random(f"{SEED}:{number}"))
        try:
            accepted += check_letor(case)
        except Exception as error:
            raise AssertionError(f"text {number}, {case}: {error}") from error
    assert IN_A_BLOCK // 5 < accepted < IN_A_BLOCK // 2, "most should be near the border"


FOUND = [
    b"1 qid:1 1:1 # a\r\r\n",  # a comment that ends in a carriage return
    b"1 qid:1 1:" + b"9" * 400 + b"\n",  # a number as long as its sentence
    b"9" * 400 + b" qid:1 1:1\n",
    b"1 qid:1 " + b"0" * 5000 + b"1:inf\n",  # more digits than Python reads
    b"1 qid:" + b"\xff" * 500 + b" 1:1\n",
]


@pytest.mark.parametrize("content", FOUND)
@pytest.mark.parametrize("sparse", [False, True])
def test_texts_found_by_fuzzing(content, sparse):
    check_letor(Case(content, None, False, sparse, False, 64, True))


def test_the_slow_reader():
    documents = slow_read(b"\xef\xbb\xbf2 qid:a 3:0.5 1:NULL # docid = x\n\n# note\n0 qid:7 2:-0#y z\r\n")
    assert (documents.labels, documents.queries, documents.doc_ids) == ([2.0, 0.0], ["a", "7"], [b"x", b"y"])
    assert [list(row) for row in documents.rows] == [[1, 3], [2]]
    assert documents.comments == [b" docid = x", b"y z"]
    for refused in (
        b"",
        b"1 qid:1\n",
        b"1 1:1\n",
        b"1 qid:1 1:1 1:2\n",
        b"1 qid:1 1:1_0\n",
        b"nan qid:1 1:1\n",
    ):
        with pytest.raises(Refused):
            slow_read(refused)
