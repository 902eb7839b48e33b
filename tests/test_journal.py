"""Journals: complete and incomplete lines, damaged files, other versions, a full disk."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from filelock import FileLock, Timeout

from ranksieve._util.files import to_plain
from ranksieve.experiment.journal import Journal, check_resumable, read_journal, write_lock
from tests.refusals import refused_data

IDENTITY = {"method": "a", "grid": [{"C": 1.0}]}


def make(path, identity=IDENTITY):
    return Journal(path, identity, {"title": "A"})


def begin(path):
    """A journal with one row."""
    make(path).append({"kind": "fit"})


def test_round_trip_of_rows(tmp_path):
    path = tmp_path / "deep" / "Fold1.jsonl"
    journal = make(path)
    journal.append({"kind": "fit", "weights": np.array([0.1, 1 / 3]), "gap": np.nan, "tol": np.inf})
    header, rows = read_journal(path)
    assert header["identity"] == IDENTITY
    assert rows == journal.rows
    assert rows == [{"kind": "fit", "weights": [0.1, 1 / 3], "gap": None, "tol": "inf"}]
    assert make(path).rows == rows


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_an_incomplete_line_is_removed_and_written_again(tmp_path, cut):
    path = tmp_path / "Fold1.jsonl"
    journal = make(path)
    journal.append({"kind": "fit", "point": 0})
    complete = path.read_bytes()
    journal.append({"kind": "fit", "point": 1, "value": 0.25})
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_journal(path)[1] == [{"kind": "fit", "point": 0}]
    again = make(path)
    assert path.read_bytes() == complete
    again.append({"kind": "fit", "point": 1, "value": 0.25})
    assert [row["point"] for row in read_journal(path)[1]] == [0, 1]


def test_an_incomplete_header_is_rewritten(tmp_path):
    path = tmp_path / "Fold1.jsonl"
    path.write_text('{"kind": "head')
    with refused_data(path):
        read_journal(path)
    make(path).append({"kind": "fit"})
    assert read_journal(path)[1] == [{"kind": "fit"}]


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "Fold1.jsonl"
    make(path).append({"kind": "fit"})
    path.write_bytes(path.read_bytes() + b"{broken}\n")
    with refused_data(path, 3):
        read_journal(path)


@pytest.mark.parametrize("line", ["5", "[]", "null", "{}", '{"point": 1}'])
def test_a_line_that_is_not_a_row_is_named(tmp_path, line):
    path = tmp_path / "Fold1.jsonl"
    begin(path)
    path.write_text(path.read_text() + line + "\n")
    for read in (read_journal, make, lambda path: check_resumable(path, IDENTITY, path.parent)):
        with refused_data(path, 3) as info:
            read(path)
        assert "not a row" in info.value.reason


@pytest.mark.parametrize("lacking", ["version", "identity", "notes"])
def test_an_incomplete_header_is_named(tmp_path, lacking):
    path = tmp_path / "Fold1.jsonl"
    begin(path)
    header = json.loads(path.read_text().splitlines()[0])
    del header[lacking]
    path.write_text(json.dumps(header) + "\n")
    with refused_data(path, 1) as info:
        make(path)
    assert f"missing required field '{lacking}'" in info.value.reason


def test_a_file_has_one_writer_at_a_time(tmp_path):
    path = tmp_path / "deep" / "Fold1.jsonl"
    other = FileLock(path.with_name(f".{path.name}.lock"))
    with write_lock(path), pytest.raises(Timeout):
        other.acquire(timeout=0)
    with other.acquire(timeout=0):
        assert other.is_locked


def test_other_options_and_other_versions_are_refused(tmp_path):
    path = tmp_path / "Fold1.jsonl"
    begin(path)
    with refused_data(path) as info:
        make(path, {**IDENTITY, "grid": [{"C": 2.0}]})
    assert 'grid ([{"C": 1.0}])' in info.value.reason
    first, row = path.read_text().splitlines()
    header = json.loads(first)
    path.write_text(json.dumps({**header, "version": "0.0.1"}) + "\n" + row + "\n")
    with refused_data(path) as info:
        make(path)
    assert "0.0.1" in info.value.reason
    path.write_text(json.dumps({**header, "format_version": 99}) + "\n")
    with refused_data(path, 1) as info:
        read_journal(path)
    assert "version 99" in info.value.reason
    path.write_text('{"something": "else"}\n')
    with refused_data(path, 1) as info:
        read_journal(path)
    assert "not a results file" in info.value.reason


def test_a_journal_without_rows_has_no_file(tmp_path):
    make(tmp_path / "Fold1.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_header_without_rows_is_replaced(tmp_path):
    path, other = tmp_path / "Fold1.jsonl", {**IDENTITY, "profile": "trec"}
    begin(path)
    header = path.read_text().splitlines(keepends=True)[0]
    path.write_text(header)
    check_resumable(path, other, path.parent)
    make(path, other).append({"kind": "fit"})
    assert read_journal(path)[0]["identity"] == other


@pytest.mark.parametrize(
    "line", ['{"something": "else"}', '{"format": "ranksieve-results", "format_version": 99}']
)
def test_lines_of_other_formats_are_never_removed(tmp_path, line):
    path = tmp_path / "Fold1.jsonl"
    path.write_text(line + "\n")
    for touch in (make, lambda path: check_resumable(path, IDENTITY, path.parent)):
        with refused_data(path, 1):
            touch(path)
    assert path.read_text() == line + "\n"


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from ranksieve.experiment.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path(sys.argv[1]), {"a": 1}, {})
journal.append({"kind": "fit", "point": 0})
resource.setrlimit(resource.RLIMIT_FSIZE, (Path(sys.argv[1]).stat().st_size + 30,) * 2)
try:
    journal.append({"kind": "fit", "point": 1, "text": "x" * 1000})
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.full
def test_a_full_disk_is_reported_and_rows_are_kept(tmp_path):
    path = tmp_path / "Fold1.jsonl"
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert "finished fits are kept; free disk space and run again" in run.stdout
    assert path.read_bytes()[-1:] != b"\n"  # a part of the line was written
    assert read_journal(path)[1] == [{"kind": "fit", "point": 0}]


def test_to_plain_keeps_floats_exactly():
    values = np.random.default_rng(0).normal(size=100)
    assert json.loads(json.dumps(to_plain(values))) == values.tolist()
