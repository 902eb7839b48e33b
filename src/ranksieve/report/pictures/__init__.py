"""The pictures of the papers, made from results alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ranksieve.experiment.results import DataSetResults, Results
from ranksieve.report.canvas import Figure, Styles
from ranksieve.report.pictures.accuracy import SIZE_STYLES, map_against_sparsity, ndcg_curves, sizes
from ranksieve.report.pictures.convergence import convergence, descent
from ranksieve.report.pictures.features import removed_features, selected_features, single_features
from ranksieve.report.pictures.stream import online

Source = TypeVar("Source")


@dataclass(frozen=True)
class Picture(Generic[Source]):
    """``draw`` gives None if the results lack what it shows; ``caption`` says how to read it."""

    title: str
    caption: str
    draw: Callable[[Source, Styles], Figure | None]
    legend: bool = True  # whether its colours are those of the methods
    others: Styles = field(default_factory=dict)  # further lines for the legend


PICTURES: dict[str, Picture[DataSetResults]] = {
    "ndcg_curves": Picture(
        "NDCG@1 to NDCG@10",
        "Mean over folds of test NDCG at each cut-off; below, the same minus the mean of all methods, which "
        "shows their differences. Higher is better. In the letor profile a list shorter than k counts 0, so "
        "that the curves fall where many lists are short.",
        ndcg_curves,
    ),
    "sizes": Picture(
        "Accuracy against the number of features",
        "What is left if only k features may be used. Methods: the chosen model cut to its k largest "
        "weights, without refitting (FSMRank's protocol). Certified path: of its points with at most k "
        "features the best on validation. FBPCRank: fitted with at most k features; FS-Rank, GAS-E, FSMSVM: "
        "RankSVM fitted on the k features that they choose, for some k. Test means over folds.",
        sizes,
        others=SIZE_STYLES,
    ),
    "map_against_sparsity": Picture(
        "MAP against sparsity",
        "Left is sparser, up is better. The dotted line is the Pareto front: no other method is both sparser "
        "and more accurate than those on it. Test MAP and share of features in use, means over folds.",
        map_against_sparsity,
    ),
    "selected_features": Picture(
        "Which features each fold selects",
        "One row for each fold of each method, the first fold on top; a cell is coloured if the feature is "
        "in use, blue for a positive and orange for a negative weight, the stronger the larger. Above: the "
        "share of all these models that use the feature, by which the columns are sorted.",
        selected_features,
        legend=False,
    ),
    "single_features": Picture(
        "Each feature alone against random weights",
        "Test NDCG@10 of ranking by one feature, mean over folds, the strongest first. The line is the mean "
        "of random weights w ≥ 0, Σw = 1, the band their range: a feature below the line, in grey, ranks "
        "worse alone than all features mixed blindly.",
        single_features,
        legend=False,
    ),
    "convergence": Picture(
        "Convergence of solvers",
        "One ℓ1 problem, the middle of the path of the first fold, by several solvers: above, how far the "
        "objective is from the optimum; below, what each solver can prove of it, its relative duality gap. "
        "Both axes are logarithmic; steeper is faster. A point at the lower edge is at the optimum up to "
        "rounding. Frank–Wolfe solves the same problem as a ball constraint ‖w‖₁ ≤ r.",
        convergence,
        legend=False,
    ),
    "descent": Picture(
        "FSMRank's descent",
        "How far the objective of FSMRank is from its optimum, as a share of it, after so many iterations "
        "(above) and seconds (below): its accelerated gradient beside a subgradient method with the best of "
        "several step sizes, first fold. Both axes are logarithmic.",
        descent,
        legend=False,
    ),
    "online": Picture(
        "Learning from a stream",
        "Test NDCG@10 of MinBatSRank against the documents seen, each once, with a rate per feature and with "
        "one rate for all (Nonfea): means over folds and orders of the queries; the band is from the lowest "
        "to the highest order. Dotted: methods that have all documents at once.",
        online,
        legend=False,
    ),
}

OVERVIEWS: dict[str, Picture[Results]] = {
    "removed_features": Picture(
        "Removed features",
        "The share of features that each method leaves out, 1 − sparsity, mean over folds: the further out, "
        "the fewer features are in use.",
        removed_features,
        legend=False,
    ),
}
