"""Solvers: minimise an objective plus a penalty, and say how near the optimum they came."""
