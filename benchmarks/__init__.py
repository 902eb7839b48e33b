"""Benchmarks: each file measures one claim against a peer in the same run and keeps the result as data."""
