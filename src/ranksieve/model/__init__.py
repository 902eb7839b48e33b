"""Models: weights of features and how to prepare them, their files, models of other programs."""
