"""Tables of features: what they cost, and which signs their weights may have."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve._util.json_values import decode_json
from ranksieve.data.costs import FeatureCosts, as_cost, make_costs
from ranksieve.data.features import as_sign
from ranksieve.errors import DataError, ParameterError, shown
from ranksieve.formats.text_files import (
    Place,
    csv_rows,
    delimiter_of,
    first_content,
    read_text,
    source_name,
    text_lines,
)

JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def read_costs(path: PathLike, default: float | None = None) -> FeatureCosts:
    """Read what features cost, in any unit.

    CSV or TSV with the header ``feature,cost`` or ``feature,cost,group``: the features of a group share one
    cost, which is on each of their lines and is paid once. Or JSON, ``{"feature": cost}`` or
    ``{"features": {"feature": cost}, "groups": {"name": {"cost": cost, "features": ["feature"]}}}``. The
    feature ``*`` prices all that are not listed, as ``default`` does; without either, a feature of the data
    that is not listed is an error. A shell pattern such as ``bm25_*`` prices each feature that it matches and
    that has no line of its own; with a group, all of them are of the group.
    """
    text = read_text(path)
    costs = _from_json(text, path) if text.lstrip().startswith("{") else _from_table(text, path)
    return costs if default is None else replace(costs, default=default)


def as_costs(given: Any, names: Sequence[str]) -> FeatureCosts:
    """Costs from a file, a mapping, one number per column, or as they are; of features, not of patterns."""
    if isinstance(given, FeatureCosts):
        return given.resolved(names)
    if isinstance(given, str | os.PathLike):
        return read_costs(given).resolved(names)
    if isinstance(given, Mapping):
        return make_costs(given).resolved(names)
    if not isinstance(given, Collection):
        raise ParameterError("feature_costs", given, "must be a file, a mapping or one number per feature")
    if len(given) != len(names):
        raise ParameterError("feature_costs", given, f"has {len(given)} numbers for {len(names)} features")
    return make_costs(dict(zip(names, given, strict=True)))


def read_signs(path: PathLike) -> dict[str, float]:
    """Read the signs of features: CSV or TSV with the header ``feature,sign``, the signs +, - or 0.

    A feature may be a shell pattern such as ``bm25_*``.
    """
    rows = _lines_by_feature(read_text(path), path, ("sign",))
    return {feature: as_sign(row.cells["sign"], feature, row.place) for feature, row in rows.items()}


def _from_table(text: str, path: PathLike) -> FeatureCosts:
    rows = _lines_by_feature(text, path, ("cost",), ("group",))
    alone: dict[str, float] = {}
    groups: dict[str, dict[str, Any]] = {}
    places = {feature: row.place for feature, row in rows.items()}
    for feature, row in rows.items():
        cost, group = as_cost(row.cells["cost"], feature, row.place), row.cells.get("group")
        if not group:
            alone[feature] = cost
            continue
        entry = groups.setdefault(group, {"cost": cost, "features": []})
        entry["features"].append(feature)
        if entry["cost"] != cost:
            raise DataError(
                *row.place,
                f"group {group!r} costs {cost:g} here but {entry['cost']:g} before; "
                "give the same cost on each of its lines",
            )
    of_groups = {group: places[entry["features"][0]] for group, entry in groups.items()}
    return make_costs({"features": alone, "groups": groups}, (str(path), None), of_groups | places)


def _from_json(text: str, path: PathLike) -> FeatureCosts:
    try:
        content = decode_json(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise DataError(path, error.lineno, f"damaged JSON ({error.msg})") from None
    except DataError as error:
        raise error.at(path) from None
    places: dict[str, Place] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        for written in JSON_STRING.findall(line):
            places.setdefault(json.loads(written), (str(path), number))
    return make_costs(content, (str(path), None), places)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise DataError(None, None, f"{name!r} occurs twice; list it once")
    return dict(pairs)


class FeatureLine(NamedTuple):
    """One line of a table: its place and its cells by column name."""

    place: Place
    cells: dict[str, str]


def _lines_by_feature(
    text: str, path: PathLike, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, FeatureLine]:
    """The lines by feature; the header has ``feature``, the ``required`` and perhaps ``optional`` columns."""
    rows: dict[str, FeatureLine] = {}
    for row in _lines(text, path, ("feature", *required), optional):
        feature = row.cells["feature"]
        if not feature:
            raise DataError(*row.place, "the feature has no name; name it or drop the line")
        if feature in rows:
            raise DataError(*row.place, f"{feature!r} is on line {rows[feature].place[1]} too; list it once")
        rows[feature] = row
    return rows


def _lines(
    text: str, path: PathLike, required: Sequence[str], optional: Sequence[str]
) -> Iterator[FeatureLine]:
    lines = text_lines(text)  # a quoted name may go over several
    rows = csv_rows(lines, delimiter_of(first_content(lines)), source_name(path))
    first, cells = next(rows, ((source_name(path), 1), []))
    header = [name.strip().lower() for name in cells]
    if not set(required) <= set(header) <= {*required, *optional} or len(set(header)) < len(header):
        expected = ",".join(required) + "".join(f"[,{name}]" for name in optional)
        raise DataError(*first, f"the header is {shown(','.join(header))}; expected {expected}")
    for place, cells in rows:
        if len(cells) != len(header):
            raise DataError(*place, f"has {len(cells)} cells; expected {len(header)}: {','.join(header)}")
        yield FeatureLine(place, {name: cell.strip() for name, cell in zip(header, cells, strict=True)})
