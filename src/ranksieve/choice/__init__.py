"""From data to the chosen candidate: budgets, families of candidates, held-out queries, scorecards."""
