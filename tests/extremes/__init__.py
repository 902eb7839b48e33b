"""Extreme fits: random data, weights and parameters at the ends of what numbers can be."""
