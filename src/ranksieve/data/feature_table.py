"""Small tables about features: CSV or TSV with a header, one feature a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ranksieve.data.byte_source import PathLike, source_name
from ranksieve.data.text_file import csv_rows


class Row(NamedTuple):
    """One line: where it stands (``file:line``) and its cells by column name."""

    place: str
    cells: dict[str, str]


def feature_rows(
    text: str, path: PathLike, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Row]:
    """The rows by feature; the header has ``feature``, the ``required`` and perhaps ``optional`` columns."""
    rows: dict[str, Row] = {}
    for row in _rows(text, path, ("feature", *required), optional):
        feature = row.cells["feature"]
        if not feature:
            raise ValueError(f"{row.place}: the feature has no name; name it or drop the line")
        if feature in rows:
            raise ValueError(f"{row.place}: {feature!r} stands in {rows[feature].place} too; list it once")
        rows[feature] = row
    return rows


def _rows(text: str, path: PathLike, required: Sequence[str], optional: Sequence[str]) -> Iterator[Row]:
    lines = text.splitlines()
    rows = csv_rows(lines, "\t" if lines and "\t" in lines[0] else ",", source_name(path))
    first, cells = next(rows, (f"{source_name(path)}:1", []))
    header = [name.strip().lower() for name in cells]
    if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) < len(header):
        expected = ",".join(required) + "".join(f"[,{name}]" for name in optional)
        raise ValueError(f"{first}: the header is {','.join(header)!r}; expected {expected}")
    for place, cells in rows:
        if len(cells) != len(header):
            raise ValueError(f"{place}: has {len(cells)} cells; expected {len(header)}: {','.join(header)}")
        yield Row(place, {name: cell.strip() for name, cell in zip(header, cells, strict=True)})
