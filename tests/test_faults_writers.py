"""Writers that are killed, that are slow, that meet a full disk: what is there afterwards."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ranksieve._util import files as hidden
from ranksieve._util.files import atomic_write, outputs_noted

fcntl = pytest.importorskip("fcntl")

KILLED = """
import os, signal, sys
from ranksieve._util.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write("half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def hidden_beside(target):
    return set(target.parent.iterdir()) - {target}


def write(target, text):
    with atomic_write(target) as file:
        file.write(text)


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("old")
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert target.read_text() == "old"
        assert len(hidden_beside(target)) == 1
    write(target, "new")
    assert target.read_text() == "new"
    assert hidden_beside(target) == set()


def test_a_writer_at_work_is_left_alone(tmp_path):
    target = tmp_path / "model.json"
    with atomic_write(target) as slow:
        slow.write("slow")
        (held,) = hidden_beside(target)
        write(target, "quick")
        assert hidden_beside(target) == {held}
        assert target.read_text() == "quick"
    assert target.read_text() == "slow"
    assert hidden_beside(target) == set()


def test_what_only_looks_like_a_temporary_file_stays(tmp_path):
    target = tmp_path / "model.json"
    for name in (".model.json.tmp", ".model.json.0123456789abcdeg.tmp", ".other.json.tmp"):
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / ".model.json.0123456789abcdef.tmp")
    (tmp_path / ".model.json.fedcba9876543210.tmp").mkdir()
    before = set(tmp_path.iterdir())
    write(target, "new")
    assert hidden_beside(target) == before


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    target, locked = tmp_path / "model.json", []

    def flock(handle, how, real=fcntl.flock):
        if not locked:  # another process takes it for abandoned in this very moment
            for path in hidden_beside(target):
                path.unlink()
        locked.append(how)
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    write(target, "new")
    assert len(locked) == 2
    assert target.read_text() == "new"
    assert hidden_beside(target) == set()


def test_without_locks_age_tells_what_is_abandoned(tmp_path, monkeypatch):
    target = tmp_path / "model.json"
    young, old = (tmp_path / f".model.json.{letter * 16}.tmp" for letter in "ab")
    young.touch()
    old.touch()
    os.utime(old, (0, 0))
    monkeypatch.setattr(hidden, "fcntl", None)
    write(target, "new")
    assert target.read_text() == "new"
    assert hidden_beside(target) == {young}


def test_many_writers_of_one_file(tmp_path):
    target, texts = tmp_path / "file", [letter * 5_000 for letter in "abcd"]
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda k: write(target, texts[k % 4]), range(80)))
    assert target.read_text() in texts
    assert hidden_beside(target) == set()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; make room or choose another place"),
        (errno.EDQUOT, "the disk is full; make room or choose another place"),
        (errno.EFBIG, "cannot write there (File too large)"),
        (errno.EIO, "cannot write there (Input/output error)"),
    ],
)
def test_a_disk_that_fails_at_the_end_is_told_with_the_file(tmp_path, monkeypatch, number, words):
    def fail(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError) as caught:
        write(tmp_path / "file", "new")
    assert (caught.value.strerror, caught.value.filename) == (words, str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_in_the_midst_is_told_with_the_file(tmp_path):
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


def test_what_was_written_is_known_to_the_moment(tmp_path, monkeypatch):
    """A signal may come between any two steps: the outputs are those that are in their places."""
    first, second = tmp_path / "first", tmp_path / "second"
    with outputs_noted() as outputs:
        write(first, "1")
        monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write(second, "2")
        assert outputs.written == [str(first)]
    assert list(tmp_path.iterdir()) == [first]
