"""Commands killed at random moments: remaining files, and recovery by the next run."""
