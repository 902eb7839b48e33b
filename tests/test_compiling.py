"""The cache of compiled functions."""

from __future__ import annotations

import pytest

from ranksieve.kernels import compiling
from ranksieve.kernels.compiling import KernelFiles
from ranksieve.kernels.linear import weighted_sums


class Slow(KernelFiles):
    """Cache files of a process that is interrupted by another one after each step."""

    def __init__(self, *args, between) -> None:
        super().__init__(*args)
        self.between = between

    def _load_index(self):
        index = super()._load_index()
        self.between()
        return index

    def _save_index(self, overloads):
        self.between()
        super()._save_index(overloads)
        self.between()

    def _save_data(self, name, data):
        self.between()
        super()._save_data(name, data)
        self.between()


@pytest.mark.parametrize("step", range(6))
def test_concurrent_processes_do_not_mix_up_compiled_versions(tmp_path, step):
    files = (str(tmp_path), "function", "stamp")
    other, steps = KernelFiles(*files), iter(range(10))

    def between() -> None:
        if next(steps) == step:
            other.save("floats", "code for floats")

    Slow(*files, between=between).save("integers", "code for integers")
    loaded = {key: KernelFiles(*files).load(key) for key in ("floats", "integers")}
    assert loaded["floats"] in (None, "code for floats")
    assert loaded["integers"] in (None, "code for integers")
    assert set(loaded.values()) != {None}


def test_files_of_another_source_are_ignored(tmp_path):
    KernelFiles(str(tmp_path), "function", "old").save("floats", "old code")
    new = KernelFiles(str(tmp_path), "function", "new")
    assert new.load("floats") is None
    new.save("floats", "new code")
    assert new.load("floats") == "new code"
    assert len(list(tmp_path.iterdir())) == 2


def test_kernels_use_the_cache():
    assert isinstance(weighted_sums._cache._cache_file, KernelFiles)


def test_an_index_with_a_type_of_another_version_is_ignored(tmp_path, monkeypatch):
    files = (str(tmp_path), "function", "stamp")
    monkeypatch.setattr(
        compiling, "Gone", type("Gone", (), {"__module__": compiling.__name__}), raising=False
    )
    KernelFiles(*files).save(compiling.Gone, "code")
    monkeypatch.delattr(compiling, "Gone")
    assert KernelFiles(*files).load("floats") is None
    KernelFiles(*files).save("floats", "code for floats")
    assert KernelFiles(*files).load("floats") == "code for floats"
