"""load_letor_folds: layouts, names of files, widths, missing files."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from ranksieve.io.folds import Fold, deal_folds, load_letor_folds
from tests.conftest import random_dataset
from tests.refusals import refused_data, refused_parameter

LINES = "1 qid:{q} 1:0.5 2:1\n0 qid:{q} 1:0.25\n"


def make_folds(folder, names=("train.txt", "vali.txt", "test.txt"), numbers=(1, 2), line=LINES):
    for number in numbers:
        fold = folder / f"Fold{number}"
        fold.mkdir(parents=True)
        for k, name in enumerate(names):
            text = line.format(q=10 * number + k).encode()
            (fold / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return folder


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("train.txt", "valid.txt", "test.txt"),
        ("train.txt.gz", "validation.txt", "test.txt.gz"),
        ("trainingset.txt", "validationset.txt", "testset.txt"),
    ],
)
@pytest.mark.parametrize("level", ["", "QueryLevelNorm"])
def test_layouts(tmp_path, monkeypatch, names, level):
    make_folds(tmp_path / "DATA" / level, names, numbers=(2, 1, 10))
    by_root = load_letor_folds("DATA", root=tmp_path)
    by_path = load_letor_folds(tmp_path / "DATA")
    monkeypatch.setenv("RANKSIEVE_LETOR", str(tmp_path))
    by_variable = load_letor_folds("DATA")
    for folds in (by_root, by_path, by_variable):
        assert [fold.train.qid[0] for fold in folds] == [10, 20, 100]
        assert [part.qid[0] for part in folds[0]] == [10, 11, 12]
    train, valid, test = by_root[1]
    assert by_root[1] == Fold(train, valid, test)
    assert by_root[1].valid is valid


@pytest.mark.parametrize("sparse", [False, True])
def test_all_parts_have_the_largest_width(tmp_path, sparse):
    make_folds(tmp_path / "DATA")
    (tmp_path / "DATA" / "Fold2" / "test.txt").write_text("1 qid:5 4:7\n")
    folds = load_letor_folds(tmp_path / "DATA", sparse=sparse)
    parts = [part for fold in folds for part in fold]
    assert {part.X.shape[1] for part in parts} == {4}
    assert {part.feature_names for part in parts} == {("f1", "f2", "f3", "f4")}
    assert {sp.issparse(part.X) for part in parts} == {sparse}
    dense = parts[0].X.toarray() if sparse else parts[0].X
    np.testing.assert_array_equal(dense, [[0.5, 1, 0, 0], [0.25, 0, 0, 0]])


def test_read_options_are_passed_on(tmp_path):
    make_folds(tmp_path / "DATA", line="1 qid:1 1:NULL 2:3\n")
    assert load_letor_folds(tmp_path / "DATA", missing="zero", n_features=3)[0].test.X.tolist() == [[0, 3, 0]]
    with refused_data("train.txt", 1):
        load_letor_folds(tmp_path / "DATA", missing="error")


def sentence(*arguments, **options):
    with pytest.raises(FileNotFoundError) as caught:
        load_letor_folds(*arguments, **options)
    return str(caught.value)


def test_missing_folders_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSIEVE_LETOR", str(tmp_path / "nowhere"))
    assert sentence("DATA").startswith(f"{tmp_path / 'nowhere'}: ")
    monkeypatch.delenv("RANKSIEVE_LETOR")
    assert sentence("DATA").startswith("DATA: ")
    make_folds(tmp_path / "OHSUMED")
    assert sentence("MQ2008", root=tmp_path).startswith(f"{tmp_path / 'MQ2008'}: ")
    assert "OHSUMED" in sentence("MQ2008", root=tmp_path)
    (tmp_path / "EMPTY").mkdir()
    assert sentence("EMPTY", root=tmp_path).startswith(f"{tmp_path / 'EMPTY'}: ")
    (tmp_path / "OHSUMED" / "Fold2" / "vali.txt").unlink()
    assert "Fold2: has no validation file" in sentence("OHSUMED", root=tmp_path)


def test_folds_of_mq2008(letor_root):
    folds = load_letor_folds("MQ2008", root=letor_root)
    assert len(folds) == 5
    assert sum(fold.test.n_docs for fold in folds) == 15211
    assert sum(fold.test.n_queries for fold in folds) == 784
    for fold in folds:
        ids = [query for part in fold for query in part.queries.ids.tolist()]
        assert len(set(ids)) == len(ids) == 784


def test_every_query_is_tested_in_one_fold():
    data = random_dataset(n_queries=17)
    folds = deal_folds(data, 5, random_state=1)
    tested = [q for fold in folds for q in fold.test.queries.ids.tolist()]
    assert sorted(tested) == sorted(data.queries.ids.tolist())
    for fold in folds:
        parts = [set(part.queries.ids.tolist()) for part in fold]
        assert sum(map(len, parts)) == len(set().union(*parts)) == 17
    again = deal_folds(data, 5, random_state=1)
    np.testing.assert_array_equal(folds[0].train.X, again[0].train.X)
    with refused_parameter("n_folds", 18):
        deal_folds(data, 18)
