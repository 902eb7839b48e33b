"""Synthetic data: rankings with planted features, and a made-up shop."""
