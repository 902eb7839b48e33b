"""Write documents into a folder that appears whole or not at all."""

from __future__ import annotations

from ranksieve._types import PathLike
from ranksieve._util.atomic_folder import atomic_folder
from ranksieve._util.messages import warn_caller
from ranksieve._util.written import FULL
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError
from ranksieve.formats.batches import Source, dataset_source
from ranksieve.formats.folder import is_folder_dataset
from ranksieve.formats.folder_writer import FolderWriter
from ranksieve.preparation.missing import FILLS, has_missing

GIGABYTE, MEGABYTE = 1e9, 1e6
LABEL_BYTES = 8


def write_folder(dataset: Dataset, path: PathLike) -> None:
    """Write a data set into a folder; one that holds a data set already is replaced, any other refused."""
    write_source(dataset_source(dataset, None), path, "keep")


def write_source(source: Source, path: PathLike, missing: str) -> None:
    """Write all documents of a source into a folder."""
    with atomic_folder(path, is_folder_dataset) as place, FolderWriter(place, source.dtype) as writer:
        try:
            _fill(writer, source, missing)
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise OSError(f"{path}: {_full(writer, source)}; make room or choose another place") from None


def _fill(writer: FolderWriter, source: Source, missing: str) -> None:
    for batch in source.batches:
        if missing in FILLS and not writer.has_missing:
            writer.has_missing = has_missing(batch.X)
        writer.add(batch)
    if writer.n_docs == 0:
        raise DataError(source.about["source"], None, "holds no documents")
    if writer.scattered:
        name = source.about["source"] or "the data"
        warn_caller(
            f"{name}: the rows of some queries are not together; the folder has them query by query, in "
            "another order"
        )
    writer.finish(source.names(writer.width), source.ids, missing, source.about, source.empty_comments)


def _full(writer: FolderWriter, source: Source) -> str:
    """What a full disk lacks, as far as that is known."""
    written = f"the disk is full after {_size(writer.bytes_written)}"
    if writer.scattered:
        written += " (rows are brought together in a second copy)"
    if source.n_docs is None:
        return written
    needed = source.n_docs * (writer.width * source.dtype.itemsize + LABEL_BYTES)
    return f"{written}, and the data set needs about {_size(needed)}"


def _size(count: int) -> str:
    return f"{count / GIGABYTE:.3g} GB" if count >= GIGABYTE else f"{count / MEGABYTE:.3g} MB"
