"""Files that commands read and write: data, scores, models of any origin, outputs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import ranksieve as rs
from ranksieve.cli.output import progress
from ranksieve.errors import DataError, ParameterError

if TYPE_CHECKING:  # these take long to load
    from ranksieve._types import FloatArray
    from ranksieve._util.atomic import Destination
    from ranksieve.foreign import Scorer

STANDARD = "-"
NONE: Mapping[str, Any] = MappingProxyType({})
OF_CLUSTER = ("qid", "label", "features", "document_weight")  # which columns: what data on a cluster take
MODEL_STARTS = (b"##", b"{", b"tree")  # a file of scores begins with a number


# --- Inputs ----------------------------------------------------------------------------------------------


def kept_for(missing: str) -> str:
    """The reader's policy for a ranker's: the ranker fills, but the reader knows the line to refuse."""
    return "error" if missing == "error" else "keep"


def read_data(
    path: str, missing: str = "keep", client: Any = None, arguments: Mapping[str, Any] = NONE
) -> rs.Dataset:
    """Read a data set, with a bar on a terminal; with a Dask client its workers do it.

    ``arguments`` are those of readers that are given: which columns, and names for them.
    """
    with progress(f"reading {path}"):
        if client is None:
            return rs.read_dataset(path, missing=missing, **arguments)
        for name in arguments:
            if name not in OF_CLUSTER:
                raise ParameterError(
                    name, arguments[name], "is not for data on a `cluster`; leave it out or write other files"
                )
        return rs.distribute(path, client=client, **arguments)


def query_texts(*parts: rs.Dataset | None) -> dict[Any, str]:
    """The words of all queries, as far as the data have them."""
    from ranksieve.data.naming import Names

    return {
        query: text for part in parts if part is not None for query, text in Names(part).query_texts.items()
    }


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, closed in the end; None without an address."""
    if address is None:
        yield None
        return
    from ranksieve.distributed.cluster import connected as connect

    with connect(address) as client:
        yield client


def read_scores(path: str) -> FloatArray:
    """One finite number per line; ``-`` is standard input."""
    import numpy as np

    from ranksieve.formats.text_files import finite_number, read_text, source_name

    lines, name = read_text(path).splitlines(), source_name(path)
    numbers = (finite_number(line, (name, k), "score") for k, line in enumerate(lines, start=1))
    return np.fromiter(numbers, dtype=np.float64, count=len(lines))


def check_inputs(*paths: str | None) -> None:
    """Standard input can be only one of the inputs."""
    if paths.count(STANDARD) > 1:
        raise DataError(STANDARD, None, "standard input can be read only once; name a file")


# --- Models ----------------------------------------------------------------------------------------------


def is_model(file: str) -> bool:
    """Whether a file is a model rather than a list of scores, by its name or first bytes."""
    if file.endswith(".json"):
        return True
    try:
        with open(file, "rb") as content:
            return content.read(4).startswith(MODEL_STARTS)
    except OSError:
        return False


def model_before(file: str) -> rs.LinearModel:
    """The linear model of ranksieve that a fit begins with."""
    from ranksieve.foreign import open_model

    own = open_model(file).own
    if not isinstance(own, rs.LinearModel):
        raise DataError(file, None, "is not a linear model of ranksieve, which `warm_start` needs")
    return own


def read_with_models(
    data_file: str,
    model_files: Sequence[str],
    missing: str | None = None,
    first_feature: int | None = None,
    arguments: Mapping[str, Any] = NONE,
) -> tuple[rs.Dataset, dict[str, Scorer]]:
    """Data wide enough for all models, and the models, with columns of others' models named by the data.

    ``missing`` replaces the models' own policies; ``arguments`` are those of readers. LETOR text, whose
    columns have numbers for names, gets columns of 0 up to the widest model.
    """
    from ranksieve.foreign import open_model

    files = {file: open_model(file) for file in model_files}
    data = read_data(data_file, missing or "keep", arguments=arguments)
    models = {name: file.read(data.feature_names, first_feature) for name, file in files.items()}
    data = wide_enough(data, max(model.n_features for model in models.values()))
    return data, models if missing is None else {name: _without_policy(m) for name, m in models.items()}


def wide_enough(data: rs.Dataset, n_features: int) -> rs.Dataset:
    """With columns of 0 up to so many if its columns have numbers for names, as those of LETOR text."""
    from ranksieve.data.inputs import numbered_names

    numbered = data.feature_names == numbered_names(data.n_features)
    return data.widened(n_features) if numbered and n_features > data.n_features else data


def _without_policy(model: Scorer) -> Scorer:
    """The model with missing values left as they are: the command line has dealt with them."""
    from ranksieve.preparation import KEPT

    if not isinstance(model, rs.LinearModel) or model.preparation.missing.indicators:
        return model  # indicators are part of the score
    return replace(model, preparation=replace(model.preparation, missing=KEPT))


def finite_scores(model: Scorer, data: rs.Dataset) -> FloatArray:
    """Scores in row order; a row without one is refused."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        scores = model.predict(data)
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise DataError(
            data.source,
            None,
            f"the score of document {bad[0] + 1} is {scores[bad[0]]}, because a feature in use is missing, "
            "infinite or too large; for missing ones choose `missing='zero'`, query_min or column_mean",
        )
    return scores


# --- Outputs ---------------------------------------------------------------------------------------------


def write_text(text: str, path: str | None) -> None:
    """Write a file whole or not at all; without a path, or to ``-``, standard output."""
    from ranksieve._util.atomic import atomic_write

    if path is None or path == STANDARD:
        sys.stdout.write(text)
        return
    with atomic_write(path) as file:
        file.write(text)


@contextmanager
def beside(*outputs: str | None) -> Iterator[None]:
    """Show on stderr what would go to standard output if an output goes there, which it has to itself."""
    from ranksieve._util.atomic import is_standard_output

    if any(output is not None and is_standard_output(output) for output in outputs):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def check_outputs(
    outputs: Iterable[str | os.PathLike[str] | None],
    inputs: Iterable[str | None] = (),
    *,
    stdout: bool = False,
) -> None:
    """Refuse, before any work, outputs that cannot be written or that would overwrite an input.

    ``stdout`` tells whether the command can write to standard output, called ``-``.
    """
    from ranksieve._util.atomic import destination

    taken = [Path(os.path.realpath(given)) for given in inputs if given is not None and given != STANDARD]
    for output in outputs:
        if output is None or (stdout and output == STANDARD):
            continue
        if output == STANDARD:
            raise DataError(output, None, "cannot go to standard output; name a file to write")
        there = destination(output)
        if there.replaced and there.place in taken:
            raise DataError(output, None, "is named twice on the command line; choose another output file")
        taken.append(there.place)
        _check_writable(output, there)


def _check_writable(output: str | os.PathLike[str], there: Destination) -> None:
    place = there.place
    if place.is_dir():
        raise DataError(output, None, "is a folder; name a file to write")
    if not place.parent.is_dir():
        folder = place.parent if Path(output).is_symlink() else Path(output).parent
        raise DataError(output, None, f"the folder {folder} does not exist; create it first")
    if not (there.replaced or place.exists()):
        raise DataError(output, None, "is not open; name a file to write")
    if there.descriptor is None and place.exists() and not os.access(place, os.W_OK):
        raise DataError(output, None, "is write-protected; choose another file or allow writing")
    if not there.replaced:
        return
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        reason = f"cannot write there ({error.strerror}); choose another folder"
        raise DataError(output, None, reason) from None
