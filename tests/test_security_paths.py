"""Names of data sets, methods and models, and links in output folders, do not lead to other folders."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import contextmanager

import pytest

import ranksieve as rs
from ranksieve._util.files import file_name_problem
from ranksieve.experiment.benching import bench
from ranksieve.export import EXPORTS, export_model
from ranksieve.io.folder import is_folder_dataset
from ranksieve.methods import METHODS
from ranksieve.model.linear import Curve, LinearModel, Term
from ranksieve.prepare import Preparation
from tests.hostile import CONTROLS, PATHS
from tests.refusals import refused_data, refused_parameter
from tests.test_cli import refused

MODEL = LinearModel((Term("f1", 0, 0.5),), 1)
CURVE = LinearModel((Term("f1", 0, 1.0, Curve((1.0,), (0.0, 2.0))),), 1)
NAMES = {"f1": "attribute(f1)"}


def all_files(folder):
    return sorted(path for path in folder.rglob("*"))


@pytest.mark.parametrize("name", ["shop", "MQ2008 (small)", "l0.5", "名", "x" * 200, "common", "console.log"])
def test_valid_file_names(name):
    assert file_name_problem(name) is None


@pytest.mark.parametrize("name", PATHS)
def test_invalid_file_names(name):
    assert file_name_problem(name)


def test_no_name_leads_out_of_the_results(synthetic_folds, tmp_path):
    out = tmp_path / "in" / "out"
    method = METHODS["ranksvm"]
    for name in PATHS:
        with refused_parameter("source", name) as info:
            bench({name: synthetic_folds}, ["ranksvm"], out=out)
        with refused_parameter("methods", name):
            bench({"toy": synthetic_folds}, {name: method}, out=out)
        assert len(str(info.value)) < 250
        assert str(info.value).isprintable()
    assert all_files(tmp_path) == []


def test_studies_is_a_reserved_name(synthetic_folds, tmp_path):
    with refused_parameter("methods", "studies"):
        bench({"toy": synthetic_folds}, {"studies": METHODS["ranksvm"]}, out=tmp_path)


PLANTED = ("toy", "toy/ranksvm", "toy/ranksvm/Fold1.jsonl", "toy/ranksvm/.Fold2.jsonl.lock")


@pytest.mark.parametrize("planted", PLANTED)
def test_links_that_wait_among_results_are_not_followed(planted, synthetic_folds, tmp_path):
    outside, link = tmp_path / "outside", tmp_path / "out" / planted
    link.parent.mkdir(parents=True)
    if planted.endswith(("jsonl", "lock")):
        outside.write_text("mine")
    else:
        outside.mkdir()
    link.symlink_to(outside)
    before = all_files(tmp_path)
    with pytest.raises(ValueError, match="link"):
        bench({"toy": synthetic_folds}, ["ranksvm"], out=tmp_path / "out")
    assert all_files(tmp_path) == before
    assert not outside.is_file() or outside.read_text() == "mine"


def test_the_folder_of_results_can_be_a_link(synthetic_folds, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    bench({"toy": synthetic_folds[:1]}, ["ranksvm"], out=tmp_path / "here", grid="fast")
    assert (tmp_path / "there" / "toy" / "ranksvm" / "Fold1.jsonl").is_file()


@pytest.mark.parametrize("target", EXPORTS)
def test_no_model_name_leads_out_of_the_folder(target, tmp_path):
    options = {"names": NAMES} if target.startswith("vespa") else {}
    for name in (*PATHS, *CONTROLS, "a b", "$(id)", "'; id; '", "[1-9]", "{a,b}"):
        with refused_parameter("name", name):
            export_model(MODEL, target, tmp_path / "in" / "out", name=name, **options)
    assert all_files(tmp_path) == []


@pytest.mark.parametrize("target", [target for target in EXPORTS if EXPORTS[target].folder])
def test_links_that_wait_in_the_folder_of_an_export_are_not_followed(target, tmp_path):
    model = MODEL if EXPORTS[target].lines else CURVE
    if target == "opensearch_hybrid":
        data = rs.Dataset([[0.0], [1.0], [2.0]], [0, 1, 2], [1, 1, 1])
        by_range = Preparation.learn(data, "query_min_max", "keep")
        model = LinearModel(MODEL.terms, 1, 0.0, by_range.of(["f1"]))
    elif target == "redis":
        model = LinearModel((*MODEL.terms, Term("f2", 1, 0.5)), 2)
    options = {"names": NAMES} if target.startswith("vespa") else {}
    names = [file.name for file in export_model(model, target, tmp_path / "first", **options).files]
    (tmp_path / "mine.txt").write_text("mine")
    for name in names:
        folder = tmp_path / f"with {name}"
        folder.mkdir()
        (folder / name).symlink_to(tmp_path / "mine.txt")
        with pytest.raises(OSError, match="link"):
            export_model(model, target, folder, **options)
        assert [path.name for path in folder.iterdir()] == [name]
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_link_that_waits_for_names_of_features_is_not_followed(tmp_path):
    data = rs.make_ranking(
        n_queries=4, n_features=2, n_informative=1, random_state=0, feature_names=["a", "b"]
    )
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "train.txt.names").symlink_to(tmp_path / "mine.txt")
    with refused_data("train.txt.names"):
        rs.io.write_letor(data, tmp_path / "train.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "train.txt").exists()


@pytest.mark.parametrize("name", ["../mine.bin", "/etc/passwd", "a\0b", "CON"])
def test_a_header_names_no_files_outside_its_folder(name, tmp_path):
    data = rs.make_ranking(n_queries=4, n_features=3, n_informative=2, random_state=0)
    rs.write_dataset(data, tmp_path / "data.ranksieve")
    header = tmp_path / "data.ranksieve" / "dataset.json"
    content = json.loads(header.read_text())
    content["files"][name] = {"bytes": 1, "edges": 0}
    header.write_text(json.dumps(content))
    with refused_data("data.ranksieve") as info:
        rs.open_dataset(tmp_path / "data.ranksieve")
    assert "not part of a data set" in info.value.reason


@contextmanager
def time_limit(seconds):
    """Raise TimeoutError in a blocked read."""

    def end(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["dataset.json", "features.bin", "labels.bin"])
@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize("listed", [True, False])
def test_a_pipe_or_device_in_a_folder_is_not_read(name, kind, listed, tmp_path):
    folder = tmp_path / "d.ranksieve"
    rs.write_dataset(rs.make_ranking(n_queries=4, n_features=2, n_informative=1, random_state=0), folder)
    header = json.loads((folder / "dataset.json").read_text())
    if not listed:
        header["files"].pop(name, None)
    elif name in header["files"]:
        header["files"][name]["bytes"] = 0
    (folder / "dataset.json").write_text(json.dumps(header))
    (folder / name).unlink()
    os.mkfifo(tmp_path / "fifo")
    (folder / name).symlink_to(tmp_path / "fifo" if kind == "fifo" else os.devnull)
    pattern = "plain file" if listed or name == "dataset.json" else "does not list|has 0 entries"
    with time_limit(10), refused_data(folder / name if name == "dataset.json" else folder) as info:
        rs.open_dataset(folder)
    assert re.search(pattern, info.value.reason)
    assert name in str(info.value)
    with time_limit(10):
        assert is_folder_dataset(folder) == (name != "dataset.json")


def test_the_command_line_refuses_bad_names_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MODEL.save("model.json")
    message = refused("export", "model.json", "--to", "python", "-o", "m.py", "--name", "../up")
    assert "../up" in message
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
