"""ranksieve rank: the scores of a model, one per document, or a TREC run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

import ranksieve as rs
from ranksieve._util.messages import lookup
from ranksieve.cli.app import command
from ranksieve.cli.options import MODEL_HELP, Data, ScoringOptions, check_outputs, finite_scores, write_text

if TYPE_CHECKING:
    from ranksieve._types import FloatArray


@command(
    "ranksieve rank model.json test.txt -o scores.txt", "ranksieve rank model.json test.txt --format trec"
)
def rank(
    *,
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    data: Data,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write; default stdout.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="scores, one per line in input order, or trec.")
    ] = "scores",
    scoring: ScoringOptions,
) -> None:
    """Score documents with a model.

    The higher the score, the higher the rank. Scores come in the order of the documents.
    """
    from ranksieve.io.trec import run_lines

    formats: dict[str, Callable[..., Iterator[str]]] = {"scores": _score_lines, "trec": run_lines}
    lines_of = lookup(formats, form, "form")
    check_outputs([output], [model, data], stdout=True)
    documents, models = scoring.read(data, [model])
    scorer = models[model]
    scores = finite_scores(scorer, documents)
    write_text("".join(lines_of(documents, scores, scorer.method or "ranksieve")), output)


def _score_lines(documents: rs.Dataset, scores: FloatArray, tag: str) -> Iterator[str]:
    return (f"{score!r}\n" for score in scores.tolist())
