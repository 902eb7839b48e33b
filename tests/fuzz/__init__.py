"""Hostile inputs for every reader: ``python -m tests.fuzz`` tries random ones, the tests a fixed sample."""
