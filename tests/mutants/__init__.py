"""Mutation testing: small changes to the source, each of which some test must notice."""
