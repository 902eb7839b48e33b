"""Data sets: grouping by query, LETOR files, frames, folds, synthetic data."""

from ranksieve.data.cost_files import read_costs
from ranksieve.data.costs import FeatureCosts
from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import Description, describe
from ranksieve.data.folds import Fold, deal_folds, find_collections, load_letor_folds
from ranksieve.data.frames import from_frame, read_parquet, to_frame, write_parquet
from ranksieve.data.judgements import Judgements, read_judgements
from ranksieve.data.letor import read_letor, write_letor
from ranksieve.data.load import read_dataset, write_dataset
from ranksieve.data.ltr_log import read_ltr_log
from ranksieve.data.missing import MISSING_POLICIES, fill_missing
from ranksieve.data.queries import Queries, group_queries
from ranksieve.data.shop import make_shop, shop_costs
from ranksieve.data.signs import read_signs
from ranksieve.data.stream import stream_letor
from ranksieve.data.synthetic import make_ranking
from ranksieve.data.text_column import TextColumn
from ranksieve.data.trec import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "MISSING_POLICIES",
    "Dataset",
    "Description",
    "FeatureCosts",
    "Fold",
    "Judgements",
    "Queries",
    "TextColumn",
    "deal_folds",
    "describe",
    "fill_missing",
    "find_collections",
    "from_frame",
    "group_queries",
    "load_letor_folds",
    "make_ranking",
    "make_shop",
    "read_costs",
    "read_dataset",
    "read_judgements",
    "read_letor",
    "read_ltr_log",
    "read_parquet",
    "read_qrels",
    "read_run",
    "read_signs",
    "shop_costs",
    "stream_letor",
    "to_frame",
    "write_dataset",
    "write_letor",
    "write_parquet",
    "write_qrels",
    "write_run",
]
