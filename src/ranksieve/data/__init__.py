"""Data sets: judged documents, grouped by query."""
