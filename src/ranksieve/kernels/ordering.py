"""Sort the documents of a query by score, starting from an order that is nearly right."""

import numpy as np

from ranksieve.kernels.compiling import helper, kernel

MOVES = 4  # per item: an order that takes more of them is not nearly right
RUN = 24  # runs of this length are sorted by insertion before they are merged


@helper
def before(a, i, b, j):
    """Whether (score a, position i) comes before (score b, position j): a total order, so ties are unique."""
    return a < b or (a == b and i < j)


@helper
def _repair(key, item):
    """Sort by insertion, as long as that takes few moves: whether it is done."""
    left = MOVES * len(key)
    for i in range(1, len(key)):
        k, it = key[i], item[i]
        j = i
        while j > 0 and before(k, it, key[j - 1], item[j - 1]):
            key[j], item[j] = key[j - 1], item[j - 1]
            j -= 1
        key[j], item[j] = k, it
        left -= i - j
        if left < 0:
            return False
    return True


@kernel
def sort_by_key(key, item, key_buffer, item_buffer):
    """Sort ``key`` ascending, ties by ``item``, carrying ``item`` along; linear when nearly sorted."""
    n = len(key)
    if _repair(key, item):
        return
    for start in range(0, n, RUN):
        for i in range(start + 1, min(start + RUN, n)):
            k, it = key[i], item[i]
            j = i
            while j > start and before(k, it, key[j - 1], item[j - 1]):
                key[j], item[j] = key[j - 1], item[j - 1]
                j -= 1
            key[j], item[j] = k, it
    width = RUN
    while width < n:
        for start in range(0, n - width, 2 * width):
            _merge(key, item, start, start + width, min(start + 2 * width, n), key_buffer, item_buffer)
        width *= 2


@helper
def _merge(key, item, start, middle, stop, key_buffer, item_buffer):
    """Merge the sorted runs [start, middle) and [middle, stop) in place, at no cost if they are in order."""
    if not before(key[middle], item[middle], key[middle - 1], item[middle - 1]):
        return
    length = middle - start
    for i in range(length):
        key_buffer[i], item_buffer[i] = key[start + i], item[start + i]
    left, right, out = 0, middle, start
    while left < length and right < stop:
        if before(key[right], item[right], key_buffer[left], item_buffer[left]):
            key[out], item[out] = key[right], item[right]
            right += 1
        else:
            key[out], item[out] = key_buffer[left], item_buffer[left]
            left += 1
        out += 1
    while left < length:
        key[out], item[out] = key_buffer[left], item_buffer[left]
        left += 1
        out += 1


@kernel
def centre_and_sort(s, centred, order, offsets, first, last):
    """For the queries first..last: ``centred`` = scores less the query's mean; ``order`` sorted by score.

    ``order[lo:hi]`` holds a permutation of lo..hi-1 on entry (any one; the previous evaluation's is best).
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    key, key_buffer = np.empty(longest), np.empty(longest)
    item_buffer = np.empty(longest, dtype=np.int64)
    for q in range(first, last):
        lo, hi = offsets[q], offsets[q + 1]
        mean = 0.0
        for i in range(lo, hi):
            mean += s[i] - s[lo]
        mean = mean / max(hi - lo, 1) + s[lo]
        for i in range(lo, hi):
            centred[i] = s[i] - mean
        for k in range(lo, hi):
            key[k - lo] = centred[order[k]]
        sort_by_key(key[: hi - lo], order[lo:hi], key_buffer, item_buffer)
