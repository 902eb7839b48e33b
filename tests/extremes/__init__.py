"""Extreme fits: random data, weights and parameters near the limits of floating-point numbers."""
