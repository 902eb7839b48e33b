"""docs/licences.md: what is needed, under which licence and what for: ``make docs``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
OWN = "ranksieve"
PERMISSIVE = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT")
TOOLS = ("MPL-2.0",)  # of programs that only develop it: they are no part of what is given on
BASE = "base"
USES = {
    "catboost": "peer of the benchmarks",
    "celer": "peer of the benchmarks",
    "coverage": "which branches tests reach",
    "dask": "data on a cluster",
    "distributed": "data on a cluster",
    "fastrank": "peer of the benchmarks",
    "filelock": "one writer at a time",
    "hypothesis": "tests with drawn examples",
    "import-linter": "the layers of the package",
    "ir-measures": "metrics to compare ours with",
    "jinja2": "pages",
    "joblib": "processes",
    "lazy-loader": "a quick start",
    "lightgbm": "LambdaMART, and models of LightGBM",
    "mkdocs": "the site of the documentation",
    "mkdocs-material": "the look of the site",
    "mkdocstrings": "the API on the site",
    "msgspec": "numbers in LETOR text",
    "mypy": "types",
    "narwhals": "tables of any kind",
    "numba": "compiled kernels",
    "numpy": "arrays",
    "onnx": "models as ONNX",
    "onnxruntime": "scores of exported ONNX in tests",
    "pandas": "tables",
    "playwright": "pages in a browser in tests",
    "polars": "tables",
    "pyarrow": "parquet and CSV",
    "pysofia": "peer of the benchmarks",
    "pytest": "tests",
    "pytest-xdist": "tests in several processes",
    "pytrec-eval-terrier": "metrics to compare ours with",
    "rich": "tables and bars on the terminal",
    "rlscore": "peer of the benchmarks",
    "ruff": "style",
    "scikit-learn": "the interface of rankers",
    "scipy": "sparse matrices, statistics",
    "skglm": "peer of the benchmarks",
    "threadpoolctl": "threads of BLAS",
    "torch": "fits on a GPU",
    "triton": "kernels of fits on a GPU",
    "typer": "the command line",
    "vowpalwabbit": "peer of the benchmarks",
    "xgboost": "peer of the benchmarks",
}
STATED = {  # by projects whose packages are not installed with the others
    "catboost": "Apache-2.0",
    "celer": "BSD-3-Clause",
    "fastrank": "MIT",
    "mkdocs": "BSD-2-Clause",
    "mkdocs-material": "MIT",
    "mkdocstrings": "ISC",
    "pysofia": "Apache-2.0",
    "rlscore": "MIT",
    "skglm": "BSD-3-Clause",
    "torch": "BSD-3-Clause",
    "triton": "MIT",
    "vowpalwabbit": "BSD-3-Clause",
    "xgboost": "Apache-2.0",
}
WORDS = {  # in which packages without an expression of SPDX say it
    r"Apache(-2| (Software )?License)": "Apache-2.0",
    r"BSD 2-Clause": "BSD-2-Clause",
    r"BSD": "BSD-3-Clause",
    r"MIT": "MIT",
}
INTRODUCTION = """# Dependencies and their licences

Made by `make docs` from pyproject.toml and the metadata of what is installed. ranksieve itself is under the
Apache License 2.0. *base* is always needed; the others are extras, `pip install ".[NAME]"`. *bench* are the
peers of the benchmarks, which `make bench` installs into an environment of their own, and *dev* is what tests
need: neither is part of what is given on.

| package | extra | licence | used for |
|---|---|---|---|
"""


def requirements() -> dict[str, list[str]]:
    """The packages that pyproject.toml names, each with the extras that it is in."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lists: Mapping[str, Iterable[str]] = {BASE: project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for extra, needs in lists.items():
        for need in needs:
            name = re.match(r"[\w.-]+", need)[0].lower()  # type: ignore[index]
            if name != OWN:
                found.setdefault(name, []).append(extra)
    return dict(sorted(found.items()))


def licence_of(package: str) -> str:
    """The licence that an installed package states, else the one that its project does; "unknown" if none."""
    try:
        about = metadata(package)
    except PackageNotFoundError:
        return STATED.get(package, "unknown")
    if stated := about.get_all("License-Expression"):
        return str(stated[0])
    licence = (about.get_all("License") or [""])[0]
    texts = [*(about.get_all("Classifier") or ()), licence.partition("\n")[0]]
    licences = " ".join(text for text in texts if text.startswith("License") or " :: " not in text)
    return next((name for words, name in WORDS.items() if re.search(words, licences)), "unknown")


def is_permissive(licence: str, extras: Iterable[str]) -> bool:
    """Whether the first licence, which is the package's own, lets everybody use and give on what needs it."""
    own = re.split(r" AND | WITH ", licence)[0]
    return own in PERMISSIVE or (own in TOOLS and set(extras) == {"dev"})


def licences_page() -> str:
    """The page."""
    lines = [
        f"| {package} | {', '.join(extras)} | {licence_of(package)} | {USES[package]} |\n"
        for package, extras in requirements().items()
    ]
    return INTRODUCTION + "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(licences_page())
