"""Model selection: families of candidates, cross-validation, the choice within a budget, scorecards."""
