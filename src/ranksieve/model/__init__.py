"""Models: weights and preparation of features, model files, models of other programs."""
