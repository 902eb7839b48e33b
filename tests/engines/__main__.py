"""Writes the results of ``make test-engines`` into docs/exports.md and docs/engines.md, between comments."""

from __future__ import annotations

import json
from pathlib import Path

from ranksieve._util.files import atomic_write
from tests.engines.harness import RESULTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- written by make test-engines -->", "<!-- end of the table -->"
HEAD = (
    "| engine | version | target | documents scored | largest difference | orders changed |\n"
    "|---|---|---|--:|--:|--:|\n"
)


def table(entries):
    rows = [
        f"| {one['engine']} | {one['version']} | {one['target']} | {one['documents']:,} | "
        f"{rounded(one['difference'])} | {one['orders']} |\n"
        for one in sorted(entries, key=lambda one: (one["engine"].lower(), one["target"]))
    ]
    return HEAD + "".join(rows)


def rounded(value):
    return f"{value:.0e}" if value else "0"


def updated(text, entries):
    """The page with the rows of engines that ran; the rows of others stay."""
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    ran = {(one["engine"], one["target"]) for one in entries}
    kept = []
    for line in old.strip().splitlines()[2:]:
        engine, version, target, documents, difference, orders = (
            cell.strip() for cell in line.strip("|").split("|")
        )
        if (engine, target) not in ran:
            documents = int(documents.replace(",", ""))
            kept.append(
                {"engine": engine, "version": version, "target": target, "documents": documents}
                | {"difference": float(difference), "orders": int(orders)}
            )
    return f"{before}{BEGIN}\n\n{table([*entries, *kept])}\n{END}{after}"


def with_sessions(text, sessions):
    """The page with the new transcripts, by name."""
    for name, session in sessions.items():
        begin = f"<!-- {name}, written by make test-engines -->"
        before, mark, rest = text.partition(begin)
        _, end, after = rest.partition("<!-- end -->")
        if mark and end:
            text = f"{before}{begin}\n\n```console\n{session}```\n\n{end}{after}"
    return text


def main():
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")]
    sessions = {path.stem: path.read_text(encoding="utf-8") for path in RESULTS.glob("session-*.txt")}
    write(DOCS / "exports.md", lambda text: updated(text, entries))
    write(DOCS / "engines.md", lambda text: with_sessions(text, sessions))


def write(page, change):
    new = change(page.read_text(encoding="utf-8"))
    with atomic_write(page, "wb") as stream:
        stream.write(new.encode())


if __name__ == "__main__":
    main()
