"""Data sets: grouping by query, LETOR files, frames, folds, synthetic data."""

from ranksieve.data.dataset import Dataset
from ranksieve.data.letor import read_letor, write_letor
from ranksieve.data.missing import fill_missing
