"""Benchmarks against other software, and studies of claims in the documentation."""
