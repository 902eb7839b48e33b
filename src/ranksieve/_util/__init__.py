"""Small utilities: atomic writes, JSON values, lookup by name, optional packages."""
