"""Atomic writes: complete files or none, permissions, links, pipes and devices."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ranksieve._util.files import atomic_write, destination, is_standard_output


def test_text_and_bytes(tmp_path):
    with atomic_write(tmp_path / "text") as file:
        file.write("äö\n")
    assert (tmp_path / "text").read_bytes() == "äö\n".encode()
    with atomic_write(tmp_path / "bytes", "wb") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"


def test_the_file_appears_only_at_the_end(tmp_path):
    with atomic_write(tmp_path / "new") as file:
        file.write("half")
        file.flush()
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new").read_text() == "half"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_file(tmp_path, error):
    target = tmp_path / "old"
    target.write_text("old")

    def fail_halfway():
        with atomic_write(target) as file:
            file.write("new")
            raise error

    with pytest.raises(error):
        fail_halfway()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "file") as file:
            file.write("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_missing_folder(tmp_path):
    with pytest.raises(OSError, match="cannot write there") as caught, atomic_write(tmp_path / "no" / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "file")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o777])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    target = tmp_path / "file"
    target.write_text("old")
    target.chmod(mode)
    with atomic_write(target) as file:
        (hidden,) = set(tmp_path.iterdir()) - {target}
        assert stat.S_IMODE(hidden.stat().st_mode) == mode
        file.write("new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_the_umask_of_the_process_is_never_changed(tmp_path, monkeypatch):
    """The umask is shared by all threads: changing it would affect new files of other threads."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail(f"the umask was set to {mask:o}"))
    for _ in ("a new file", "an old file"):
        with atomic_write(tmp_path / "file") as file:
            file.write("x")


@pytest.mark.parametrize("there", [True, False])
def test_the_target_of_a_link_is_replaced(tmp_path, there):
    for folder in ("links", "files"):
        (tmp_path / folder).mkdir()
    target, link = tmp_path / "files" / "model", tmp_path / "links" / "latest"
    link.symlink_to("../links/hop")
    (tmp_path / "links" / "hop").symlink_to(target)
    if there:
        target.write_text("old")
    with atomic_write(link) as file:
        file.write("new")
        assert (
            len(list(target.parent.iterdir())) == 1 + there
        )  # the hidden file is in the folder of the target
        assert not there or target.read_text() == "old"
    assert link.is_symlink()
    assert not target.is_symlink()
    assert target.read_text() == link.read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["files", "hop", "latest", "links", "model"]


def test_circular_links(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="cannot write there") as caught, atomic_write(tmp_path / "a"):
        pass
    assert caught.value.filename == str(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


# Devices, pipes and open files. No test writes to /dev/stdout: a bug could replace it for the whole system.


@pytest.fixture
def received(tmp_path):
    """The content that a reader gets from the named pipe ``tmp_path / "pipe"``."""
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as reader:
        yield reader.submit((tmp_path / "pipe").read_bytes)


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_a_pipe_is_written_to_and_not_replaced(tmp_path, name, received):
    (tmp_path / "link").symlink_to("pipe")
    with atomic_write(tmp_path / name) as file:
        file.write("ä\r\n" * 100_000)
    assert received.result(timeout=10) == "ä\r\n".encode() * 100_000
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_written_to_a_pipe_after_an_exception(tmp_path, received):
    def fail_halfway():
        with atomic_write(tmp_path / "pipe", "wb") as file:
            file.write(b"half" * 100_000)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert received.result(timeout=10) == b""


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    with atomic_write(tmp_path / "link") as file:
        file.write("x")
    assert (tmp_path / "link").is_symlink()
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"])
def test_an_open_file_is_written_at_its_position(tmp_path, folder):
    """As with the shell's ``> file`` and ``>> file``: not truncated, overwritten or replaced."""
    target = tmp_path / "file"
    target.write_text("before\n")
    with target.open("a") as opened:
        (tmp_path / "link").symlink_to(f"{folder}/{opened.fileno()}")
        with atomic_write(tmp_path / "link") as file:
            file.write("written\n")
        opened.write("after\n")
        assert os.path.samestat(os.fstat(opened.fileno()), target.stat())
    assert target.read_text() == "before\nwritten\nafter\n"
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_standard_output_is_recognised_by_all_its_names(tmp_path):
    (tmp_path / "link").symlink_to("/dev/stdout")
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", tmp_path / "link"):
        there = destination(path)
        assert (there.descriptor, there.replaceable) == (1, False)
        assert is_standard_output(path)
    for path in ("/dev/stdin", "/dev/null", tmp_path / "file"):
        assert not is_standard_output(path)


def test_only_files_are_replaced(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    assert destination(tmp_path / "file").replaceable
    assert destination(tmp_path / "new").replaceable
    assert not destination(tmp_path / "pipe").replaceable
    assert not destination("/dev/null").replaceable


def test_a_closed_descriptor(tmp_path):
    free = os.open(os.devnull, os.O_WRONLY)
    os.close(free)
    with pytest.raises(OSError, match="cannot write there") as caught, atomic_write(f"/dev/fd/{free}"):
        pass
    assert caught.value.filename == f"/dev/fd/{free}"


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(OSError, match="it is a folder"), atomic_write(path):
            pass
