"""Parameters that are refused, and the sentence that says so."""

from __future__ import annotations

POSITIVE = "a float in the range [1e-30, 1e+30]"
NOT_NEGATIVE = f"a float among {{0}} or {POSITIVE}"
COUNT, SEED = "an int in the range [1, inf)", "an int in the range [0, inf)"


def among(*names):
    return f"a str among {{{', '.join(map(repr, names))}}}"


def wrong(ranker, kind, **parameters):
    """(parameters, sentence) of a fit whose first parameter is not of its kind."""
    name, value = next(iter(parameters.items()))
    return parameters, f"The '{name}' parameter of {ranker} must be {kind}. Got {value!r} instead."
