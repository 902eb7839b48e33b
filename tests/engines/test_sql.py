"""The export to SQL, run by SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from io import StringIO
from itertools import product

import numpy as np
import pytest

from ranksieve.export import export_model
from ranksieve.export.sql import quoted
from ranksieve.rankers.hybrid import ENGINES as HYBRID_ENGINES
from tests.engines.cases import (
    Case,
    compare,
    curve_cases,
    documents,
    hybrid_model,
    linear,
    linear_cases,
    result_lists,
    with_holes,
)
from tests.engines.harness import record

pytestmark = pytest.mark.engines


def cases():
    yield from linear_cases()
    yield from curve_cases()
    plain, holes = documents(), with_holes(documents())
    for kind, missing in product(("query_min_max", "query_z"), ("keep", "zero", "query_min")):
        data = plain if missing == "keep" else holes
        yield Case(f"{kind}, {missing}", linear(data, kind, 0.5, missing), data)
    yield Case("query_min", linear(holes, "none", 0.5, "query_min"), holes)
    dates = documents(date=True)
    yield Case("a date", linear(dates, "z", 0.5), dates)


class SQLite:
    name, version = "SQLite", sqlite3.sqlite_version

    def __init__(self):
        self.database = sqlite3.connect(":memory:")

    def load(self, names, rows, name="YOUR_TABLE"):
        self.database.execute(f"CREATE TABLE {name} ({', '.join(names)})")
        marks = ", ".join("?" * len(names))
        self.database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)

    def run(self, text):
        done = self.database.execute(text)
        return done.fetchall() if text[:4] != "DROP" else []

    def close(self):
        self.database.close()


class DuckDB(SQLite):
    name = "DuckDB"

    def __init__(self):
        duckdb = pytest.importorskip("duckdb", reason="DuckDB's package is not installed")
        self.database, self.version = duckdb.connect(), duckdb.__version__

    def load(self, names, rows, name="YOUR_TABLE"):
        import pyarrow as pa

        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        table = pa.table(columns, [one.strip('"').replace('""', '"') for one in names])
        self.database.register("arrow", table)
        self.database.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")


class PostgreSQL(SQLite):
    name = "PostgreSQL"

    def __init__(self):
        native = pytest.importorskip("pg8000.native", reason="PostgreSQL's client pg8000 is not installed")
        places = [shutil.which("initdb"), *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))]
        if not any(places):
            pytest.skip("PostgreSQL's server is not installed (initdb was not found)")
        initdb = os.path.realpath(next(filter(None, reversed(places))))
        self.pg_ctl = os.path.join(os.path.dirname(initdb), "pg_ctl")
        self.folder = tempfile.mkdtemp(prefix="ranksieve-pg")  # a short path, which a socket needs
        self.user = {}
        if os.getuid() == 0:  # the server refuses root
            shutil.chown(self.folder, "nobody")
            self.user = {"user": "nobody"}
        self._run(
            initdb, "-D", f"{self.folder}/data", "-U", "engines", "-A", "trust", "-E", "UTF8", "--no-sync"
        )
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off"
        log = f"{self.folder}/log"
        self._run(self.pg_ctl, "-D", f"{self.folder}/data", "-w", "-l", log, "-o", options, "start")
        socket = f"{self.folder}/.s.PGSQL.5432"
        self.database = native.Connection("engines", unix_sock=socket, database="postgres")
        ((version,),) = self.database.run("SHOW server_version")
        self.version = version.split()[0]

    def _run(self, *words):
        done = subprocess.run(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            timeout=60, check=False, cwd="/", **self.user,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def load(self, names, rows, name="YOUR_TABLE"):
        kinds = ["bigint", "bigint", *["double precision"] * (len(names) - 2)]
        columns = ", ".join(f"{one} {kind}" for one, kind in zip(names, kinds, strict=True))
        self.database.run(f"CREATE TABLE {name} ({columns})")
        lines = ("\t".join("\\N" if v is None else repr(v) for v in row) for row in rows)
        self.database.run(f"COPY {name} FROM STDIN", stream=StringIO("".join(f"{line}\n" for line in lines)))

    def run(self, text):
        return [tuple(row) for row in self.database.run(text) or ()]

    def close(self):
        self.database.close()
        self._run(self.pg_ctl, "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


ENGINES = {kind.name: kind for kind in (SQLite, DuckDB, PostgreSQL)}


@pytest.mark.filterwarnings("ignore:PostgreSQL cuts names")
@pytest.mark.parametrize("name", ENGINES)
def test_scores_are_the_models(name, tmp_path):
    with closing(ENGINES[name]()) as database:
        done = []
        for k, case in enumerate(cases()):
            names = {
                one: one[:50] for one in case.data.feature_names if len(one) > 63 and name == "PostgreSQL"
            }
            result = export_model(case.model, "sql", tmp_path / str(k), names=names)
            theirs = scores(database, case.data, names, result.files[0].parent)
            done.append(compare(case, "sql", result, theirs, "float64"))
        record(name, database.version, "sql", done)


def rows_of(data):
    """Query, number and features of each document, with None for missing values."""
    X = data.X.astype(object)
    X[np.isnan(data.X)] = None
    return [(int(q), i, *x) for i, (q, x) in enumerate(zip(data.qid, X.tolist(), strict=True))]


@pytest.mark.parametrize("name", ENGINES)
def test_hybrid_searches(name, tmp_path):
    done, data = [], result_lists(ties=True)
    with closing(ENGINES[name]()) as database:
        database.load(["query", "document", *data.feature_names], rows_of(data), "results")
        for kind in HYBRID_ENGINES["sql"]:
            case = Case(kind, hybrid_model(kind), data)
            result = export_model(case.model, "sql_hybrid", tmp_path / f"{kind}.sql")
            theirs = np.full(data.n_docs, np.nan)
            for _, document, score in database.run(result.files[0].read_text()):
                theirs[document] = score
            done.append(compare(case, "sql_hybrid", result, theirs, "float64"))
        record(name, database.version, "sql_hybrid", done)


def scores(database, data, names, folder):
    """Scores of the query and, if there is one, of the expression, which are equal to the last bit."""
    columns = [quoted(names.get(name, name)) for name in data.feature_names]
    database.load(["YOUR_QUERY_ID", "YOUR_DOCUMENT_ID", *columns], rows_of(data))
    ranked = database.run((folder / "query.sql").read_text())
    assert ranked == sorted(ranked, key=lambda row: (row[0], -row[2]))
    theirs = np.empty(data.n_docs)
    for _, document, score in ranked:
        theirs[document] = score
    if (folder / "expression.sql").exists():
        text = (folder / "expression.sql").read_text()
        alone = database.run(f"SELECT YOUR_DOCUMENT_ID, {text} FROM YOUR_TABLE AS d")
        assert dict(alone) == dict(enumerate(theirs.tolist()))
    database.run("DROP TABLE YOUR_TABLE")
    return theirs
