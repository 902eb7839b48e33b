"""Sparse learning to rank with certificates."""
