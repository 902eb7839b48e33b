"""What the site holds beside docs/: the changelog, how to contribute, files that pages link to, notebooks."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
SHOWN_AS_TEXT = {".py", ".toml", ""}
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
SEARCH_WORDS = {  # that readers look for, and the page that answers
    "budgets.md": ["latency", "cost", "milliseconds"],
    "python.md": ["plot", "jupyter", "notebook", "summary", "matplotlib"],
    "hybrid.md": ["hybrid"],
    "metrics.md": ["significant"],
    "certificates.md": ["gap"],
}


def place_in_site(path: str) -> str:
    """Where the site has a file of the project, given from the root."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"files/{path}/README.md"
    if Path(path).suffix in SHOWN_AS_TEXT:
        return f"files/{path}.md"
    return f"files/{path}"


def with_site_links(text: str, path: str) -> str:
    """The text of a page (its ``path`` is from the root), with links to where the site has the files."""
    here = posixpath.dirname(place_in_site(path))

    def moved(match: re.Match[str]) -> str:
        target = _target(match[1], path)
        return posixpath.relpath(place_in_site(target), here or ".") if (ROOT / target).exists() else match[1]

    return LINK.sub(moved, text)


def linked_files(text: str, path: str) -> list[str]:
    """Files and folders outside docs/ that a page links to, from the root."""
    found = dict.fromkeys(_target(link, path) for link in LINK.findall(text))
    outside = [target for target in found if target not in PAGES and not target.startswith("docs/")]
    return [target for target in outside if (ROOT / target).exists()]


def _target(link: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def files_beside_docs() -> dict[str, str]:
    """Contents by place in the site: pages from the root of the project, and all that pages link to."""
    made: dict[str, str] = {}
    texts = {f"docs/{page.relative_to(ROOT / 'docs').as_posix()}" for page in (ROOT / "docs").rglob("*.md")}
    waiting = sorted(texts | {"CONTRIBUTING.md", "CHANGELOG.md"})
    while waiting:
        path = waiting.pop()
        text = text_of(path)
        if not path.startswith("docs/"):
            made[place_in_site(path)] = with_site_links(text, path)
        if path.endswith(".md") or (ROOT / path).is_dir():
            new = [target for target in linked_files(text, path) if place_in_site(target) not in made]
            waiting += [target for target in new if target not in waiting]
    return made


def text_of(path: str) -> str:
    """A file as the text of a page; of a folder its README, or a list of its files."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(file.name for file in place.iterdir() if file.is_file())
        return f"# {path}\n\n" + "".join(f"- [{name}]({posixpath.basename(path)}/{name})\n" for name in names)
    text = place.read_text(encoding="utf-8")
    return f"# {path}\n\n````python\n{text}````\n" if place.suffix in SHOWN_AS_TEXT else text


def notebook_pages() -> dict[str, str]:
    """The notebooks as pages with their output, by place in the site."""
    return {
        f"notebooks/{path.stem}.md": notebook_page(json.loads(path.read_text(encoding="utf-8")), path.name)
        for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    }


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *map(_shown, cell["outputs"])]
    title, *others = parts
    return "\n\n".join([title, f"This page is [a notebook]({name}).", *others]) + "\n"


def _shown(output: dict[str, Any]) -> str:
    """Output of a cell: the richest form that it has."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    forms = {kind: "".join(text) for kind, text in output["data"].items()}
    if "image/png" in forms:
        return f"![](data:image/png;base64,{forms['image/png'].strip()})"
    if "text/markdown" in forms:
        return "\n".join(f"> {line}" for line in forms["text/markdown"].splitlines())
    if "text/html" in forms:
        return (
            "<div>" + "\n".join(line for line in forms["text/html"].splitlines() if line.strip()) + "</div>"
        )
    return f"```text\n{forms['text/plain']}\n```"


def search_headed(place: str, content: str) -> str:
    """Sources are not part of the search: only pages are."""
    return f"{NOT_SEARCHED}{content}" if place.startswith("files/") and place.endswith(".md") else content


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs once it has collected the files of docs/."""
    from mkdocs.structure.files import File

    for place, content in {**files_beside_docs(), **notebook_pages()}.items():
        files.append(File.generated(config, place, content=search_headed(place, content)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page: its search words, and links to files outside docs/."""
    if words := SEARCH_WORDS.get(page.file.src_uri):
        page.meta["tags"] = words  # which the search ranks first
    if page.file.generated_by is not None:
        return markdown
    text = with_site_links(markdown, f"docs/{page.file.src_uri}")
    return re.sub(r"(?<=\]\()((?:[^)#\s]*/)?notebooks/\w+)\.ipynb(?=\))", r"\1.md", text)


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs for every page: names in docstrings lose the role that Sphinx would read."""
    return re.sub(r":(?:func|class|meth|mod|attr):(?=<code)", "", html)
