"""Checks the proof of a best subset in a model file (docs/files.md); needs numpy alone, none of ranksieve."""

import numpy as np


def need(holds, words):
    if not holds:
        raise ValueError(words)


def check(model, X, y, qid, names):
    """(objective, bound), both checked; ValueError if the file does not prove them."""
    proof, asked, data = model["certificate"], model["parameters"], model["data"]
    need(proof["kind"] == "subset", "not a proof about sets")
    power = {"pairs": 0, "sqrt": 0.5, "queries": 1}.get(asked["pair_weighting"])
    need(power is not None, "unknown pair weighting")
    beyond = (proof.get("max_cost"), asked["max_cost"], data.get("query_weight"), asked.get("weights"))
    need(beyond == (None,) * 4, "costs, query weights and ℓ1 weights are beyond this checker")
    k, mu = proof["max_features"], proof["ridge"]
    need(k == int(k) and mu > 0 and proof["gap"] >= 0, "no sound certificate")

    def mask(features):
        chosen = np.zeros(len(names), dtype=bool)
        for feature in [features] if isinstance(features, str | int) else features:
            known = feature in names or feature in range(len(names))
            need(known, f"{feature!r} is not a feature; patterns are beyond this checker")
            chosen[names.index(feature) if isinstance(feature, str) else feature] = True
        return chosen

    X, varies = scaled(np.asarray(X, dtype=float), qid, (model["normalisation"] or {}).get("kind"))
    signs, w = np.zeros(len(names)), np.zeros(len(names))
    for feature, sign in (asked["signs"] or {}).items():
        signs[mask([feature])] = sign
    for term in model["terms"]:
        w[mask([term["name"]])] = term["weight"]
    inside = mask(asked["must_have"]) & varies
    free = varies & ~inside & ~mask(asked["must_not"])
    queries, y = [np.flatnonzero(np.asarray(qid) == q) for q in np.unique(qid)], np.asarray(y)
    pairs = [rows[np.argwhere(y[rows][:, None] > y[rows])] for rows in queries]
    above, below = np.concatenate(pairs).T
    D = X[above] - X[below]  # one row per pair: small data only
    share = np.concatenate([np.full(len(rows), max(len(rows), 1.0) ** -power) for rows in pairs])
    share /= share.sum()

    objective = share @ np.maximum(0, 1 - D @ w) ** 2 + mu / 2 * w @ w
    need(abs(objective - proof["objective"]) <= 1e-9 * objective, f"the objective is {objective}")
    used = w != 0
    need(np.count_nonzero(used | inside) <= k and not (used & ~inside & ~free).any(), "not such a set")
    need((signs * w >= 0).all(), "a weight has the wrong sign")
    claimed = proof["objective"] - proof["gap"]
    need(abs(claimed - proof["bound"]) <= 1e-9 * objective, "bound and gap differ")
    target = claimed * (1 - 1e-10)

    def bounds(w, inside, free):
        """No set of a region is below the first; with, and without, each feature none below the others."""
        places = k - np.count_nonzero(inside)
        if places <= 0:
            free = np.zeros_like(free)
        with np.errstate(all="ignore"):
            xi = np.maximum(0, 1 - D @ w)
            g = -2 * (share * xi) @ D
            a = np.where(signs * g > 0, 0, g**2) / (2 * mu)
            top, square = np.append(-np.sort(-a[free]), [0, 0]), share @ xi**2
        most = np.sum(a[inside]) + np.sum(top[: max(places, 0)])
        if not np.isfinite([most, square]).all():
            return 0.0, np.zeros_like(a), np.zeros_like(a)  # proves nothing
        last, following = (top[min(max(place, 0), len(top) - 1)] for place in (places - 1, places))
        having = np.where(free, most - np.maximum(last - a, 0), np.where(inside, most, -np.inf))
        lacking = np.where(free, most - np.maximum(a - following, 0), np.where(inside, -np.inf, most))
        if places < 0:
            most, having, lacking = -np.inf, having - np.inf, lacking - np.inf
        bound = [(share @ xi) ** 2 / (square + np.maximum(T, 0) + 1e-300) for T in (most, having, lacking)]
        return [
            np.where(np.isneginf(T), np.inf, b) for T, b in zip((most, having, lacking), bound, strict=True)
        ]

    pending, seen = [(0, inside, free, 0.0)], set()
    while pending:
        number, inside, free, known = pending.pop()
        need(0 <= number < len(proof["proof"]) and number not in seen, "the regions are not a tree")
        seen.add(number)
        split, *children = (None if word == "-" else int(word) for word in line(proof, number)[:3])
        w = np.zeros(len(names))
        for entry in line(proof, number)[3:]:
            j, weight = entry.split(":")
            w[mask([int(j)])] = float(weight)
        least, having, lacking = (np.maximum(b, known) for b in bounds(w, inside, free))
        if least >= target:
            continue  # no set of the region is below
        never = free & (having >= target)
        always = free & ~never & (lacking >= target)
        inside, free = inside | always, free & ~never & ~always
        parts = [(inside, free, least)]
        if split is not None:
            j = mask([split])
            parts = [(inside | j, free & ~j, having[split]), (inside, free & ~j, lacking[split])]
        for child, (held, left, bound) in zip(children, parts, strict=False):
            if bound < target:
                need(child is not None, f"region {number} may hold a set below {claimed}")
                pending.append((child, held, left, bound))
    return objective, claimed


def line(proof, number):
    words = str(proof["proof"][number]).split()
    need(len(words) >= 3, f"line {number} of the proof is damaged")
    return words


def scaled(X, qid, kind):
    """The features as the weights see them, up to shifts, and which of them vary within a query."""
    need(np.isfinite(X).all(), "missing values are beyond this checker")
    groups = [X[np.asarray(qid) == q] for q in np.unique(qid)]
    varies = np.any([np.ptp(group, axis=0) > 0 for group in groups], axis=0)
    within = np.concatenate([group - group.mean(axis=0) for group in groups])
    sizes = {
        None: np.ones(X.shape[1]),
        "z": np.std(X, axis=0),
        "within_z": np.where(varies, np.sqrt(np.mean(within**2, axis=0)), 1),
        "min_max": np.ptp(X, axis=0),
    }
    need(kind in sizes, f"normalisation by {kind} is beyond this checker")
    return X / np.where(sizes[kind] > 0, sizes[kind], 1), varies
