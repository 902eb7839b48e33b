"""Data sets: grouping by query, LETOR files, frames, folds, synthetic data."""
