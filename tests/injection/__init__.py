"""Random models with hostile names, exported to every target and read back: ``python -m tests.injection``."""
