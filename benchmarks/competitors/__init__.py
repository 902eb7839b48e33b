"""The competitors. To add one, write a Competitor and add it to COMPETITORS."""

from __future__ import annotations

from benchmarks.competitors.base import Competitor
from benchmarks.competitors.catboost_ import CatBoost
from benchmarks.competitors.celer_ import CelerOnPairs
from benchmarks.competitors.fastrank_ import FastRankForest, FastRankLinear
from benchmarks.competitors.interpret_ import ExplainableBoosting
from benchmarks.competitors.liblinear_ranksvm import LiblinearRankSVM
from benchmarks.competitors.lightgbm_ import LightGBM
from benchmarks.competitors.linear_svc import LinearSVCOnPairs
from benchmarks.competitors.rank2plan_ import Rank2plan
from benchmarks.competitors.ranklib import RankLibLinear, RankLibTrees
from benchmarks.competitors.ranksieve_ import Ranksieve
from benchmarks.competitors.rlscore_ import RLScore
from benchmarks.competitors.scikit_learn import SvmlightReader, SvmlightWriter
from benchmarks.competitors.skglm_ import SkglmOnPairs
from benchmarks.competitors.skglm_groups import SkglmGroups
from benchmarks.competitors.sofia_ml import SofiaML
from benchmarks.competitors.svm_rank import SVMRank
from benchmarks.competitors.vowpal_wabbit import VowpalWabbit
from benchmarks.competitors.xgboost_ import XGBoostLinear, XGBoostTrees

RANKSIEVE = "ranksieve"
COMPETITORS: dict[str, Competitor] = {
    competitor.name: competitor
    for competitor in (
        Ranksieve(),
        LinearSVCOnPairs(),
        SkglmOnPairs(),
        SkglmGroups(),
        CelerOnPairs(),
        Rank2plan(),
        LiblinearRankSVM(),
        SVMRank(),
        XGBoostLinear(),
        XGBoostTrees(),
        LightGBM(),
        CatBoost(),
        ExplainableBoosting(),
        FastRankLinear(),
        FastRankForest(),
        RLScore(),
        VowpalWabbit(),
        SofiaML(),
        RankLibLinear(),
        RankLibTrees(),
        SvmlightReader(),
        SvmlightWriter(),
    )
}
