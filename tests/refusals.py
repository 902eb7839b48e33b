"""Parameters that are refused, and the sentence that says so."""

from __future__ import annotations

POSITIVE, NOT_NEGATIVE = "a float in the range [1e-30, 1e+30]", "a float in the range [0.0, 1e+30]"
COUNT, SEED = "an int in the range [1, inf)", "an int in the range [0, inf)"


def among(*names):
    return f"a str among {{{', '.join(map(repr, names))}}}"


def wrong(ranker, kind, **parameters):
    """(parameters, sentence) of a fit whose first parameter is not of its kind."""
    name, value = next(iter(parameters.items()))
    return parameters, f"The '{name}' parameter of {ranker} must be {kind}. Got {value!r} instead."
