"""Files: checks of names, JSON, atomic writes."""
