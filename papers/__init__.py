"""Reproduction of papers on sparse learning to rank: published numbers, claims, studies; not installed."""
