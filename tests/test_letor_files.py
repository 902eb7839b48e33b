"""Recognition of the data of docs/results.md."""

from __future__ import annotations

import gzip
import hashlib

import pytest
from papers import letor_files
from papers.__main__ import main

TEXT = b"2 qid:1 1:0.5 2:0 #docid = 7 inc = 1\n0 qid:1 1:0.25 2:1 #docid = 9 inc = 0\n"
SAME_VALUES = b"2 qid:1 1:0.5  2:0\r\n0 qid:1 1:0.25 2:1 \r\n"
BARE = b"2 qid:1 1:0.5 2:0\n0 qid:1 1:0.25 2:1\n"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A collection whose hashes are known: one fold."""
    hashes = tuple(hashlib.sha256(text).hexdigest() for text in (TEXT, BARE))
    known = {(1, part): hashes for part in ("train", "validation", "test")}
    monkeypatch.setattr(letor_files, "_hashes", lambda: {"Toy": known})
    fold = tmp_path / "Toy" / "Fold1"
    fold.mkdir(parents=True)
    for name in ("train", "vali", "test"):
        (fold / f"{name}.txt").write_bytes(TEXT)
    return fold


def test_the_same_bytes(toy, capsys):
    main(["data", str(toy.parent.parent)])
    assert capsys.readouterr().out == "Toy: 3 of 3 files are those of docs/results.md, byte by byte\n"


def test_comments_spaces_and_line_ends_are_not_values(toy):
    (toy / "train.txt").write_bytes(SAME_VALUES)
    (toy / "vali.txt").write_bytes(TEXT.replace(b"0.25", b"0.26"))
    (toy / "test.txt").unlink()
    (toy / "test.txt.gz").write_bytes(gzip.compress(TEXT))
    assert list(letor_files.check_letor_files(toy.parent)) == [
        "Toy: 1 of 3 files are those of docs/results.md, byte by byte",
        "Toy, Fold1, train: same values, other bytes (comments, spaces or line ends)",
        "Toy, Fold1, validation: other values",
    ]


def test_a_missing_file_is_an_error_and_a_missing_fold_is_reported(toy, monkeypatch):
    (toy / "test.txt").rename(toy / "test.csv")
    with pytest.raises(SystemExit, match="has no test file"):
        main(["data", str(toy.parent)])
    (toy / "test.csv").rename(toy / "test.txt")
    toy.rename(toy.parent / "Fold2")
    assert list(letor_files.check_letor_files(toy.parent))[1] == "Toy, Fold1, train: no such fold"


def test_every_file_has_its_own_hashes():
    hashes = letor_files._hashes()
    assert {name: len(known) for name, known in hashes.items()} == {"OHSUMED": 15, "MQ2008": 15}
    for known in hashes.values():
        assert len({known[fold, "train"] for fold in range(1, 6)}) == 5
        for fold in range(1, 6):  # a fold validates on the part that the one before tests on
            assert known[fold % 5 + 1, "validation"] == known[fold, "test"]


@pytest.mark.letor
def test_the_data_at_hand(letor_root):
    assert [line.split(" files")[0] for line in letor_files.check_letor_files(letor_root)] == [
        "MQ2008: 15 of 15",
        "OHSUMED: 15 of 15",
    ]
