"""Files after interrupted, concurrent and failing writes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranksieve._util.files import atomic_write

KILLED = """
import os, signal, sys
from ranksieve._util.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write("half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def hidden_files_of(target):
    return set(target.parent.iterdir()) - {target}


def write(target, text):
    with atomic_write(target) as file:
        file.write(text)


def test_a_killed_writer_leaves_the_old_file_intact(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert target.read_text() == "old"
    assert all(path.name.startswith(".model.json.") for path in hidden_files_of(target))
    write(target, "new")
    assert target.read_text() == "new"


def test_concurrent_writers_do_not_interfere(tmp_path):
    target = tmp_path / "model.json"
    with atomic_write(target) as slow:
        slow.write("slow")
        (hidden,) = hidden_files_of(target)
        write(target, "quick")
        assert hidden_files_of(target) == {hidden}
        assert target.read_text() == "quick"
    assert target.read_text() == "slow"
    assert hidden_files_of(target) == set()


def test_many_writers_of_one_file(tmp_path):
    target, texts = tmp_path / "file", [letter * 5_000 for letter in "abcd"]
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda k: write(target, texts[k % 4]), range(80)))
    assert target.read_text() in texts
    assert hidden_files_of(target) == set()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; free some space or choose another folder"),
        (errno.EDQUOT, "the disk is full; free some space or choose another folder"),
        (errno.EFBIG, "cannot write there (File too large)"),
        (errno.EIO, "cannot write there (Input/output error)"),
    ],
)
def test_disk_errors_at_the_end_name_the_file(tmp_path, monkeypatch, number, words):
    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError) as caught:
        write(tmp_path / "file", "new")
    assert (caught.value.strerror, caught.value.filename) == (words, str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_while_writing_names_the_file(tmp_path):
    def fill():
        with atomic_write(tmp_path / "file"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="the disk is full") as caught:
        fill()
    assert caught.value.filename == str(tmp_path / "file")


def test_errors_of_other_files_keep_their_name(tmp_path):
    def read():
        with atomic_write(tmp_path / "file"):
            (tmp_path / "input").read_text()

    with pytest.raises(FileNotFoundError) as caught:
        read()
    assert caught.value.filename == str(tmp_path / "input")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_protected_folder(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number), ".hidden")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="cannot write there") as caught:
        write(tmp_path / "file", "new")
    assert caught.value.filename == str(tmp_path / "file")
