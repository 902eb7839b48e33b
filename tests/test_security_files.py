"""Small files that would fill the memory, and excessive JSON, XML and numbers, are refused."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib

import numpy as np
import pytest

import ranksieve as rs
from ranksieve._util.files import decode_json
from ranksieve.errors import DataError
from ranksieve.io import text_files
from ranksieve.io import text_files as unpacking
from ranksieve.io.frames import read_parquet
from ranksieve.io.text_files import read_bytes, text_chunks
from ranksieve.model.foreign import read_model
from tests.refusals import refused_data

MEGABYTE = 2**20
ALWAYS, LINE = 4 * MEGABYTE, 2 * MEGABYTE


@pytest.fixture
def small_bounds(monkeypatch):
    """Reduces the limits of the package, so that small test files exceed them."""
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED_BYTES", ALWAYS)
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", LINE)


def bomb(path, begin, piece, times):
    """Gzip file of a beginning and a repeated piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(packer.compress(begin))
        for _ in range(times):
            file.write(packer.compress(piece))
        file.write(packer.flush())
    assert path.stat().st_size < times * len(piece) / 500
    return path


def peak_of(read, *args, **options):
    """(peak memory, error) of a refused call."""
    tracemalloc.start()
    with pytest.raises(DataError) as info:
        read(*args, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(str(info.value).splitlines()) == 1
    return peak, info.value


READERS = {
    "judgements.csv.gz": rs.io.read_judgements,
    "features.names.gz": lambda path: rs.io.read_letor(path.with_name("x.txt"), names=path),
    "costs.json.gz": rs.io.read_costs,
    "data.csv.gz": rs.io.read_csv,
    "log.jsonl.gz": lambda path: rs.io.read_ltr_log(
        path, judgements=rs.io.read_judgements(path.with_name("q.txt"))
    ),
    "qrels.txt.gz": rs.io.read_qrels,
}


@pytest.mark.parametrize("name", READERS)
def test_gzip_that_holds_far_more_than_its_size(name, small_bounds, tmp_path):
    (tmp_path / "x.txt").write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    (tmp_path / "q.txt").write_text("q 0 d 1\n")
    path = bomb(tmp_path / name, b"qid,label,a\n", b"1,2,3\n" * (MEGABYTE // 6), 16)
    peak, error = peak_of(READERS[name], path)
    assert error.file == str(path)
    assert "compression" in error.reason
    assert peak < 3 * ALWAYS  # instead of 16 MB


def test_letor_rows_without_end(small_bounds, tmp_path):
    path = bomb(tmp_path / "train.txt.gz", b"", b"0 qid:1 1:0\n" * (MEGABYTE // 12), 16)
    _, error = peak_of(rs.io.read_letor, path)
    assert error.file == str(path)
    assert "compression" in error.reason


@pytest.mark.parametrize("name", ["one.txt", "one.txt.gz"])
def test_a_line_without_end(name, small_bounds, tmp_path):
    path, piece = tmp_path / name, b" 2:0" * (MEGABYTE // 4)
    if name.endswith(".gz"):
        bomb(path, b"1 qid:1 1:1", piece, 16)
    else:
        path.write_bytes(b"1 qid:1 1:1" + 16 * piece)
    peak, error = peak_of(lambda: list(text_chunks(path, MEGABYTE)))
    assert error.file == str(path)
    assert f"over {LINE} bytes" in error.reason
    assert peak < 5 * LINE  # instead of 16 MB


def test_highly_compressible_data_are_read(small_bounds, tmp_path):
    content = "".join(f"0 qid:{q} 1:{q % 7}\n" for q in range(20_000)).encode() * 20
    path = tmp_path / "much.txt.gz"
    path.write_bytes(gzip.compress(content, 1))
    assert len(content) > ALWAYS
    assert read_bytes(path) == content


def test_gzip_with_several_members_and_padding(tmp_path):
    path = tmp_path / "parts.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n") + bytes(512))
    assert read_bytes(path) == b"a\nb\n"
    path.write_bytes(gzip.compress(b"a\n" * 9999)[:-9])
    with refused_data(path):
        read_bytes(path)


def test_parquet_of_more_rows_than_its_size_can_mean(small_bounds, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n, path = 2 * MEGABYTE, tmp_path / "rows.parquet"
    zeros = arrow.array(np.zeros(n, dtype=np.int8))
    parquet.write_table(arrow.table({"qid": zeros, "label": zeros, "a": zeros}), path)
    assert path.stat().st_size < 8 * n * 3 / unpacking.MAX_PARQUET_RATIO
    for read in (read_parquet, lambda source: rs.io.convert_dataset(source, tmp_path / "folder.ranksieve")):
        with refused_data(path) as info:
            read(path)
        assert f"{n:,} rows of 3 columns" in info.value.reason
    assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]


DEPTHS = (200, 400, 900, 5_000, 200_000)
NESTED = {
    "lists": ("[", "]", ""),
    "fastrank": ('{"Ensemble":{"weights":[1],"models":[', "]}}", '{"SingleFeature":{"fid":0,"dir":1}}'),
    "parameters": ('{"a":', "}", "1"),
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", NESTED)
def test_models_nested_without_end(kind, depth, tmp_path):
    begin, end, inside = NESTED[kind]
    text = begin * depth + inside + end * depth
    if kind == "parameters":
        own = rs.LinearModel((rs.model.linear.Term("a", 0, 1.0),), 1).to_dict()
        text = json.dumps(own | {"parameters": "HERE"}).replace('"HERE"', text)
    path = tmp_path / "model.json"
    path.write_text(text)
    try:
        model = read_model(path, ["a", "b"])
    except DataError as error:
        file, reason = error.file, error.reason
        assert file == str(path)
        assert "nested" in reason or kind == "lists"
    else:
        assert depth < 1000
        assert model.predict([[1.0, 2.0]] if kind == "fastrank" else [[1.0]]) == [1.0]


@pytest.mark.parametrize("depth", DEPTHS)
def test_logs_nested_without_end(depth, tmp_path):
    (tmp_path / "log.json").write_text('{"response":' * depth + "[]" + "}" * depth)
    (tmp_path / "q.txt").write_text("q 0 d 1\n")
    with pytest.raises(DataError) as info:
        rs.io.read_ltr_log(tmp_path / "log.json", judgements=tmp_path / "q.txt")
    assert info.value.file == str(tmp_path / "log.json")


def test_numbers_of_a_million_digits():
    assert decode_json("1" * 10**6) == np.inf
    assert decode_json("[-" + "9" * 5000 + "]") == [-np.inf]


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"\udc00": 1}', r'["a", {"b": "\uD83D x"}]'])
def test_half_of_a_character_is_damage(text):
    with pytest.raises(json.JSONDecodeError, match="unpaired surrogate"):
        decode_json(text)


def test_surrogate_pairs_are_text():
    assert decode_json(r'"\ud83d\ude00"') == "😀"


ENTITIES = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)


def test_entities_of_xml_are_not_expanded(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text(f"## LambdaMART\n{ENTITIES}]>\n<ensemble>&j;</ensemble>\n")
    peak, error = peak_of(read_model, path)
    assert "XML" in error.reason
    assert peak < MEGABYTE
