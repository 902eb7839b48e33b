"""The site: all pages are in the navigation, all public names in the API, and all links are valid."""

from __future__ import annotations

import importlib.util
import posixpath
import re

import pytest
import yaml
from benchmarks.methods_page import PAGES as METHOD_PAGES

import ranksieve as rs
from ranksieve.methods import METHODS
from tests.pages import ROOT

DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_of(nav):
    """The pages of the navigation in order."""
    for entry in nav:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from pages_of(value) if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_exactly_once():
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    listed = list(pages_of(SITE["nav"]))
    notebooks = {f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.ipynb")}
    assert sorted(listed) == sorted(written | notebooks | {"contributing.md", "changelog.md"})


def test_every_method_is_explained_on_one_page():
    grouped = [name for page, names in METHOD_PAGES.items() if page != "README.md" for name in names]
    assert sorted(grouped) == sorted(METHODS)
    for page, names in METHOD_PAGES.items():
        text = (DOCS / "methods" / page).read_text(encoding="utf-8")
        for name in names:
            assert f"| `{name}` |" in text, (page, name)


QUESTIONS = {  # of a newcomer: the page that answers, and a sentence of the answer
    "limit latency": ("budgets.md", "How do I keep a ranker within 5 milliseconds, or ten features?"),
    "what does the gap mean": ("certificates.md", "no weights have a training objective that is lower"),
    "move from XGBoost": ("moving.md", "## From XGBoost"),
    "weights for hybrid search": ("hybrid.md", "fits weights ≥ 0"),
    "is it significant": ("metrics.md", "## Is the difference significant?"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomer_finds_the_answer_within_two_clicks(question):
    answer, sentence = QUESTIONS[question]
    reached = {"index.md"}
    for _ in range(2):
        reached |= {link for page in reached for link in links_of(page)}
    assert answer in reached
    text = " ".join((DOCS / answer).read_text(encoding="utf-8").split())
    assert sentence in text


def links_of(page):
    """The pages in docs/ that a page links to."""
    text = re.sub(r"^```.*?^```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.S | re.M)
    targets = [posixpath.normpath(posixpath.join(posixpath.dirname(page), one)) for one in
               re.findall(r"\]\(([^)#\s]+\.md)", text)]  # fmt: skip
    return {target for target in targets if (DOCS / target).exists() and not target.startswith("..")}


def test_every_page_begins_with_its_question_or_what_it_is():
    """Below the title stands a paragraph, not a list, a table or an example; most ask a question."""
    for page in DOCS.rglob("*.md"):
        title, _, first = page.read_text(encoding="utf-8").partition("\n\n")
        assert title.startswith("# "), page.name
        assert re.match(r"[\w`*\[]", first), page.name
        if page.parent.name != "api" and page.name not in WITHOUT_QUESTION:
            assert "?" in first.split("\n\n")[0] + title, page.name


WITHOUT_QUESTION = {"index.md", "architecture.md", "licences.md", "films.md"} | {
    f"{name}.md" for name in ("search", "research", "machine-learning")
}


def test_every_public_name_is_in_the_api_exactly_once():
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    listed = re.findall(r"^::: ranksieve\.(\w+)$", text, flags=re.M)
    assert sorted(listed) == sorted(set(rs.__all__) - {"__version__", "baselines", "io"})
    readers = set(rs.io.__all__) - set(rs.__all__)
    assert sorted(re.findall(r"^::: ranksieve\.io\.(\w+)$", text, flags=re.M)) == sorted(readers)
    baselines = set(rs.baselines.__all__) - {"FeatureSelector"}
    assert sorted(re.findall(r"^::: ranksieve\.baselines\.(\w+)$", text, flags=re.M)) == sorted(baselines)
    overview = (DOCS / "api" / "README.md").read_text(encoding="utf-8")
    assert [name for name in [*rs.__all__, *baselines, *readers] if name not in overview] == []


def test_the_site_makes_no_external_requests():
    assert SITE["theme"]["font"] is False
    text = (DOCS / "site.css").read_text(encoding="utf-8") + str(SITE.get("extra_javascript", ""))
    assert "http" not in text


def test_every_link_is_valid(hooks):
    other_files = hooks.files_beside_docs()
    inside = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()} | set(
        other_files
    )
    texts = {
        page.relative_to(DOCS).as_posix(): hooks.with_site_links(
            page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
        )
        for page in DOCS.rglob("*.md")
    } | {file: text for file, text in other_files.items() if file.endswith(".md") and ".py" not in file}
    for file, text in hooks.notebook_pages().items():
        texts[file] = re.sub(
            r"^(<div>|!\[\]).*?(?=\n\n)", "", text, flags=re.S | re.M
        )  # without pictures and HTML
    inside |= set(hooks.notebook_pages())
    for file, text in texts.items():
        prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        for link in hooks.LINK.findall(prose):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(file), link)) in inside, (file, link)


def test_linked_files_outside_docs_are_included(hooks):
    other_files = hooks.files_beside_docs()
    assert {"contributing.md", "changelog.md", "files/benchmarks/README.md"} <= set(other_files)
    assert "def " in other_files["files/src/ranksieve/kernels/sorted_pairs.py.md"]
    moved = hooks.with_site_links(
        "[a](../src/ranksieve/kernels/sorted_pairs.py) f[0](x)", "docs/performance.md"
    )
    assert moved == "[a](files/src/ranksieve/kernels/sorted_pairs.py.md) f[0](x)"


def test_warnings_fail_the_build():
    """``mkdocs build --strict`` ignores warnings with ``--quiet``."""
    build = re.search(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert build is not None
    assert build[0].split() == ["mkdocs", "build", "--strict"]


def test_readers_find_the_page_by_the_words_they_use(hooks):
    page_of = {word: page for page, words in hooks.SEARCH_WORDS.items() for word in words}
    assert {word: page_of[word] for word in ("latency", "plot", "jupyter", "hybrid")} == {
        "latency": "budgets.md", "plot": "python.md", "jupyter": "python.md", "hybrid": "hybrid.md",
    }  # fmt: skip
    for word, page in page_of.items():
        if word != "jupyter":  # in other words there
            assert word in (DOCS / page).read_text(encoding="utf-8").lower(), word

    class Page:
        def __init__(self, name):
            self.meta, self.file = {}, type("File", (), {"generated_by": None, "src_uri": name})

    page = Page("budgets.md")
    hooks.on_page_markdown("text", page)
    assert "latency" in page.meta["tags"]
    other = Page("faq.md")
    hooks.on_page_markdown("text", other)
    assert other.meta == {}


def test_sources_are_not_searched(hooks):
    files = hooks.files_beside_docs()
    sources = [place for place in files if place.startswith("files/") and place.endswith(".md")]
    assert any(place.startswith("files/benchmarks/") for place in sources)
    for place in sources:
        meta = yaml.safe_load(hooks.search_headed(place, files[place]).split("---")[1])
        assert meta == {"search": {"exclude": True}}, place
    assert hooks.search_headed("notebooks/researcher.md", "# A") == "# A"


def test_notebooks_are_pages_with_their_output(hooks):
    for place, text in hooks.notebook_pages().items():
        assert text.startswith("# "), place
        assert "data:image/png;base64," in text, place
        assert "```python\n" in text, place
    assert "Held-out NDCG@10" in hooks.notebook_pages()["notebooks/search_engineer.md"]
