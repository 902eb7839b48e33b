"""A file is written whole or not at all."""

import os
import stat

import pytest

from ranksieve.data.atomic import atomic_write


def test_text_and_bytes(tmp_path):
    with atomic_write(tmp_path / "text") as file:
        file.write("äö\n")
    assert (tmp_path / "text").read_bytes() == "äö\n".encode()
    with atomic_write(tmp_path / "bytes", "wb") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"


def test_nothing_is_there_before_the_end(tmp_path):
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


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match="cannot write there") as caught, atomic_write(tmp_path / "no" / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "file")
