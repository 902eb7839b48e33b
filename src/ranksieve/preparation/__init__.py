"""Preparation of features: missing values and normalisation, learned on training data, kept by the model."""
