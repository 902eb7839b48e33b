"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import settings

from ranksieve.data.dataset import Dataset
from ranksieve.io.folds import Fold, deal_folds
from ranksieve.synthetic import make_ranking
from tests.tiers import full, is_about_another_method

# The same examples on every machine, whatever an earlier run left behind and however busy it is.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")

QUICK = {"n_alphas": 8, "metric": "ndcg@5", "profile": "standard"}
COSTS = {  # of the features of ``halves``
    "features": {"f1": 5.0, "f2": 1.0, "f3": 0.0, "f4": 2.0, "f5": 0.5},
    "groups": {"calls": {"cost": 3.0, "features": ["f6", "f7", "f8"]}},
}
ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items):
    for item in items:
        if is_about_another_method(item):
            item.add_marker(full)


@pytest.fixture(scope="session")
def letor_root() -> Path:
    """Where the LETOR data are; skips when they are not there."""
    root = Path(os.environ.get("RANKSIEVE_LETOR", ROOT.parent / "shared" / "data"))
    if not (root / "OHSUMED" / "Fold1" / "train.txt").exists():
        pytest.skip(f"no LETOR data at {root}: set RANKSIEVE_LETOR")
    return root


def random_dataset(seed=0, n_queries=6, n_features=5, longest=14, n_levels=3):
    """Small data with a linear signal, mixed list lengths and some one-document queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    X = rng.normal(size=(len(qid), n_features))
    truth = rng.normal(size=n_features) * (np.arange(n_features) < 3)
    noisy = X @ truth + rng.normal(size=len(qid))
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_levels + 1)[1:-1])).astype(float)
    return Dataset(X, y, qid)


@pytest.fixture
def small() -> Dataset:
    return random_dataset()


@pytest.fixture(scope="session")
def synthetic_folds() -> list[Fold]:
    return deal_folds(make_ranking(60, 15, 4, docs_per_query=(12, 20), random_state=3), 3)


@pytest.fixture
def small_blocks(monkeypatch):
    """Small data make several blocks, and threads share them."""
    monkeypatch.setattr("ranksieve._parallel.MIN_BLOCK_ROWS", 256)
    monkeypatch.setattr("ranksieve._parallel.MIN_BLOCKS_PER_THREAD", 1)


@pytest.fixture(scope="session")
def shop_results(tmp_path_factory, worker_id):
    """Two small data sets in one folder: one with several kinds of methods, all studies and odd names.

    Processes of tests share it: whoever comes second finds every fit done.
    """
    from papers.bench import bench
    from papers.studies import STUDIES

    names = ["<b>price</b>", "clicks & views", *(f"f{j}" for j in range(3, 12)), "constructor"]
    shop = make_ranking(45, 12, 3, docs_per_query=(10, 14), random_state=2, feature_names=names)
    corner = make_ranking(24, 6, 2, docs_per_query=(10, 12), random_state=4)
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "shop"
    methods = ["sparseranker", "fenchelrank", "ranksvm-log", "ranksvm", "rankboost"]
    with FileLock(f"{folder}.lock"):
        bench({"shop": deal_folds(shop, 3)[:2]}, methods, out=folder, grid="fast", studies=list(STUDIES))
        return bench({"corner": deal_folds(corner, 3)}, ["sparseranker", "ranksvm"], out=folder, grid="fast")


@pytest.fixture(scope="session")
def halves() -> tuple[Dataset, Dataset]:
    data = random_dataset(seed=41, n_queries=40, n_features=8, longest=20)
    even = np.arange(data.n_queries) % 2 == 0
    return data.select_queries(even), data.select_queries(~even)
