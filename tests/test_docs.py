"""The code of the README and of docs/ runs, page by page, in an empty folder, and prints the output shown."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
import warnings

import pytest
import typer
import yaml
from benchmarks import page as race_page
from benchmarks.methods_page import DOCS, FOLDER, cli_page, example_folder, method_page
from benchmarks.methods_page import PAGES as METHOD_PAGES

from ranksieve import make_ranking
from ranksieve.cli import app
from ranksieve.errors import how_to_install
from ranksieve.methods import METHODS, ranker_classes
from tests.pages import (
    OUTPUT,
    PAGES,
    ROOT,
    alike,
    blocks,
    commands,
    is_within,
    name_of,
    python_blocks,
    run_page,
    shown_outputs,
)
from tests.tiers import tiered

OF_THE_MACHINE = {"gpu.md"}  # what its example prints depends on whether there is a GPU
TUTORIALS = ROOT / "docs" / "tutorials"
RUN_HERE = [page for page in PAGES if python_blocks(page)]
QUICK = {ROOT / "README.md"}
PARSERS = {"json": json.loads, "yaml": yaml.safe_load}


@pytest.mark.parametrize("page", tiered(RUN_HERE, QUICK), ids=name_of)
def test_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_page(page, with_commands=page.is_relative_to(TUTORIALS))
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name_of)
def test_examples_show_what_they_print(page):
    """test_page_runs compares it."""
    if page.name in OF_THE_MACHINE:
        return
    for block, shown in zip(python_blocks(page), shown_outputs(page), strict=True):
        assert shown is not None or not re.search(r"^print\(", block, flags=re.M), block


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_other_blocks_can_be_read(page):
    for block in blocks(page):
        assert block.language in {"python", "console", "", OUTPUT, *PARSERS}, block.language
        PARSERS.get(block.language, str)(block.text)


def test_every_command_that_is_shown_exists_with_its_options():
    known = typer.main.get_command(app)
    shown = [(page, words) for page in PAGES for block in blocks(page) for words in commands(block.text)]
    assert len(shown) > 100
    for page, (name, *words) in shown:
        if name.startswith("-"):
            continue
        command = known.commands[name]
        context = command.context_class(command, info_name=name)
        try:
            command.make_parser(context).parse_args(words)
        except Exception as error:
            pytest.fail(f"{name_of(page)}: ranksieve {name} {' '.join(words)}: {error}")


@pytest.mark.parametrize("name", METHODS)
def test_the_page_of_certificates_states_the_proof_of_each_method(name):
    """Each method stands in the row of the certificate that its models carry."""
    method, data = METHODS[name], make_ranking(n_queries=12, n_features=6, n_informative=3, random_state=0)
    quick = {"k": 3, "max_features": 3, "n_subsamples": 4, "n_rounds": 2, "n_subsets": 1, "n_trials": 2}
    quick |= {"max_iter": 50, "families": ("l1",)}
    ranker = method.make(**{key: value for key, value in quick.items() if key in method.parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = getattr(ranker.fit(data).to_model(), "certificate", {})
    kinds = {
        "`kind: subset`": certificate.get("kind") == "subset",
        "the same with `features`": "features" in certificate and "gap" in certificate,
        "`gap`, `relative_gap`": "gap" in certificate,
        "`gap_of_last_round`": "gap_of_last_round" in certificate,
        "objective alone": "objective" in certificate,
        "none": True,
    }
    kind = next(kind for kind, holds in kinds.items() if holds)
    text = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
    rows = {row.split(" | ")[0].lstrip("| "): row for row in text.splitlines() if row.startswith("|")}
    assert re.search(rf"(?<![\w-]){re.escape(method.title)}(?![\w-])", rows[kind])


def test_the_readme_names_the_commands_without_json():
    commands = typer.main.get_command(app).commands
    without = {name for name, one in commands.items() if not any("--json" in p.opts for p in one.params)}
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    named = re.search(r"All but (.*?) print one JSON object", text)[1]
    assert set(re.findall(r"`(\w+)`", named)) == without


def test_the_page_of_clusters_names_what_works():
    text = " ".join((ROOT / "docs" / "cluster.md").read_text(encoding="utf-8").split())
    works = text.split("**What works**:")[1].split("Coefficients agree")[0]
    kinds = ranker_classes().values()
    assert {one for one in re.findall(r"`(\w+)`", works) if one[0].isupper()} == {
        kind.__name__ for kind in kinds if kind().can("distributed")
    }
    commands = typer.main.get_command(app).commands
    named = re.search(r"can read them, and (.*?) have `--cluster`", text)[1]
    assert set(re.findall(r"`(\w+)`", named)) == {
        name for name, one in commands.items() if any("--cluster" in p.opts for p in one.params)
    }


def test_what_is_shown_is_compared():
    output = "Test NDCG@10: 0.69781, over 60 queries.\n f1   +0.78774   100 %\n"
    assert is_within("0.6978, over 60", output)
    assert is_within("queries.\n f1 +0.7877", output)
    assert not is_within("0.7000, over 60", output)
    assert not is_within("over 61 queries", output)
    assert not is_within("f2 +0.78774", output)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_is_about_ten_lines(page):
    lines = [line for line in python_blocks(ROOT / page)[0].splitlines() if line.strip()]
    assert len(lines) <= 10


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if not target.startswith(("http://", "https://")):
            place = page.parent / target if target else page
            assert place.exists(), target
            if anchor:
                assert anchor in anchors(place), f"{target}#{anchor}"


def anchors(page):
    """What headings are called in links, on GitHub and in the site."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    heads = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_nothing_promises_an_install_from_a_registry():
    """ranksieve is on none; messages take their words from one place."""
    not_yet = 'Not on PyPI yet; once it is, `pip install "ranksieve[all]"`.'
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace(not_yet, "")
        text = text.replace('`pip install "ranksieve-0.1.0-py3-none-any.whl[all]"`', "")  # a file
        if page.name != "CONTRIBUTING.md":  # what to write at a release
            assert not re.search(r"pip install [\"']?ranksieve", text), page
    assert not_yet in (ROOT / "README.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "ranksieve"
    places = [path for path in source.rglob("*.py") if "pip install" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(source).as_posix() for path in places] == ["errors.py"]
    assert how_to_install("all") == 'run pip install ".[all]" in the checkout of ranksieve'


def test_the_help_of_every_command_is_current():
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == cli_page(), "run make docs"


def test_the_figures_of_the_readme_come_from_committed_results():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == race_page.readme(text), "run python -m benchmarks.page"
    assert "mean NDCG@10 on nine data sets, at most 5 features" in text
    assert "one ℓ1 fit to 1e-6 of the optimum" in text


@pytest.mark.parametrize("page", METHOD_PAGES)
def test_the_page_of_a_method_is_current(page):
    """Facts and the output of its command; ``make docs`` writes them."""
    text = (FOLDER / page).read_text(encoding="utf-8")
    with example_folder():
        assert alike(method_page(page, text), text), "run make docs"


PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.S | re.M)
SHARED_PARAMETERS = {"normalise", "missing"}  # docs/raw-data.md


@pytest.mark.parametrize("name", METHODS)
def test_docstrings_describe_every_parameter_of_a_method(name):
    described = set(SHARED_PARAMETERS)
    for base in type(METHODS[name].make()).__mro__:
        section = PARAMETERS.search(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
        for names in re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section[1] if section else "", flags=re.M):
            described |= set(names.split(", "))
    missing = set(METHODS[name].parameters) - described
    assert missing <= {"C"}, missing  # of the base of a selector


def test_the_map_is_the_import_contract():
    page = (ROOT / "docs" / "architecture.md").read_text()
    (first, *_) = re.findall(r"```\n(.*?)\n```", page, re.S)
    drawn = [line.split("  ")[0].split(", ") for line in first.splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["type"] == "layers"]
    assert drawn == [[name.removeprefix("ranksieve.") for name in re.split(r" [|:] ", one)] for one in layers]


def test_the_names_of_the_architecture_page_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    places = re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", page)
    assert len(places) > 40
    for file, names in places:
        roots = [ROOT / "src" / "ranksieve", ROOT, ROOT / "tests" / "contracts"]
        (text,) = [(root / file).read_text() for root in roots if (root / file).is_file()] or [""]
        assert text or "NAME" in file, file
        for name in filter(None, names.split(".")):
            assert re.search(rf"\b(def|class) {name}\b", text), f"{file}:{names}"
