"""The source of the package: no code from files is run, no program started, no connection opened."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ranksieve
from ranksieve._util.files import MAX_INTEGER_DIGITS, MAX_NAME_BYTES
from ranksieve.io import text_files
from ranksieve.io import text_files as unpacking
from tests.conftest import ROOT

ALWAYS = unpacking.ALWAYS_ALLOWED_BYTES // 2**20
SOURCE = Path(ranksieve.__file__).parent
MODULES = {  # modules that can run code from files, start programs, open connections or unpack archives
    "pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "xml", "subprocess", "socket",
    "urllib", "http", "requests", "ftplib", "smtplib", "webbrowser", "zipfile", "tarfile", "runpy", "code",
    "importlib", "ctypes", "joblib", "imp", "pty", "asyncio",
}  # fmt: skip
CALLS = {
    "eval", "exec", "compile", "__import__", "system", "popen", "import_module", "startfile", "breakpoint",
    "execv", "execve", "spawnv", "fork", "unpack_archive", "extractall", "literal_eval", "from_string",
}  # fmt: skip
KEYWORDS = {"allow_pickle", "shell"}
LOADS = {("pickle", "load"), ("pickle", "loads"), ("joblib", "load"), ("np", "load"), ("numpy", "load")}
LOADS |= {("marshal", "loads"), ("yaml", "load")}
PERMITTED = {
    "_util/files.py": {"ctypes": "exchanges two folders atomically"},
    "baselines/boosting.py": {
        "importlib": "the optional package lightgbm, by a fixed name",
        "import_module": "the same",
    },
    "cli/fit.py": {"literal_eval": "values of --set: numbers, text, lists; no code"},
    "dask/cluster.py": {
        "pickle": "measures the size of messages; only dumps",
        "importlib": "versions of packages on the workers, from a fixed list",
        "import_module": "the same",
    },
    "experiment/benching.py": {"joblib": "processes"},
    "experiment/fold_run.py": {"importlib": "versions of packages"},
    "export/onnx_graph.py": {"importlib": "whether onnx is installed"},
    "model/ranklib.py": {"xml": "trees of RankLib; expat limits the expansion of entities"},
    "dask/objective.py": {"ctypes": "asks the C library to keep freed memory"},
    "io/frames.py": {
        "importlib": "optional packages, by fixed names",
        "import_module": "the same",
    },
    "methods.py": {
        "importlib": "the class that the user names as --method package.module:Class; never from a file",
        "import_module": "the same",
    },
    "report/page.py": {"importlib": "whether jinja2 is installed"},
    "report/drawing.py": {"importlib": "whether matplotlib is installed; the scripts of the pages"},
    "show/result.py": {
        "importlib": "optional packages of data frames, by fixed names",
        "import_module": "the same",
    },
    "show/upwards.py": {
        "importlib": "functions of the room report, by fixed names",
        "import_module": "the same",
    },
    "baselines/wrappers.py": {"joblib": "processes"},
}


def dangers(tree: ast.AST) -> set[str]:
    """Modules, calls and keywords of the tables above used in a file."""
    uses = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            uses |= {alias.name.partition(".")[0] for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom) and not node.level:
            uses |= {(node.module or "").partition(".")[0]} & MODULES
        elif isinstance(node, ast.Call):
            uses |= dangers_of_call(node)
    return uses


def dangers_of_call(node: ast.Call) -> set[str]:
    called = node.func
    is_method = isinstance(called, ast.Attribute)
    name = called.attr if is_method else getattr(called, "id", "")
    owner = getattr(called.value, "id", "") if is_method else ""
    of_re = owner == "re" or (is_method and name == "compile")
    uses = set() if of_re else {name} & CALLS
    uses |= {f"{owner}.{name}"} if (owner, name) in LOADS else set()
    return uses | {word.arg for word in node.keywords if word.arg in KEYWORDS}


def test_only_what_is_listed_with_its_reason_is_used():
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    used = {name: dangers(ast.parse(path.read_text(encoding="utf-8"))) for name, path in files.items()}
    assert {name: uses for name, uses in used.items() if uses} == {
        name: set(reasons) for name, reasons in PERMITTED.items()
    }
    assert len(files) > 150


@pytest.mark.parametrize(
    "code",
    [
        "eval(text)",
        "import pickle",
        "from xml.etree import ElementTree",
        "np.load(path)",
        "f(path, allow_pickle=True)",
        "os.system('x')",
        "run(x, shell=True)",
        "exec(compile(a, b, 'exec'))",
    ],
)
def test_the_search_finds_dangerous_code(code):
    assert dangers(ast.parse(code))


def test_the_search_ignores_regular_expressions():
    assert not dangers(ast.parse("import re\nre.compile('x')"))


def test_pickle_is_never_loaded():
    tree = ast.parse((SOURCE / "dask" / "cluster.py").read_text(encoding="utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    uses = {node.attr for node in attributes if ast.unparse(node.value) == "pickle"}
    assert uses == {"dumps", "HIGHEST_PROTOCOL"}


def test_the_page_names_existing_tests():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_security_*.py"))
    names = set(re.findall(r"`(test_\w+)`", page))
    assert names
    assert [name for name in sorted(names) if f"def {name}(" not in tests] == []


def test_the_page_names_the_limits():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"{unpacking.MAX_GZIP_RATIO} times what was read of it, once that is over {ALWAYS} MiB" in page
    assert f"numbers of {unpacking.MAX_PARQUET_RATIO:,} times the size of the file" in page
    assert f"| a line of LETOR text | {text_files.MAX_LINE_BYTES // 2**20} MiB |" in page
    assert f"names over {MAX_NAME_BYTES} bytes are refused" in " ".join(page.split())
    assert f"| {MAX_INTEGER_DIGITS} digits |" in page
