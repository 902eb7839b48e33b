"""Devices without a GPU: messages, and that PyTorch is not imported before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gpu import RESULTS, table
from typer.testing import CliRunner

import ranksieve as rs
from ranksieve.cli import app
from ranksieve.gpu.matrix import as_host_array, check_memory, in_gigabytes, is_on_gpu, round_like_gpu
from tests.refusals import refused_parameter


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


def test_without_pytorch_one_sentence(no_torch, small):
    model = rs.RankSVM().fit(small).to_model()
    calls = [
        lambda: rs.sparse_path(small, device="cuda"),
        lambda: rs.SparseRanker(device="cuda").fit(small),
        lambda: rs.RankSVM(device="cuda:1").fit(small),
        lambda: rs.SparseRankSVM(device="cuda").fit(small),
        lambda: rs.FenchelRank(device="cuda").fit(small),
        lambda: model.predict(small, device="cuda"),
    ]
    for call in calls:
        with refused_parameter("device") as info:
            call()
        assert ".[gpu]" in info.value.reason


def test_on_the_command_line(no_torch, small, tmp_path):
    rs.io.write_letor(small, tmp_path / "train.txt")
    train = str(tmp_path / "train.txt")
    for command in (["path", train], ["fit", train, "-o", str(tmp_path / "m.json")]):
        done = CliRunner().invoke(app, [*command, "--device", "cuda"])
        assert done.exit_code == 2
        assert "run pip install" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.json").exists()
    refused = CliRunner().invoke(
        app, ["fit", train, "--method", "listnet", "--device", "cuda", "-o", "m.json"]
    )
    assert "--device" in refused.stderr
    assert "listnet" in refused.stderr


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", 1])
def test_unknown_devices(device, small):
    with refused_parameter("device", device):
        rs.RankSVM(device=device).fit(small)
    with refused_parameter("device", device):
        rs.sparse_path(small, device=device)


def test_nothing_loads_pytorch():
    code = "import sys, ranksieve, ranksieve.cli, ranksieve.objective; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rounded_features_keep_differences_far_from_zero(small):
    X = small.X.copy()
    X[:, 2] = 1.7e9 + 1e-3 * X[:, 2]
    seen = round_like_gpu(small.replace_features(X)).X
    assert seen.dtype == np.float32
    first = small.queries.of_rows(X[small.queries.order[small.queries.offsets[:-1]], 2])
    np.testing.assert_allclose(seen[:, 2], X[:, 2] - first, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(seen[:, 0], X[:, 0].astype(np.float32))


def test_small_words():
    assert in_gigabytes(2_180_000_000) == "2.18 GB"
    assert not is_on_gpu(np.zeros(3))
    assert not is_on_gpu([1.0])
    np.testing.assert_array_equal(as_host_array([1.0, 2.0]), [1.0, 2.0])

    class Processor:
        type = "cpu"

    check_memory(Processor(), {"features": 10**18})


def test_the_page_shows_what_was_measured():
    page = (Path(__file__).parent.parent / "docs" / "gpu.md").read_text(encoding="utf-8")
    assert table(json.loads(RESULTS.read_text(encoding="utf-8"))) in page
