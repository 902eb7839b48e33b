"""ranksieve rank: score documents, or write a TREC run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import ranksieve as rs
from ranksieve.cli import options as opt
from ranksieve.cli.app import command
from ranksieve.errors import lookup

if TYPE_CHECKING:
    from ranksieve._types import FloatArray


@command(
    "ranksieve rank model.json test.txt -o scores.txt", "ranksieve rank model.json test.txt --format trec"
)
def rank(
    *,
    model: opt.ModelFile,
    data: opt.Data,
    scoring: opt.ScoringOptions,
    output: Annotated[opt.Text, opt.output_option("FILE", "File to write.", "stdout")] = None,
    form: Annotated[
        str, opt.value("Output", "NAME", "scores: one per line; trec: a TREC run.", None, ["--format"])
    ] = "scores",
) -> None:
    """Score documents with a model.

    Scores are written in the order of the documents; a higher score means a higher rank.
    """
    from ranksieve.io.trec import run_lines

    formats: dict[str, Callable[..., Iterator[str]]] = {"scores": _score_lines, "trec": run_lines}
    lines_of = lookup(formats, form, "form")
    opt.check_files([model, data, *scoring.files], output, stdout=True)
    documents, models = scoring.with_models(data, [model])
    scorer = models[model]
    scores = opt.finite_scores(scorer, documents)
    opt.write_text("".join(lines_of(documents, scores, scorer.method or "ranksieve")), output)


def _score_lines(documents: rs.Dataset, scores: FloatArray, tag: str) -> Iterator[str]:
    return (f"{score!r}\n" for score in scores.tolist())
