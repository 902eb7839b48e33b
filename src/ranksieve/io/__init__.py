"""File formats: LETOR text, parquet and frames, feature logs, judgements, TREC runs, feature tables."""
