"""Where to begin on large data: near the minimum over a part of the queries, which is soon found."""

from __future__ import annotations

from dataclasses import replace

from ranksieve._types import FloatArray
from ranksieve.solvers.base import Problem, Solver

MANY = 50_000  # documents from which a sample goes first, and about as many it has at most
EVERY = 8  # the least number of queries of which it takes one
NEAR = 1e-3  # relative gap of its minimum


def minimum_of_sample(problem: Problem, solver: Solver) -> FloatArray | None:
    """What the solver finds for every eighth query or fewer; None if the data are not large.

    Also None where these hold most documents, as a query that is all there is: they would save no time.
    """
    n_docs = problem.objective.loss.queries.n_rows
    sample = problem.objective.sample(max(EVERY, n_docs // MANY)) if n_docs >= MANY else None
    if sample is None or 2 * sample.loss.queries.n_rows > n_docs:
        return None
    return replace(solver, tol=NEAR).solve(Problem(sample, problem.penalty, problem.usable)).w
