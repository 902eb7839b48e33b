"""Model files: ours, and those of RankLib, fastrank, LightGBM and XGBoost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import ranksieve as rs
from ranksieve.model.boosted import BoostedModel
from tests.fuzz.targets.base import Files
from tests.test_booster_models import XGBOOST, trained

DATA = rs.make_ranking(n_queries=8, n_features=6, n_informative=2, docs_per_query=(6, 8), random_state=1)
MATRIX = np.round(DATA.X[:5], 2)
TREES = b"""## LambdaMART
## No. of trees = 1

<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature> 2 </feature>
			<threshold> 0.5 </threshold>
			<split pos="left"><output> -1.0 </output></split>
			<split pos="right"><output> 1.5 </output></split>
		</split>
	</tree>
</ensemble>
"""
NETWORK = b"## RankNet\n## x\n1 2\n1\n2\n0 0 0.1 0.2\n0 1 0.3 0.4\n0 2 0.5 0.6 0.7\n1 0 0.8\n1 1 0.9\n"
SPLIT = {"FeatureSplit": {"fid": 1, "split": 0.5, "lhs": {"LeafNode": -1.0}, "rhs": {"LeafNode": 2.0}}}
FASTRANK = [
    {"Linear": {"weights": [0.0, 1.0, -2.0, 0.5, 0.0, 0.0, 1.0]}},
    {"SingleFeature": {"fid": 2, "dir": -1.0}},
    {"DecisionTree": SPLIT},
    {
        "Ensemble": {
            "weights": [0.5, 2.0],
            "models": [{"DecisionTree": SPLIT}, {"SingleFeature": {"fid": 2, "dir": 1}}],
        }
    },
]


def _scores(model: Any, path: Path) -> None:
    with np.errstate(all="ignore"):
        scores = model.predict(MATRIX)
    assert scores.shape == (len(MATRIX),)


def _comes_back(model: Any, path: Path) -> None:
    if isinstance(model, rs.LinearModel | BoostedModel):
        first = json.dumps(model.to_dict())
        model.save(path)
        assert json.dumps(rs.read_model(path).to_dict()) == first
    _scores(model, path)


def _any_model(path: Path) -> Any:
    return rs.read_model(path, DATA.feature_names)


def _of_arrays(path: Path) -> Any:
    return rs.read_model(path, DATA.feature_names, 1)


OURS = Files(
    "model.json",
    _any_model,
    _comes_back,
    values=[
        rs.SparseRanker(max_features=3, n_alphas=5, cv=2).fit(DATA).to_model().to_dict(),
        rs.RankSVM(missing="query_min").fit(DATA).to_model().to_dict(),
        rs.baselines.RankBoost(n_rounds=3).fit(DATA).to_model().to_dict(),
    ],
)
RANKLIB = Files(
    "ranklib.txt",
    _any_model,
    _scores,
    examples=[
        b"## Coordinate Ascent\n## Restart = 5\n1:0.7 3:-0.2 6:0.1\n",
        b"## Linear Regression\n## Lambda = 1.0E-10\n0:0.5 1:0.5 2:-1.0 \n",
        b"## RankBoost\n## Iteration = 3\n2:0.1:0.5 1:-0.3:0.25 2:1.0:2.0\n",
        TREES,
        TREES.replace(b"LambdaMART", b"Random Forests"),
        NETWORK,
    ],
)
FASTRANK_MODELS = Files("fastrank.json", _of_arrays, _scores, values=FASTRANK)
LIGHTGBM = Files(
    "lightgbm.txt",
    rs.read_model,
    lambda model, path: model.predict(MATRIX[:, :4]),
    examples=[trained().model_to_string().encode()],
)
XGBOOST_JSON = Files(
    "xgboost.json",
    rs.read_model,
    lambda model, path: model.predict(MATRIX[:, :4]),
    values=[XGBOOST],
)
