"""CSV and TSV files with a header and one row per document; plain or gzip."""

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
from ranksieve.errors import DataError, printable, short_list, short_repr, warn_caller
from ranksieve.io.frames import (
    COMMENT,
    DOC_ID,
    ColumnChoice,
    arrow_tables,
    columns_matching,
    from_frame,
    import_extra,
)
from ranksieve.io.text_files import (
    BYTE_ORDER_MARK,
    LinePosition,
    as_text,
    cells_of,
    csv_rows,
    delimiter_of,
    in_file,
    maybe_gzip,
    read_bytes,
    source_name,
)

SAMPLE_ROWS = 2000  # rows read to detect the numeric columns
MISSING_CELLS = ("", "NULL", "null", "NaN", "nan", "NA", "N/A")
PADDINGS = (("", ""), (" ", ""), ("", " "))
CSV_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d+\.\d+")
BLANK_LINES = re.compile(rb"(?:[ \t]*[\r\n]+)*")
FIRST_LINE = re.compile(rb"[^\r\n]*")
# A number with a symbol, a unit or a code before or after it: $12, 5 %, 3 kg, USD 4, 1,234.
LIKE_A_NUMBER = re.compile(
    r"(?:[^\w\s]{1,2}|[A-Z]{3}(?=\s))?\s*[+-]?\d[\d.,' \u00a0\u202f]*(?:[^\w\s]{1,2}|[^\W\d_]{1,3})?"
)
MIN_NUMBER_LIKE_SHARE = 0.1  # share of such cells in a text column that causes a warning
MAX_WARNED_COLUMNS = 5
BOOLEANS = {"true", "false"}
INTEGER_ID = "^(0|-?[1-9][0-9]{0,17})$"
MIN_HEADER_CELLS = 3  # query id, label, a feature


class CsvLayout(NamedTuple):
    """The layout detected from the first rows; column names include the blanks of the header."""

    columns: tuple[str, ...]
    delimiter: str
    decimal: str
    numbers: set[str]
    booleans: set[str]
    like_numbers: Mapping[str, str]  # text columns that look like numbers, each with an example


def read_csv(path: PathLike, *, missing: str = "keep", **columns: Any) -> Dataset:
    """Read CSV or TSV, plain or gzip, with a header and one row per document.

    The delimiter (comma, semicolon or tab) is detected from the header; cells may be in double quotes. An
    empty cell, ``NULL``, ``NaN``, ``NA`` and ``N/A`` are missing values. A column is text if at least half of
    its first cells are not numbers, with a warning if they look like numbers ($12, 5 %); in a numeric column,
    a cell that is not a number is an error. Query ids are integers if all of them are, else text; document
    ids are text. The column parameters are those of :func:`from_frame`.
    """
    choice, name, raw = ColumnChoice(**columns), source_name(path), read_bytes(path)
    layout = _layout(raw, name)
    with in_file(name):
        table = _with_ids(_table(raw, layout, choice, name), choice)
        # ignored columns are not in the table
        dataset = from_frame(table, missing=missing, **(columns | {"ignore": ()}))
    dataset.source = name
    _warn_about_text_columns(layout, choice, name)
    return dataset


def looks_like_csv(start: bytes) -> bool:
    """Return True if the first bytes of a file look like a table header rather than LETOR text."""
    line = _first_line(start)
    cells = cells_of(line, delimiter_of(line))
    are_names = all(cell.strip() and not CSV_NUMBER.fullmatch(cell.strip()) for cell in cells)
    other_format = "\0" in line or " qid:" in line or line.startswith(("#", "{", "["))
    return len(cells) >= MIN_HEADER_CELLS and are_names and not other_format


def write_csv(dataset: Dataset, path: PathLike) -> None:
    """Write the columns of :func:`to_frame` as CSV, or as TSV for ``.tsv``; gzip for ``.gz``.

    A missing value is an empty cell. The file is written atomically. Numbers have the fewest digits that give
    the same value back in the dtype of the matrix.
    """
    name, arrow_csv = os.fspath(path).lower().removesuffix(".gz"), import_extra("pyarrow.csv")
    options = arrow_csv.WriteOptions(delimiter="\t" if name.endswith(".tsv") else ",")
    tables = arrow_tables(dataset)
    first = next(tables)
    for column in first.column_names:
        if "\n" in column or "\r" in column:
            raise DataError(None, None, f"the column {short_repr(column)} contains a line break; rename it")
    with (
        atomic_write(path, "wb") as file,
        maybe_gzip(file, path) as out,
        arrow_csv.CSVWriter(out, first.schema, write_options=options) as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table)


# --- Layout ------------------------------------------------------------------------------------------------


def _layout(raw: bytes, name: str) -> CsvLayout:
    rows = _rows(raw, name)
    position, columns = next(rows, ((name, 1), []))
    names = [column.strip() for column in columns]
    if len(columns) < MIN_HEADER_CELLS:
        raise DataError(
            *position,
            f"the header is {','.join(columns)!r}; expected column names such as qid,label,price, separated "
            "by comma, semicolon or tab",
        )
    if sum(CSV_NUMBER.fullmatch(column) is not None for column in names) > len(names) / 2:
        raise DataError(*position, "the first line holds numbers; expected column names, such as qid,label")
    for column, count in Counter(names).items():
        if count > 1:
            raise DataError(*position, f"two columns are called {column!r}; rename one of them")
    sample = [cells for _, cells in islice(rows, SAMPLE_ROWS)]
    delimiter = delimiter_of(_first_line(raw))
    decimal = "," if delimiter == ";" and _has_decimal_commas(sample) else "."
    values = {
        column: [cells[k].strip() for cells in sample if k < len(cells)] for k, column in enumerate(columns)
    }
    numbers = {column for column, cells in values.items() if _are_numbers(cells, decimal)}
    booleans = {column for column, cells in values.items() if _are_booleans(cells)}
    others = [column for column in columns if column not in numbers | booleans]
    examples = {column: _number_like_cell(values[column]) for column in others}
    like_numbers = {column: example for column, example in examples.items() if example}
    return CsvLayout(tuple(columns), delimiter, decimal, numbers, booleans, like_numbers)


def _number_like_cell(cells: Sequence[str]) -> str:
    """First cell of a text column that looks like a number; empty if too few cells do."""
    present = [cell for cell in cells if cell not in MISSING_CELLS]
    like = [cell for cell in present if LIKE_A_NUMBER.fullmatch(cell)]
    return like[0] if len(like) >= MIN_NUMBER_LIKE_SHARE * len(present) and like else ""


def _warn_about_text_columns(layout: CsvLayout, choice: ColumnChoice, name: str) -> None:
    """Warn about text columns, which are not features, if they look like numbers."""
    if choice.features is not None:
        return
    names = [column.strip() for column in layout.columns]
    others = {choice.qid, choice.label, choice.doc_id or DOC_ID, choice.document_weight, COMMENT, ""}
    others |= set(columns_matching(choice.ignore, names, "ignore"))
    texts = {column.strip(): cell for column, cell in layout.like_numbers.items()}
    left = [
        f"{printable(one)} (such as {short_repr(cell)})" for one, cell in texts.items() if one not in others
    ]
    if left:
        warn_caller(
            f"{name}: text columns are not used as features, but these look like numbers: "
            f"{short_list(left, MAX_WARNED_COLUMNS)}; write plain numbers, or leave "
            "the columns out with `ignore`"
        )


def _first_line(raw: bytes) -> str:
    match = FIRST_LINE.match(raw, _content_offset(raw))
    return match.group().decode("utf-8", errors="replace") if match else ""


def _content_offset(raw: bytes) -> int:
    """Offset of the first line that is not blank."""
    match = BLANK_LINES.match(raw, len(BYTE_ORDER_MARK) if raw.startswith(BYTE_ORDER_MARK) else 0)
    return match.end() if match else 0


def _rows(raw: bytes, name: str) -> Iterator[tuple[LinePosition, list[str]]]:
    """Rows with their line numbers, from Python's CSV reader."""
    text = io.TextIOWrapper(io.BytesIO(raw.removeprefix(BYTE_ORDER_MARK)), "utf-8", "replace", newline="")
    return csv_rows(text, delimiter_of(_first_line(raw)), name)


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row]
    return any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(DECIMAL_POINT.fullmatch, cells))


def _are_numbers(cells: Sequence[str], decimal: str) -> bool:
    """Return True if more than half of the cells with a value are numbers, or none has a value."""
    present = [cell for cell in cells if cell not in MISSING_CELLS]
    return 2 * sum(_is_number(cell, decimal) for cell in present) > len(present) or not present


def _is_number(cell: str, decimal: str) -> bool:
    return CSV_NUMBER.fullmatch(cell.replace(decimal, ".")) is not None


def _are_booleans(cells: Sequence[str]) -> bool:
    present = {cell.lower() for cell in cells if cell not in MISSING_CELLS}
    return bool(present) and present <= BOOLEANS


# --- Reading -----------------------------------------------------------------------------------------------


def _table(raw: bytes, layout: CsvLayout, choice: ColumnChoice, name: str) -> Any:
    """Arrow table of the columns that are not ignored; ids are text."""
    arrow, arrow_csv = import_extra("pyarrow"), import_extra("pyarrow.csv")
    names = {column: column.strip() for column in layout.columns}
    ignored = {"", *columns_matching(choice.ignore, list(names.values()), "ignore")}  # "": pandas index
    columns_read = [column for column, stripped in names.items() if stripped not in ignored]
    kinds = {column: _kind(names[column], column, layout, choice, arrow) for column in columns_read}
    try:
        table = arrow_csv.read_csv(
            arrow.BufferReader(memoryview(raw)[_content_offset(raw) :]),
            parse_options=arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds,
                include_columns=columns_read,
                null_values=[f"{left}{word}{right}" for word in MISSING_CELLS for left, right in PADDINGS],
                decimal_point=layout.decimal,
            ),
        )
    except arrow.ArrowException as error:
        as_text(raw, name)
        _raise_first_error(raw, layout, kinds, choice, name)
        raise DataError(name, None, f"damaged CSV ({str(error).splitlines()[0].rstrip('.')})") from None
    if table.num_rows == 0:
        raise DataError(name, None, "holds no documents")
    table = table.rename_columns([names[column] for column in columns_read])
    compute, columns = import_extra("pyarrow.compute"), table.column_names
    no_query = choice.qid in columns and compute.any(compute.equal(table[choice.qid], "")).as_py()
    if no_query or (choice.label in columns and table[choice.label].null_count > 0):
        _raise_first_error(raw, layout, kinds, choice, name)
    return table


def _kind(name: str, column: str, layout: CsvLayout, choice: ColumnChoice, arrow: Any) -> Any:
    if name in (choice.qid, choice.doc_id or DOC_ID):
        return arrow.string()
    if column in layout.booleans:
        return arrow.bool_()
    requested = [choice.features] if isinstance(choice.features, str) else choice.features or ()
    if name in (choice.label, choice.document_weight, *requested) or column in layout.numbers:
        return arrow.float64()
    return arrow.string()


def _raise_first_error(
    raw: bytes, layout: CsvLayout, kinds: dict[str, Any], choice: ColumnChoice, name: str
) -> None:
    """Raise an error at the first row with a wrong length, a bad number, or no query id or label."""
    rows = _rows(raw, name)
    next(rows)
    numeric = {column for column, kind in kinds.items() if str(kind) == "double"}
    for position, cells in rows:
        if len(cells) != len(layout.columns):
            raise DataError(*position, f"has {len(cells)} cells; the header has {len(layout.columns)}")
        for column, cell in zip(layout.columns, map(str.strip, cells), strict=True):
            what = f"the column {column.strip()!r}"
            if cell in MISSING_CELLS:
                if column.strip() in (choice.qid, choice.label) and column in kinds:
                    raise DataError(
                        *position, f"{what} is empty; every document needs a query id and a label"
                    )
            elif column in numeric and not _is_number(cell, layout.decimal):
                raise DataError(*position, f"{what} holds {cell[:40]!r}; expected a number or an empty cell")


def _with_ids(table: Any, choice: ColumnChoice) -> Any:
    """Turn query ids into integers if all of them are, and empty document ids into nulls."""
    arrow, compute = import_extra("pyarrow"), import_extra("pyarrow.compute")
    names = table.column_names
    if choice.qid in names:
        ids = table[choice.qid]
        if compute.all(compute.match_substring_regex(ids, INTEGER_ID)).as_py():
            table = table.set_column(names.index(choice.qid), choice.qid, ids.cast(arrow.int64()))
    if (name := choice.doc_id or DOC_ID) in names:
        ids = table[name]
        nonempty = compute.if_else(compute.equal(ids, ""), arrow.scalar(None, arrow.string()), ids)
        table = table.set_column(names.index(name), name, nonempty)
    return table
