"""What the commands do; ``cli`` only names their options."""
