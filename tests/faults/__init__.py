"""Commands that are killed at random moments: what they leave, and whether the next run makes it good."""
