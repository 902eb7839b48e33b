"""Data sets: grouping by query, LETOR files, frames, folds, synthetic data."""

from ranksieve.data.dataset import Dataset
from ranksieve.data.describe import Description, describe
from ranksieve.data.folds import Fold, load_letor_folds
from ranksieve.data.frames import from_frame, read_parquet, write_parquet
from ranksieve.data.letor import read_letor, write_letor
from ranksieve.data.load import read_dataset, write_dataset
from ranksieve.data.missing import MISSING_POLICIES, fill_missing
from ranksieve.data.queries import Queries, group_queries
from ranksieve.data.stream import stream_letor
from ranksieve.data.synthetic import make_ranking
from ranksieve.data.text_column import TextColumn

__all__ = [
    "MISSING_POLICIES",
    "Dataset",
    "Description",
    "Fold",
    "Queries",
    "TextColumn",
    "describe",
    "fill_missing",
    "from_frame",
    "group_queries",
    "load_letor_folds",
    "make_ranking",
    "read_dataset",
    "read_letor",
    "read_parquet",
    "stream_letor",
    "write_dataset",
    "write_letor",
    "write_parquet",
]
