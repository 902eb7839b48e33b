"""docs/methods/README.md from the table of methods: ``make docs``."""

from __future__ import annotations

import sys

from ranksieve.methods import METHODS, Method

PAGE_INTRODUCTION = """# Methods

Made from the table `ranksieve.methods.METHODS` by `make docs`. Every linear method works with
`ranksieve fit --method NAME`; "choice" is the metric by which its paper chooses parameters.

In depth: [FenchelRank](fenchelrank.md), [FSMRank](fsmrank.md), [MinBatSRank](minbatsrank.md),
[SparseRankSVM](sparse_ranksvm.md), [SparseListMLE](sparse_listmle.md); baselines: [SVMs](ranksvm.md),
[first-order methods](first_order.md), [boosting and structural SVM](boosting.md); [selectors](selectors.md);
the [certified path](../path.md) of SparseRanker.

| name | method | source | loss | penalty | solver | linear | grid | choice |
|---|---|---|---|---|---|---|---|---|
"""


def methods_page() -> str:
    """The page."""
    return PAGE_INTRODUCTION + "".join(_page_line(name, method) for name, method in METHODS.items())


def _page_line(name: str, method: Method) -> str:
    linear = "yes" if method.linear else "no"
    cells = (
        method.title,
        method.source,
        method.loss,
        method.penalty,
        method.solver,
        linear,
        _grid_words(method),
    )
    return f"| `{name}` | {' | '.join(cells)} | {method.select} |\n"


def _grid_words(method: Method) -> str:
    values: dict[str, list[object]] = {}
    for point in method.grid:
        for key, value in point.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return "; ".join(f"`{key}`: {_span(seen)}" for key, seen in values.items()) or "–"


def _span(seen: list[object]) -> str:
    words = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in seen]
    return ", ".join(words) if len(words) <= 3 else f"{words[0]} … {words[-1]} ({len(words)})"


if __name__ == "__main__":
    sys.stdout.write(methods_page())
