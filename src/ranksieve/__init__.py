"""Sparse linear learning to rank."""
