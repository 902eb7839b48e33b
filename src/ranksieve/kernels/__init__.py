"""Inner loops compiled by numba; they take and fill NumPy arrays."""
