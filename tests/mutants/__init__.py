"""Mutation testing: small changes to the source, each of which must make some test fail."""
