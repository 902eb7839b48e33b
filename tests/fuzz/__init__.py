"""Hostile inputs for every reader: ``python -m tests.fuzz`` draws them at random, the tests a fixed part."""
