"""Exported models, scored by the engines themselves (`make test-engines`)."""
