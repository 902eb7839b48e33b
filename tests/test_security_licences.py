"""Every requirement is in the table of licences, with a licence that lets everybody use it."""

from __future__ import annotations

import re

import pytest
from benchmarks.licences_page import USES, is_permissive, licence_of, requirements

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "licences.md"
LINE = re.compile(r"\| ([\w.-]+) \| ([\w, -]+) \| ([^|]+) \| ([^|]+) \|")


def listed():
    rows = (LINE.fullmatch(line) for line in PAGE.read_text(encoding="utf-8").splitlines())
    return {row[1]: (row[2].split(", "), row[3], row[4]) for row in rows if row and row[1] != "package"}


def test_the_page_lists_every_requirement():
    extras_of = {package: extras for package, (extras, _, _) in listed().items()}
    assert extras_of == requirements(), "name its use in benchmarks/licences_page.py, then run make docs"
    assert {package: use for package, (_, _, use) in listed().items()} == USES


def test_every_licence_is_permissive():
    for package, (extras, licence, _) in listed().items():
        assert is_permissive(licence, extras), (package, licence)
        assert is_permissive(licence_of(package), extras), (package, licence_of(package))


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "unknown", "AGPL-3.0", "GPL-2.0 AND MIT", "MPL-2.0"])
def test_other_licences_are_seen(licence):
    assert not is_permissive(licence, ["base"])
