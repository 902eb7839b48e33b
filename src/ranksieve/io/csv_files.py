"""CSV and TSV files: one row per document, a header that names the columns; plain or gzip."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from ranksieve._types import PathLike
from ranksieve._util.files import atomic_write
from ranksieve.data.dataset import Dataset
from ranksieve.errors import DataError, safe, shortened, shown, warn_caller
from ranksieve.io.frames import (
    COMMENT,
    DOC_ID,
    ColumnChoice,
    arrow_tables,
    columns_matching,
    extra,
    from_frame,
)
from ranksieve.io.text_files import (
    BYTE_ORDER_MARK,
    Place,
    as_text,
    cells_of,
    csv_rows,
    delimiter_of,
    in_file,
    maybe_gzip,
    read_bytes,
    source_name,
)

SAMPLE_ROWS = 2000  # that tell columns of numbers from columns of text
NO_VALUE = ("", "NULL", "null", "NaN", "nan", "NA", "N/A")
AROUND = (("", ""), (" ", ""), ("", " "))
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d+\.\d+")
BLANK_LINES = re.compile(rb"(?:[ \t]*[\r\n]+)*")
FIRST_LINE = re.compile(rb"[^\r\n]*")
# A number with a symbol, a unit or a code before or behind it: $12, 5 %, 3 kg, USD 4, 1,234.
LIKE_A_NUMBER = re.compile(
    r"(?:[^\w\s]{1,2}|[A-Z]{3}(?=\s))?\s*[+-]?\d[\d.,' \u00a0\u202f]*(?:[^\w\s]{1,2}|[^\W\d_]{1,3})?"
)
LIKE_NUMBERS = 0.1  # share of such cells from which a column of text was perhaps meant to hold numbers
NAMED = 5  # columns in a warning
TRUTH_VALUES = {"true", "false"}
PLAIN_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"
LEAST_CELLS = 3  # of a header: query id, label, a feature


class Layout(NamedTuple):
    """What the beginning of a file tells: its columns as they are written, and which hold numbers."""

    columns: tuple[str, ...]
    delimiter: str
    decimal: str
    numbers: set[str]
    truth_values: set[str]
    like_numbers: Mapping[str, str]  # columns of text that look like numbers, each with a cell


def read_csv(path: PathLike, *, missing: str = "keep", **columns: Any) -> Dataset:
    """Read CSV or TSV, plain or gzip, with one row per document and a header that names the columns.

    Cells are separated by comma, semicolon or tab, as the header shows, and may be in double quotes. An empty
    cell, ``NULL``, ``NaN``, ``NA`` and ``N/A`` are missing values. A column is text if most of its first
    cells are no numbers, with a warning if they look like numbers ($12, 5 %); a cell that is no number in a
    column of numbers is refused. Query ids are whole numbers if all of them are, else text; document ids are
    text. The columns are those of :func:`from_frame`.
    """
    choice, name, raw = ColumnChoice(**columns), source_name(path), read_bytes(path)
    layout = _layout(raw, name)
    with in_file(name):
        table = _with_ids(_table(raw, layout, choice, name), choice)
        wanted = columns | {"ignore": ()}  # what is ignored is not in the table
        dataset = from_frame(table, missing=missing, **wanted)
    dataset.source = name
    _warn_of_text(layout, choice, name)
    return dataset


def looks_like_csv(start: bytes) -> bool:
    """Whether a file that begins so has the header of a table rather than a line of LETOR text."""
    line = _first_line(start)
    cells = cells_of(line, delimiter_of(line))
    named = all(cell.strip() and not NUMBER.fullmatch(cell.strip()) for cell in cells)
    other = "\0" in line or " qid:" in line or line.startswith(("#", "{", "["))
    return len(cells) >= LEAST_CELLS and named and not other


def write_csv(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame`, separated by commas, in ``.tsv`` by tabs; gzip for ``.gz``.

    A missing value is an empty cell. The file appears whole or not at all. Numbers have the fewest digits
    that read back to the same value of the matrix's own type.
    """
    name, arrow_csv = os.fspath(path).lower().removesuffix(".gz"), extra("pyarrow.csv")
    options = arrow_csv.WriteOptions(delimiter="\t" if name.endswith(".tsv") else ",")
    tables = arrow_tables(dataset)
    first = next(tables)
    for column in first.column_names:
        if "\n" in column or "\r" in column:
            raise DataError(
                None, None, f"the column {shown(column)} cannot be in a header of one line; rename it"
            )
    with (
        atomic_write(path, "wb") as file,
        maybe_gzip(file, path) as out,
        arrow_csv.CSVWriter(out, first.schema, write_options=options) as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table)


# --- What the beginning tells ------------------------------------------------------------------------------


def _layout(raw: bytes, name: str) -> Layout:
    rows = _rows(raw, name)
    place, columns = next(rows, ((name, 1), []))
    names = [column.strip() for column in columns]
    if len(columns) < LEAST_CELLS:
        raise DataError(
            *place,
            f"the header is {','.join(columns)!r}; expected column names such as qid,label,price, separated "
            "by comma, semicolon or tab",
        )
    if sum(NUMBER.fullmatch(column) is not None for column in names) > len(names) / 2:
        raise DataError(*place, "the first line holds numbers; expected column names, such as qid,label")
    for column, count in Counter(names).items():
        if count > 1:
            raise DataError(*place, f"two columns are called {column!r}; rename one of them")
    sample = [cells for _, cells in islice(rows, SAMPLE_ROWS)]
    delimiter = delimiter_of(_first_line(raw))
    decimal = "," if delimiter == ";" and _has_decimal_commas(sample) else "."
    values = {
        column: [cells[place].strip() for cells in sample if place < len(cells)]
        for place, column in enumerate(columns)
    }
    numbers = {column for column, cells in values.items() if _are_numbers(cells, decimal)}
    truths = {column for column, cells in values.items() if _are_truth_values(cells)}
    examples = {column: _like_numbers(values[column]) for column in columns if column not in numbers | truths}
    like_numbers = {column: example for column, example in examples.items() if example}
    return Layout(tuple(columns), delimiter, decimal, numbers, truths, like_numbers)


def _like_numbers(cells: Sequence[str]) -> str:
    """The first cell that looks like a number, of a column of text that may be meant to hold them."""
    present = [cell for cell in cells if cell not in NO_VALUE]
    like = [cell for cell in present if LIKE_A_NUMBER.fullmatch(cell)]
    return like[0] if len(like) >= LIKE_NUMBERS * len(present) and like else ""


def _warn_of_text(layout: Layout, choice: ColumnChoice, name: str) -> None:
    """Warn of columns that are no features because they are text, but look like numbers."""
    if choice.features is not None:
        return
    names = [column.strip() for column in layout.columns]
    others = {choice.qid, choice.label, choice.doc_id or DOC_ID, choice.document_weight, COMMENT, ""}
    others |= set(columns_matching(choice.ignore, names, "ignore"))
    texts = {column.strip(): cell for column, cell in layout.like_numbers.items()}
    left = [f"{safe(one)} (such as {shown(cell)})" for one, cell in texts.items() if one not in others]
    if left:
        warn_caller(
            f"{name}: columns of text are not features, but these look like numbers: "
            f"{shortened(left, NAMED)}; write plain numbers, or leave the columns out with `ignore`"
        )


def _first_line(raw: bytes) -> str:
    found = FIRST_LINE.match(raw, _begin(raw))
    return found.group().decode("utf-8", errors="replace") if found else ""


def _begin(raw: bytes) -> int:
    """Where the first line begins that is not blank."""
    found = BLANK_LINES.match(raw, len(BYTE_ORDER_MARK) if raw.startswith(BYTE_ORDER_MARK) else 0)
    return found.end() if found else 0


def _rows(raw: bytes, name: str) -> Iterator[tuple[Place, list[str]]]:
    """The rows by Python's reader, which knows the line of each."""
    text = io.TextIOWrapper(io.BytesIO(raw.removeprefix(BYTE_ORDER_MARK)), "utf-8", "replace", newline="")
    return csv_rows(text, delimiter_of(_first_line(raw)), name)


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row]
    return any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(DECIMAL_POINT.fullmatch, cells))


def _are_numbers(cells: Sequence[str], decimal: str) -> bool:
    """Whether most of the cells that hold something are numbers."""
    present = [cell for cell in cells if cell not in NO_VALUE]
    return 2 * sum(_is_number(cell, decimal) for cell in present) > len(present) or not present


def _is_number(cell: str, decimal: str) -> bool:
    return NUMBER.fullmatch(cell.replace(decimal, ".")) is not None


def _are_truth_values(cells: Sequence[str]) -> bool:
    present = {cell.lower() for cell in cells if cell not in NO_VALUE}
    return bool(present) and present <= TRUTH_VALUES


# --- All of it ---------------------------------------------------------------------------------------------


def _table(raw: bytes, layout: Layout, choice: ColumnChoice, name: str) -> Any:
    """The columns that are wanted, ids as text."""
    arrow, arrow_csv = extra("pyarrow"), extra("pyarrow.csv")
    names = {column: column.strip() for column in layout.columns}
    ignored = {"", *columns_matching(choice.ignore, list(names.values()), "ignore")}  # "": labels of pandas
    wanted = [column for column, stripped in names.items() if stripped not in ignored]
    kinds = {column: _kind(names[column], column, layout, choice, arrow) for column in wanted}
    try:
        table = arrow_csv.read_csv(
            arrow.BufferReader(memoryview(raw)[_begin(raw) :]),
            parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds,
                include_columns=wanted,
                null_values=[f"{before}{word}{after}" for word in NO_VALUE for before, after in AROUND],
                decimal_point=layout.decimal,
            ),
        )
    except arrow.ArrowException as error:
        as_text(raw, name)
        _refuse_first_fault(raw, layout, kinds, choice, name)
        raise DataError(name, None, f"damaged CSV ({str(error).splitlines()[0].rstrip('.')})") from None
    if table.num_rows == 0:
        raise DataError(name, None, "holds no documents")
    table = table.rename_columns([names[column] for column in wanted])
    compute, columns = extra("pyarrow.compute"), table.column_names
    no_query = choice.qid in columns and compute.any(compute.equal(table[choice.qid], "")).as_py()
    if no_query or (choice.label in columns and table[choice.label].null_count > 0):
        _refuse_first_fault(raw, layout, kinds, choice, name)
    return table


def _kind(name: str, column: str, layout: Layout, choice: ColumnChoice, arrow: Any) -> Any:
    if name in (choice.qid, choice.doc_id or DOC_ID):
        return arrow.string()
    if column in layout.truth_values:
        return arrow.bool_()
    asked = [choice.features] if isinstance(choice.features, str) else choice.features or ()
    if name in (choice.label, choice.document_weight, *asked) or column in layout.numbers:
        return arrow.float64()
    return arrow.string()


def _refuse_first_fault(
    raw: bytes, layout: Layout, kinds: dict[str, Any], choice: ColumnChoice, name: str
) -> None:
    """Name the first row of the wrong length, cell that is not a number, or missing query id or label."""
    rows = _rows(raw, name)
    next(rows)
    numeric = {column for column, kind in kinds.items() if str(kind) == "double"}
    for place, cells in rows:
        if len(cells) != len(layout.columns):
            raise DataError(*place, f"has {len(cells)} cells; the header has {len(layout.columns)}")
        for column, cell in zip(layout.columns, map(str.strip, cells), strict=True):
            what = f"the column {column.strip()!r}"
            if cell in NO_VALUE:
                if column.strip() in (choice.qid, choice.label) and column in kinds:
                    raise DataError(*place, f"{what} is empty; every document needs a query id and a label")
            elif column in numeric and not _is_number(cell, layout.decimal):
                raise DataError(*place, f"{what} holds {cell[:40]!r}; expected a number or an empty cell")


def _with_ids(table: Any, choice: ColumnChoice) -> Any:
    """The table with query ids as whole numbers if all of them are; an empty document id is none."""
    arrow, compute = extra("pyarrow"), extra("pyarrow.compute")
    names = table.column_names
    if choice.qid in names:
        ids = table[choice.qid]
        if compute.all(compute.match_substring_regex(ids, PLAIN_INTEGER)).as_py():
            table = table.set_column(names.index(choice.qid), choice.qid, ids.cast(arrow.int64()))
    if (name := choice.doc_id or DOC_ID) in names:
        ids = table[name]
        given = compute.if_else(compute.equal(ids, ""), arrow.scalar(None, arrow.string()), ids)
        table = table.set_column(names.index(name), name, given)
    return table
